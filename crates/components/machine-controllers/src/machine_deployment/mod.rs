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
    Error, Result,
    client::{Cluster as _, Seed, apply::FieldManager},
    clock,
    controller::{
        Next, Reconciler,
        runner::{self, Settings},
    },
    error::Explain as _,
};
use serde_json::json;
use tracing::info;

use self::{
    rolling::{MachineCounts, RolloutSpec, RolloutStrategy, next_replicas},
    sets::{Sets, find_changed_epoch, in_place_patch},
};
use crate::{
    constants::{FINALIZER, REVISION},
    context::Context,
    feed::Cache,
    machine_set::{is_available, min_ready_duration, outgoing_machines, replicas, time_until_available},
    outgoing::Outgoing,
    owners::{OwnerRelation, adoption_patch, find_owner_relation, selector},
    phase::Phase,
    removal,
};

/// Delay before the next read after a write, or a write conflict, of a set.
const REQUEUE_ON_CONFLICT: Duration = Duration::from_secs(1);

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
        let deployments_by_labels = move |labels: &std::collections::BTreeMap<String, String>| {
            let selecting = all.state_filter(|deployment| {
                selector("", deployment.spec.selector.as_ref()).is_ok_and(|s| s.matches(labels))
            });
            selecting
                .iter()
                .map(|deployment| ObjectRef::from_obj(deployment.as_ref()))
                .collect::<Vec<_>>()
        };
        let by_machine = deployments_by_labels.clone();
        let controller = Controller::for_stream(deployments, self.deployments.store())
            .watches_stream(sets, move |set| deployments_by_labels(set.labels()))
            .watches_stream(machines, move |machine| by_machine(machine.labels()));
        let seed = self.seed.clone();
        async move { runner::run_namespaced(controller, &seed, Arc::new(self), settings).await }
    }

    /// Lists the sets of the deployment live, and adopts orphans.
    async fn claim_sets(&self, deployment: &MachineDeployment) -> Result<Vec<MachineSet>> {
        let of = format!("MachineDeployment {}", deployment.name_any());
        let selector = selector(&of, deployment.spec.selector.as_ref())?;
        let living: BTreeSet<_> = self.deployments.all()?.iter().filter_map(|d| d.uid()).collect();
        let live = self.sets_api().list(&ListParams::default()).await;
        let mut own = Vec::new();
        for set in live.context("could not list MachineSets")?.items {
            match find_owner_relation(set.meta(), deployment, &selector, &living) {
                OwnerRelation::Own => own.push(set),
                OwnerRelation::Orphan if set.meta().deletion_timestamp.is_none() => {
                    info!(
                        set = set.name_any(),
                        deployment = deployment.name_any(),
                        "a set is adopted"
                    );
                    let body = adoption_patch(set.meta(), deployment);
                    own.push(self.patch_set(&set, body).await?);
                }
                _ => {}
            }
        }
        Ok(own)
    }

    async fn patch_set(&self, set: &MachineSet, body: serde_json::Value) -> Result<MachineSet> {
        let written = self.manager.try_merge_of(&self.sets_api(), set, &body).await?;
        written.ok_or_else(|| {
            let name = set.name_any();
            Error::not_ready(
                REQUEUE_ON_CONFLICT,
                format!("MachineSet {name} was changed by another writer at the same time"),
            )
        })
    }

    /// Creates the set of the present template. Returns false if the name is taken.
    async fn create_set(
        &self,
        deployment: &MachineDeployment,
        sets: &mut Sets,
        collisions: i32,
    ) -> Result<bool> {
        let set = sets.build(deployment, collisions)?;
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
    async fn take_step(
        &self,
        deployment: &MachineDeployment,
        wanted: &RolloutSpec,
        sets: &Sets,
    ) -> Result<()> {
        for set in sets.all().filter(|set| set.meta().deletion_timestamp.is_none()) {
            let is_new = sets.new.as_ref().is_some_and(|new| new.uid() == set.uid());
            if let Some(body) = in_place_patch(set, deployment, is_new) {
                self.patch_set(set, json!({"spec": body})).await?;
                return Err(requeue_after_update(set, "template updated in place"));
            }
        }
        for set in sets.all().filter(|set| set.meta().deletion_timestamp.is_none()) {
            if let Some(epoch) = find_changed_epoch(set, deployment) {
                let body = json!({"metadata": {"annotations": {WRITTEN_IN_EPOCH: epoch}}});
                self.patch_set(set, body).await?;
                return Err(requeue_after_update(set, "epoch updated"));
            }
        }
        if let (Some(revision), Some(new)) = (sets.outdated_revision(), &sets.new) {
            let body = json!({"metadata": {"annotations": {REVISION: revision.to_string()}}});
            self.patch_set(new, body).await?;
            return Err(requeue_after_update(new, "revision updated"));
        }
        let (mut marked, mut released) = (Ok(()), Ok(()));
        if wanted.strategy != RolloutStrategy::Paused {
            released = self.release_staying(sets).await;
            marked = self.mark_outgoing(sets).await;
        }
        let (old, new) = self.count_machines(sets)?;
        let (old, new) = next_replicas(wanted, &old, new.as_ref());
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
                self.patch_set(set, json!({"spec": {"replicas": wanted}})).await?;
            }
        }
        released
    }

    /// Frees the Nodes of the new set that a cancelled update or scale-down has marked.
    async fn release_staying(&self, sets: &Sets) -> Result<()> {
        let Some(new) = &sets.new else {
            return Ok(());
        };
        let machines = self.machines.all()?;
        let mut own = machines_of(&machines, new);
        let leaving: BTreeSet<_> = outgoing_machines(replicas(new), &own)
            .into_iter()
            .map(ResourceExt::name_any)
            .collect();
        own.retain(|machine| {
            machine.meta().deletion_timestamp.is_none() && !leaving.contains(&machine.name_any())
        });
        self.outgoing.release(own).await
    }

    /// Marks the Nodes of old sets.
    async fn mark_outgoing(&self, sets: &Sets) -> Result<()> {
        let machines = self.machines.all()?;
        let old = sets.old.iter().flat_map(|set| machines_of(&machines, set));
        self.outgoing.mark(old).await
    }

    /// Counts the machines of the old sets and of the new set, by state.
    fn count_machines(&self, sets: &Sets) -> Result<(Vec<MachineCounts>, Option<MachineCounts>)> {
        let machines = self.machines.all()?;
        let count = |set: &MachineSet| {
            let own = machines.iter().filter(|machine| machine_belongs_to(machine, set));
            let least = min_ready_duration(set.spec.min_ready_seconds);
            let mut counts = MachineCounts {
                replicas: usize::try_from(set.spec.replicas.unwrap_or_default()).unwrap_or_default(),
                ..MachineCounts::default()
            };
            for machine in own {
                if machine.meta().deletion_timestamp.is_some() {
                    counts.terminating += 1;
                } else {
                    counts.staying += 1;
                    counts.available += usize::from(is_available(machine, least));
                }
            }
            counts
        };
        Ok((sets.old.iter().map(count).collect(), sets.new.as_ref().map(count)))
    }

    async fn write_status(
        &self,
        deployment: &MachineDeployment,
        wanted: Option<&RolloutSpec>,
        sets: &Sets,
        collisions: Option<i32>,
        error: Option<&Error>,
    ) -> Result<Option<Duration>> {
        let (old, new) = self.count_machines(sets)?;
        let machines = self.machines.all()?;
        let own: Vec<_> = machines
            .iter()
            .filter(|m| m.meta().deletion_timestamp.is_none())
            .filter(|m| sets.all().any(|set| machine_belongs_to(m, set)))
            .collect();
        let failed = own
            .iter()
            .filter(|m| matches!(Phase::from_machine(m), Phase::Failed | Phase::CrashLoopBackOff));
        let found = status::DeploymentObservation {
            wanted,
            old: &old,
            new: new.as_ref(),
            ready: own
                .iter()
                .filter(|m| Phase::from_machine(m) == Phase::Running)
                .count(),
            failed: failed.map(|machine| failed_machine(machine)).collect(),
            collisions,
            error,
            now: clock::now_k8s(),
        };
        let (status, pause) = status::compute_status(deployment, &found);
        if deployment.status.as_ref() != Some(&status) {
            let mut body = serde_json::to_value(&status)
                .map_err(|error| Error::bug("a status does not serialise").caused_by(error))?;
            // The serialised status omits an empty list; the patch has to clear the former list.
            body["failedMachines"] = json!(status.failed_machines);
            let api: Api<MachineDeployment> = self.seed.namespaced(&self.namespace);
            self.manager
                .merge_status(&api, &deployment.name_any(), &body)
                .await?;
        }
        let least = min_ready_duration(deployment.spec.min_ready_seconds);
        let counts = own
            .iter()
            .filter_map(|machine| time_until_available(machine, least))
            .min();
        Ok(pause.into_iter().chain(counts).min())
    }

    fn sets_api(&self) -> Api<MachineSet> {
        self.seed.namespaced(&self.namespace)
    }
}

