//! A MachineDeployment: a set for each template, and the rolling update from one template to the next within
//! bounds.
//!
//! | file | purpose |
//! |---|---|
//! | `template` | finds the set of a template |
//! | `rolling` | the next step of an update |
//! | `sets` | creates, configures and removes sets |
//! | `status` | the status of the deployment |

mod rolling;
mod sets;
mod status;
mod template;

use std::{collections::BTreeSet, future::Future, sync::Arc, time::Duration};

use api::{
    constants::WRITTEN_IN_EPOCH,
    machine::{FailedMachine, Machine, MachineDeployment, MachineSet},
};
use futures::Stream;
use kube::{
    Api, Resource, ResourceExt,
    api::{ListParams, PostParams},
    core::SelectorExt as _,
    runtime::{controller::Controller, reflector::ObjectRef, watcher},
};
use runtime::{
    Cluster as _, Error, Next, Reconciler, Result, Seed,
    apply::FieldManager,
    clock,
    error::Explain as _,
    runner::{self, Settings},
};
use serde_json::json;
use tracing::info;

use self::{
    rolling::{Manner, Standing, Wanted, next},
    sets::{Sets, configuration, told},
};
use crate::{
    context::Context,
    feed::Cache,
    machine_set::{available, available_in, outgoing, ready_for, replicas},
    outgoing::Outgoing,
    owners::{Belongs, adoption, belongs, selector},
    phase::Phase,
    removal,
    words::{FINALIZER, REVISION},
};

/// Delay before the next read after a write conflict.
const COLLISION: Duration = Duration::from_secs(1);

/// The controller of MachineDeployments.
pub struct MachineDeployments {
    seed: Seed,
    namespace: String,
    manager: FieldManager,
    deployments: Cache<MachineDeployment>,
    machines: Cache<Machine>,
    outgoing: Arc<Outgoing>,
}

impl MachineDeployments {
    /// The controller, with the parts that several controllers share.
    pub fn new(
        context: &Context,
        deployments: Cache<MachineDeployment>,
        machines: Cache<Machine>,
        outgoing: Arc<Outgoing>,
    ) -> Self {
        Self {
            seed: context.control.clone(),
            namespace: context.namespace.clone(),
            manager: context.manager,
            deployments,
            machines,
            outgoing,
        }
    }

    /// Runs until shutdown.
    pub fn run(
        self,
        deployments: impl Stream<Item = Result<MachineDeployment, watcher::Error>> + Send + 'static,
        sets: impl Stream<Item = Result<MachineSet, watcher::Error>> + Send + 'static,
        machines: impl Stream<Item = Result<Machine, watcher::Error>> + Send + 'static,
        settings: Settings,
    ) -> impl Future<Output = ()> + Send {
        let all = self.deployments.store();
        // Found by labels, because an object without owner concerns a deployment, too. The labels of a
        // template are the labels of its sets and machines.
        let concerned = move |labels: &std::collections::BTreeMap<String, String>| {
            let of = all.state_filter(|deployment| {
                selector("", deployment.spec.selector.as_ref()).is_ok_and(|s| s.matches(labels))
            });
            of.iter()
                .map(|deployment| ObjectRef::from_obj(deployment.as_ref()))
                .collect::<Vec<_>>()
        };
        let by_machine = concerned.clone();
        let controller = Controller::for_stream(deployments, self.deployments.store())
            .watches_stream(sets, move |set| concerned(set.labels()))
            .watches_stream(machines, move |machine| by_machine(machine.labels()));
        let seed = self.seed.clone();
        async move { runner::run_namespaced(controller, &seed, Arc::new(self), settings).await }
    }

    /// All sets of the deployment, read live; orphans are adopted.
    async fn own(&self, deployment: &MachineDeployment) -> Result<Vec<MachineSet>> {
        let of = format!("MachineDeployment {}", deployment.name_any());
        let selector = selector(&of, deployment.spec.selector.as_ref())?;
        let living: BTreeSet<_> = self.deployments.all()?.iter().filter_map(|d| d.uid()).collect();
        let live = self.sets_api().list(&ListParams::default()).await;
        let mut own = Vec::new();
        for set in live.context("could not list MachineSets")?.items {
            match belongs(set.meta(), deployment, &selector, &living) {
                Belongs::Own => own.push(set),
                Belongs::Orphan if set.meta().deletion_timestamp.is_none() => {
                    info!(
                        set = set.name_any(),
                        deployment = deployment.name_any(),
                        "a set is adopted"
                    );
                    let body = adoption(set.meta(), deployment);
                    own.push(self.change(&set, body).await?);
                }
                _ => {}
            }
        }
        Ok(own)
    }

    async fn change(&self, set: &MachineSet, body: serde_json::Value) -> Result<MachineSet> {
        let written = self.manager.try_merge_of(&self.sets_api(), set, &body).await?;
        written.ok_or_else(|| {
            let name = set.name_any();
            Error::not_ready(
                COLLISION,
                format!("MachineSet {name} was written by another at the same moment"),
            )
        })
    }