/// The error that requeues the deployment after the update of a set.
fn requeue_after_update(set: &MachineSet, change: &str) -> Error {
    Error::not_ready(
        REQUEUE_ON_CONFLICT,
        format!("MachineSet {}: {change}", set.name_any()),
    )
}

fn machines_of<'m>(machines: &'m [Arc<Machine>], set: &MachineSet) -> Vec<&'m Machine> {
    let own = machines.iter().filter(|machine| machine_belongs_to(machine, set));
    own.map(Arc::as_ref).collect()
}

impl Reconciler<MachineDeployment> for MachineDeployments {
    const NAME: &'static str = "machine-deployment";
    const FINALIZER: Option<&'static str> = Some(FINALIZER);

    async fn apply(&self, deployment: Arc<MachineDeployment>) -> Result<Next> {
        let spec = &deployment.spec;
        let mut sets = Sets::sort(self.claim_sets(&deployment).await?, &spec.template);
        let mut collisions = deployment
            .status
            .as_ref()
            .and_then(|status| status.collision_count);
        let wanted = RolloutSpec::from_deployment(&deployment.name_any(), spec);
        let step = match &wanted {
            Ok(wanted) => {
                if sets.new.is_none()
                    && (wanted.strategy != RolloutStrategy::Paused || sets.old.is_empty())
                    && !self
                        .create_set(&deployment, &mut sets, collisions.unwrap_or_default())
                        .await?
                {
                    collisions = Some(collisions.unwrap_or_default() + 1);
                    Err(Error::not_ready(
                        REQUEUE_ON_CONFLICT,
                        "the name of the next set is taken",
                    ))
                } else {
                    self.take_step(&deployment, wanted, &sets).await
                }
            }
            Err(error) => Err(error.clone()),
        };
        let requeue = self
            .write_status(
                &deployment,
                wanted.as_ref().ok(),
                &sets,
                collisions,
                step.as_ref().err(),
            )
            .await?;
        step?;
        let machines = self.machines.all()?;
        let is_empty = |set: &MachineSet| !machines.iter().any(|machine| machine_belongs_to(machine, set));
        for set in sets.removable_sets(spec.revision_history_limit, is_empty) {
            info!(set = set.name_any(), "an old set is forgotten");
            removal::delete(&self.sets_api(), set).await?;
        }
        Ok(requeue.map_or(Next::Change, Next::After))
    }