    /// Creates the set of the present template. Returns false if the name is taken.
    async fn make(&self, deployment: &MachineDeployment, sets: &mut Sets, collisions: i32) -> Result<bool> {
        let set = sets.make(deployment, collisions)?;
        match self.sets_api().create(&PostParams::default(), &set).await {
            Ok(made) => {
                info!(
                    set = made.name_any(),
                    deployment = deployment.name_any(),
                    "a set is made"
                );
                sets.new = Some(made);
                Ok(true)
            }
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(false),
            Err(error) => Err(error).context(format_args!("could not create MachineSet {}", set.name_any())),
        }
    }

    /// Moves the sets towards the specification of the deployment, by a single step.
    async fn step(&self, deployment: &MachineDeployment, wanted: &Wanted, sets: &Sets) -> Result<()> {
        for set in sets.all().filter(|set| set.meta().deletion_timestamp.is_none()) {
            let is_new = sets.new.as_ref().is_some_and(|new| new.uid() == set.uid());
            if let Some(body) = configuration(set, deployment, is_new) {
                self.change(set, json!({"spec": body})).await?;
                return Err(Error::not_ready(
                    COLLISION,
                    "a set was given the bounds of its deployment",
                ));
            }
        }
        for set in sets.all().filter(|set| set.meta().deletion_timestamp.is_none()) {
            if let Some(epoch) = told(set, deployment) {
                let body = json!({"metadata": {"annotations": {WRITTEN_IN_EPOCH: epoch}}});
                self.change(set, body).await?;
                return Err(Error::not_ready(COLLISION, "a set was told its epoch"));
            }
        }
        if let (Some(revision), Some(new)) = (sets.revise(), &sets.new) {
            let body = json!({"metadata": {"annotations": {REVISION: revision.to_string()}}});
            self.change(new, body).await?;
            return Err(Error::not_ready(COLLISION, "a set is in use again"));
        }
        let marked = if wanted.manner == Manner::Paused {
            Ok(())
        } else {
            self.mark_outgoing(sets).await
        };
        let standing = self.standing(sets)?;
        let (old, new) = next(wanted, &standing.0, standing.1.as_ref());
        let count = old.len();
        let replicas = old.into_iter().chain(new);
        for (index, (set, replicas)) in sets.all().zip(replicas).enumerate() {
            let now = set.spec.replicas.unwrap_or_default();
            let wanted = i32::try_from(replicas).unwrap_or(i32::MAX);
            if now != wanted {
                if index < count && wanted < now {
                    marked.clone()?;
                }
                info!(set = set.name_any(), from = now, to = wanted, "a set is scaled");
                self.change(set, json!({"spec": {"replicas": wanted}})).await?;
            }
        }
        Ok(())
    }

    /// Marks the Nodes of old sets, and frees the Nodes of the new set that a cancelled update or scale-down
    /// has marked.
    async fn mark_outgoing(&self, sets: &Sets) -> Result<()> {
        let machines = self.machines.all()?;
        let of = |set: &MachineSet| -> Vec<&Machine> {
            let own = machines.iter().filter(|machine| is_of(machine, set));
            own.map(Arc::as_ref).collect()
        };
        if let Some(new) = &sets.new {
            let mut own = of(new);
            let leaving: BTreeSet<_> = outgoing(replicas(new), &own)
                .into_iter()
                .map(ResourceExt::name_any)
                .collect();
            own.retain(|machine| {
                machine.meta().deletion_timestamp.is_none() && !leaving.contains(&machine.name_any())
            });
            self.outgoing.release(own).await?;
        }
        self.outgoing.mark(sets.old.iter().flat_map(of)).await
    }

    /// The number of machines of the old sets and of the new set, by state.
    fn standing(&self, sets: &Sets) -> Result<(Vec<Standing>, Option<Standing>)> {
        let machines = self.machines.all()?;
        let of = |set: &MachineSet| {
            let own = machines.iter().filter(|machine| is_of(machine, set));
            let least = ready_for(set.spec.min_ready_seconds);
            let mut standing = Standing {
                replicas: usize::try_from(set.spec.replicas.unwrap_or_default()).unwrap_or_default(),
                ..Standing::default()
            };
            for machine in own {
                if machine.meta().deletion_timestamp.is_some() {
                    standing.going += 1;
                } else {
                    standing.staying += 1;
                    standing.available += usize::from(available(machine, least));
                }
            }
            standing
        };
        Ok((sets.old.iter().map(of).collect(), sets.new.as_ref().map(of)))
    }

    async fn tell(
        &self,
        deployment: &MachineDeployment,
        wanted: Option<&Wanted>,
        sets: &Sets,
        collisions: Option<i32>,
        error: Option<&Error>,
    ) -> Result<Option<Duration>> {
        let (old, new) = self.standing(sets)?;
        let machines = self.machines.all()?;
        let own: Vec<_> = machines
            .iter()
            .filter(|m| m.meta().deletion_timestamp.is_none() && sets.all().any(|set| is_of(m, set)))
            .collect();
        let failed = own
            .iter()
            .filter(|m| matches!(Phase::of(m), Phase::Failed | Phase::CrashLoopBackOff));
        let found = status::Found {
            wanted,
            old: &old,
            new: new.as_ref(),
            ready: own.iter().filter(|m| Phase::of(m) == Phase::Running).count(),
            failed: failed.map(|machine| failure(machine)).collect(),
            collisions,
            error,
            now: clock::now_k8s(),
        };
        let (status, pause) = status::of(deployment, &found);
        if deployment.status.as_ref() != Some(&status) {
            let mut body = serde_json::to_value(&status)
                .map_err(|error| Error::bug(format!("a status does not serialise: {error}")))?;
            // The serialised status omits an empty list; the patch has to clear the former list.
            body["failedMachines"] = json!(status.failed_machines);
            let api: Api<MachineDeployment> = self.seed.namespaced(&self.namespace);
            self.manager
                .merge_status(&api, &deployment.name_any(), &body)
                .await?;
        }
        let least = ready_for(deployment.spec.min_ready_seconds);
        let counts = own
            .iter()
            .filter_map(|machine| available_in(machine, least))
            .min();
        Ok(pause.into_iter().chain(counts).min())
    }

    fn sets_api(&self) -> Api<MachineSet> {
        self.seed.namespaced(&self.namespace)
    }
}

impl Reconciler<MachineDeployment> for MachineDeployments {
    const NAME: &'static str = "machine-deployment";
    const FINALIZER: Option<&'static str> = Some(FINALIZER);

    async fn apply(&self, deployment: Arc<MachineDeployment>) -> Result<Next> {
        let spec = &deployment.spec;
        let mut sets = Sets::sort(self.own(&deployment).await?, &spec.template);
        let mut collisions = deployment
            .status
            .as_ref()
            .and_then(|status| status.collision_count);
        let wanted = Wanted::of(&deployment.name_any(), spec);
        let stepped = match &wanted {
            Ok(wanted) => {
                if sets.new.is_none()
                    && (wanted.manner != Manner::Paused || sets.old.is_empty())
                    && !self
                        .make(&deployment, &mut sets, collisions.unwrap_or_default())
                        .await?
                {
                    collisions = Some(collisions.unwrap_or_default() + 1);
                    Err(Error::not_ready(COLLISION, "the name of the next set is taken"))
                } else {
                    self.step(&deployment, wanted, &sets).await
                }
            }
            Err(error) => Err(error.clone()),
        };
        let told = self
            .tell(
                &deployment,
                wanted.as_ref().ok(),
                &sets,
                collisions,
                stepped.as_ref().err(),
            )
            .await?;
        stepped?;
        let machines = self.machines.all()?;
        let empty = |set: &MachineSet| !machines.iter().any(|machine| is_of(machine, set));
        for set in sets.superfluous(spec.revision_history_limit, empty) {
            info!(set = set.name_any(), "an old set is forgotten");
            removal::delete(&self.sets_api(), set).await?;
        }
        Ok(told.map_or(Next::Change, Next::After))
    }

    /// Deletes the sets first. A deletion that orphans the dependents keeps the sets.
    async fn cleanup(&self, deployment: Arc<MachineDeployment>) -> Result<Next> {
        if deployment.finalizers().iter().any(|f| f == "orphan") {
            return Ok(Next::Change);
        }
        let own = self.own(&deployment).await?;
        let machines = self.machines.all()?;
        let of_own = machines
            .iter()
            .filter(|machine| own.iter().any(|set| is_of(machine, set)));
        self.outgoing.mark_if_possible(of_own.map(Arc::as_ref)).await;
        for set in own.iter().filter(|set| set.meta().deletion_timestamp.is_none()) {
            removal::delete(&self.sets_api(), set).await?;
        }
        if own.is_empty() {
            return Ok(Next::Change);
        }
        // The deletion of each set wakes the deployment.
        Ok(Next::After(Duration::from_secs(60)))
    }
}

fn is_of(machine: &Machine, set: &MachineSet) -> bool {
    let mut owners = machine.owner_references().iter();
    owners.any(|owner| owner.controller == Some(true) && Some(&owner.uid) == set.meta().uid.as_ref())
}

fn failure(machine: &Machine) -> FailedMachine {
    FailedMachine {
        name: Some(machine.name_any()),
        provider_id: machine.spec.provider_id.clone(),
        last_operation: machine
            .status
            .as_ref()
            .and_then(|status| status.last_operation.clone()),
        owner_ref: machine.owner_references().first().map(|owner| owner.name.clone()),
    }
}

/// The fields of a deployment that wake the controller.
pub fn fingerprint(deployment: &MachineDeployment) -> Option<u64> {
    let meta = &deployment.metadata;
    runner::fingerprint((
        &meta.uid,
        meta.generation,
        meta.deletion_timestamp.is_some(),
        &meta.finalizers,
    ))
}

/// The fields of a set that wake the deployment.
pub fn set_fingerprint(set: &MachineSet) -> Option<u64> {
    let meta = &set.metadata;
    let owner = meta.owner_references.iter().flatten().map(|owner| &owner.uid);
    runner::fingerprint((
        &meta.uid,
        meta.generation,
        meta.deletion_timestamp.is_some(),
        owner.collect::<Vec<_>>(),
    ))
}