    /// Deletes the sets first. A deletion that orphans the dependents keeps the sets.
    async fn cleanup(&self, deployment: Arc<MachineDeployment>) -> Result<Next> {
        if deployment.finalizers().iter().any(|f| f == "orphan") {
            return Ok(Next::Change);
        }
        let own = self.claim_sets(&deployment).await?;
        let machines = self.machines.all()?;
        let of_own = machines
            .iter()
            .filter(|machine| own.iter().any(|set| machine_belongs_to(machine, set)));
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

fn machine_belongs_to(machine: &Machine, set: &MachineSet) -> bool {
    let mut owners = machine.owner_references().iter();
    owners.any(|owner| owner.controller == Some(true) && Some(&owner.uid) == set.meta().uid.as_ref())
}

fn failed_machine(machine: &Machine) -> FailedMachine {
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

/// The fields of a deployment that wake the controller. The numbers of the status are among the fields, as
/// for a set.
pub fn fingerprint(deployment: &MachineDeployment) -> Option<u64> {
    let meta = &deployment.metadata;
    let status = deployment.status.as_ref();
    runner::fingerprint((
        &meta.uid,
        meta.generation,
        meta.deletion_timestamp.is_some(),
        &meta.finalizers,
        status.map(|status| (status.replicas, status.updated_replicas, status.ready_replicas)),
        status.map(|status| (status.available_replicas, status.failed_machines.len())),
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
