//! A MachineSet: the requested number of Machines from a template. The controller adopts orphans before
//! counting, counts on a live list before any change, and deletes no Machine while the shoot's API does not
//! answer.

mod decide;
mod status;

use std::{collections::BTreeSet, future::Future, sync::Arc};

use api::{
    constants::WRITTEN_IN_EPOCH,
    machine::{Machine, MachineSet, MachineSpec},
};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api, Resource, ResourceExt,
    api::{ListParams, PostParams},
    core::SelectorExt as _,
    runtime::{controller::Controller, reflector::ObjectRef, watcher},
};
use runtime::{
    Error, Result,
    client::{Cluster as _, Seed, apply::FieldManager},
    controller::{
        Events, Next, Reconciler,
        runner::{self, Settings},
    },
    error::Explain as _,
};
use serde_json::json;
use tracing::info;

use self::decide::{BURST, Plan, plan_changes};
use crate::{
    constants::FINALIZER,
    context::Context,
    feed::Cache,
    isolation::is_isolated,
    merge_patch::merge_patch,
    outgoing::Outgoing,
    owners::{OwnerRelation, adoption_patch, find_owner_relation, owner_reference, selector},
    phase::Phase,
    reach::Reach,
    removal,
};

pub use decide::outgoing_machines;
pub use status::{is_available, min_ready_duration, time_until_available};

/// Requests for Machines that are under way at once.
const AT_ONCE: usize = 5;

/// The controller of MachineSets.
pub struct MachineSets {
    seed: Seed,
    namespace: String,
    manager: FieldManager,
    events: Events,
    reach: Arc<Reach>,
    sets: Cache<MachineSet>,
    machines: Cache<Machine>,
    outgoing: Arc<Outgoing>,
}

impl MachineSets {
    /// The controller, with the parts that several controllers share.
    pub fn new(
        context: &Context,
        reach: Arc<Reach>,
        sets: Cache<MachineSet>,
        machines: Cache<Machine>,
        outgoing: Arc<Outgoing>,
    ) -> Self {
        Self {
            seed: context.control.clone(),
            namespace: context.namespace.clone(),
            manager: context.manager,
            events: context.settings.events.clone(),
            reach,
            sets,
            machines,
            outgoing,
        }
    }

    /// Runs until shutdown.
    pub fn run(
        self,
        sets: impl Stream<Item = Result<MachineSet, watcher::Error>> + Send + 'static,
        machines: impl Stream<Item = Result<Machine, watcher::Error>> + Send + 'static,
        settings: Settings,
    ) -> impl Future<Output = ()> + Send {
        let all = self.sets.store();
        let of_machine = move |machine: Machine| {
            // A Machine without a living owner belongs to any set that selects the Machine.
            let owner = machine.owner_references().iter().find(|o| o.kind == "MachineSet");
            let of = all.state_filter(|set| {
                owner.is_some_and(|owner| set.uid().as_ref() == Some(&owner.uid))
                    || selector("", set.spec.selector.as_ref()).is_ok_and(|s| s.matches(machine.labels()))
            });
            of.iter()
                .map(|set| ObjectRef::from_obj(set.as_ref()))
                .collect::<Vec<_>>()
        };
        let controller = Controller::for_stream(sets, self.sets.store()).watches_stream(machines, of_machine);
        let seed = self.seed.clone();
        async move { runner::run_namespaced(controller, &seed, Arc::new(self), settings).await }
    }

    /// Selects the Machines of the set, and the Machines that the set has to adopt.
    fn claim_machines<'a>(
        &self,
        set: &MachineSet,
        all: impl Iterator<Item = &'a Machine>,
    ) -> Result<(Vec<&'a Machine>, Vec<&'a Machine>)> {
        let selector = selector(
            &format!("MachineSet {}", set.name_any()),
            set.spec.selector.as_ref(),
        )?;
        let living: BTreeSet<_> = self.sets.all()?.iter().filter_map(|set| set.uid()).collect();
        let (mut own, mut orphans) = (Vec::new(), Vec::new());
        for machine in all {
            match find_owner_relation(machine.meta(), set, &selector, &living) {
                OwnerRelation::Own => own.push(machine),
                // A Machine in deletion is not adopted.
                OwnerRelation::Orphan if machine.meta().deletion_timestamp.is_none() => orphans.push(machine),
                _ => {}
            }
        }
        Ok((own, orphans))
    }

    /// Reconciles with a live list: the cache may lack a Machine that was just created.
    async fn reconcile_live(&self, set: &MachineSet) -> Result<()> {
        let api = self.api();
        let live = api.list(&ListParams::default()).await;
        let live = live.context("could not list Machines")?.items;
        let (mut own, orphans) = self.claim_machines(set, live.iter())?;
        for orphan in &orphans {
            let name = orphan.name_any();
            info!(machine = name, set = set.name_any(), "a machine is adopted");
            let body = adoption_patch(orphan.meta(), set);
            if self.manager.try_merge_of(&api, *orphan, &body).await?.is_none() {
                return Err(Error::not_ready(
                    std::time::Duration::from_secs(1),
                    format!("Machine {name} was changed by another writer during the adoption"),
                ));
            }
        }
        own.extend(orphans);
        self.update_in_place(set, &own).await?;
        let plan = build_plan(set, &own);
        if !plan.replace.is_empty() || !plan.surplus.is_empty() {
            self.delete(set, &plan, &own).await?;
        }
        self.create(set, plan.create).await
    }

    async fn delete(&self, set: &MachineSet, plan: &Plan, own: &[&Machine]) -> Result<()> {
        self.reach.check_reachable().await?;
        self.outgoing.mark(outgoing_machines(replicas(set), own)).await?;
        for (names, reason) in [(&plan.replace, "ReplacesFailed"), (&plan.surplus, "ScalesDown")] {
            for name in names {
                let Some(machine) = own.iter().find(|machine| machine.name_any() == *name) else {
                    continue;
                };
                let phase = Phase::from_machine(machine).as_str();
                info!(
                    machine = name,
                    set = set.name_any(),
                    phase,
                    reason,
                    "a machine is deleted"
                );
                removal::delete(&self.api(), *machine).await?;
                self.events
                    .normal(
                        set,
                        reason,
                        &format!("Machine {name}, which was {phase}, is deleted"),
                    )
                    .await;
            }
        }
        Ok(())
    }

    async fn create(&self, set: &MachineSet, count: usize) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let (wanted, params) = (build_machine(set, &self.namespace)?, PostParams::default());
        let api = self.api();
        stream::iter(0..count)
            .map(|_| api.create(&params, &wanted))
            .buffer_unordered(AT_ONCE)
            .try_for_each(|made| {
                info!(
                    machine = made.name_any(),
                    set = set.name_any(),
                    "a machine is made"
                );
                std::future::ready(Ok(()))
            })
            .await
            .context(format_args!(
                "could not create a Machine of MachineSet {}",
                set.name_any()
            ))
    }

    /// Updates the mutable fields of Machines from the template: the node template, and bounds.
    async fn update_in_place(&self, set: &MachineSet, own: &[&Machine]) -> Result<()> {
        let Some(template) = set
            .spec
            .template
            .as_ref()
            .and_then(|template| template.spec.as_ref())
        else {
            return Ok(());
        };
        for machine in own {
            if let Some(body) = in_place_patch(&machine.spec, template) {
                let _: Machine = self
                    .manager
                    .merge(&self.api(), &machine.name_any(), &json!({"spec": body}))
                    .await?;
            }
        }
        Ok(())
    }

    fn api(&self) -> Api<Machine> {
        self.seed.namespaced(&self.namespace)
    }
}

impl Reconciler<MachineSet> for MachineSets {
    const NAME: &'static str = "machine-set";
    const FINALIZER: Option<&'static str> = Some(FINALIZER);

    async fn apply(&self, set: Arc<MachineSet>) -> Result<Next> {
        let known = self.machines.all()?;
        let (own, orphans) = self.claim_machines(&set, known.iter().map(Arc::as_ref))?;
        let template = set
            .spec
            .template
            .as_ref()
            .and_then(|template| template.spec.as_ref());
        let is_up_to_date = template.is_none_or(|template| {
            own.iter()
                .all(|machine| in_place_patch(&machine.spec, template).is_none())
        });
        let plan = build_plan(&set, &own);
        let reconciled = if plan.is_empty() && orphans.is_empty() && is_up_to_date {
            Ok(())
        } else {
            self.reconcile_live(&set).await
        };
        let sets: Api<MachineSet> = self.seed.namespaced(&self.namespace);
        let counted = status::write(self.manager, &sets, &set, &own, reconciled.as_ref().err()).await?;
        reconciled?;
        // The plan has more changes than a burst: the rest follows when the watch shows this burst, or after
        // a second.
        let more = plan.create == BURST || plan.surplus.len() == BURST;
        Ok(match counted {
            Some(pause) => Next::After(pause),
            None if more => Next::After(std::time::Duration::from_secs(1)),
            None => Next::Change,
        })
    }

    /// Deletes the Machines first. A deletion that orphans the dependents keeps the Machines.
    async fn cleanup(&self, set: Arc<MachineSet>) -> Result<Next> {
        if set.finalizers().iter().any(|f| f == "orphan") {
            return Ok(Next::Change);
        }
        let live = self.api().list(&ListParams::default()).await;
        let live = live.context("could not list Machines")?.items;
        let (own, orphans) = self.claim_machines(&set, live.iter())?;
        let all: Vec<_> = own.into_iter().chain(orphans).collect();
        let staying: Vec<_> = all
            .iter()
            .filter(|machine| machine.meta().deletion_timestamp.is_none())
            .copied()
            .collect();
        self.outgoing.mark_if_possible(staying.iter().copied()).await;
        for machine in staying {
            removal::delete(&self.api(), machine).await?;
        }
        if all.is_empty() {
            return Ok(Next::Change);
        }
        // The deletion of each Machine wakes the set.
        Ok(Next::After(std::time::Duration::from_secs(60)))
    }
}

/// The wanted number of Machines of a set.
pub fn replicas(set: &MachineSet) -> usize {
    usize::try_from(set.spec.replicas.unwrap_or_default()).unwrap_or_default()
}

fn build_plan(set: &MachineSet, own: &[&Machine]) -> Plan {
    let template = set
        .spec
        .template
        .as_ref()
        .and_then(|template| template.spec.as_ref());
    let mut plan = plan_changes(replicas(set), own);
    if template.is_some_and(is_isolated) {
        plan.create = 0;
    }
    plan
}

/// Builds a Machine from the template of the set. The server generates a free name, and the name never
/// changes (R7-03).
fn build_machine(set: &MachineSet, namespace: &str) -> Result<Machine> {
    let template = set.spec.template.clone().unwrap_or_default();
    let meta = template.metadata.unwrap_or_default();
    let mut spec = template.spec.unwrap_or_default();
    spec.class = spec.class.or_else(|| set.spec.machine_class.clone());
    // An instance belongs to a single Machine, never to a template.
    spec.provider_id = None;
    let mut labels = meta.labels.unwrap_or_default();
    labels.remove(crate::constants::NODE);
    let selector = selector(
        &format!("MachineSet {}", set.name_any()),
        set.spec.selector.as_ref(),
    )?;
    if !selector.matches(&labels) {
        return Err(Error::config(
            api::meta::ErrorCode::ErrConfigurationProblem,
            format!(
                "spec.selector of MachineSet {} does not select the labels of its own template: correct it",
                set.name_any()
            ),
        ));
    }
    let mut annotations = meta.annotations.unwrap_or_default();
    let epoch = set.annotations().get_key_value(WRITTEN_IN_EPOCH);
    annotations.extend(epoch.map(|(key, epoch)| (key.clone(), epoch.clone())));
    let mut made = Machine::new("", spec);
    made.metadata = ObjectMeta {
        generate_name: Some(format!("{}-", set.name_any())),
        namespace: Some(namespace.to_owned()),
        labels: Some(labels),
        annotations: Some(annotations),
        owner_references: Some(vec![owner_reference(set)]),
        finalizers: Some(vec![FINALIZER.to_owned()]),
        ..ObjectMeta::default()
    };
    Ok(made)
}

/// The merge patch that copies the mutable fields of the template to a Machine.
fn in_place_patch(now: &MachineSpec, template: &MachineSpec) -> Option<serde_json::Value> {
    let part = |spec: &MachineSpec| {
        json!({
            "nodeTemplate": spec.node_template, "drainTimeout": spec.drain_timeout,
            "healthTimeout": spec.health_timeout, "creationTimeout": spec.creation_timeout,
            "disableHealthTimeout": spec.disable_health_timeout, "maxEvictRetries": spec.max_evict_retries,
            "nodeConditions": spec.node_conditions, "inPlaceUpdateTimeout": spec.in_place_update_timeout,
        })
    };
    merge_patch(&part(now), &part(template))
}

/// The fields of a set that wake the controller. The numbers of the status are among the fields, although
/// this controller writes the status: a comparison between the write and its event was made with the former
/// status.
pub fn fingerprint(set: &MachineSet) -> Option<u64> {
    let meta = &set.metadata;
    let status = set.status.as_ref();
    runner::fingerprint((
        &meta.uid,
        meta.generation,
        meta.deletion_timestamp.is_some(),
        &meta.finalizers,
        status.map(|status| (status.replicas, status.ready_replicas, status.available_replicas)),
        status.map(|status| status.failed_machines.len()),
    ))
}

/// The fields of a Machine that wake sets and deployments.
pub fn machine_fingerprint(machine: &Machine) -> Option<u64> {
    let meta = &machine.metadata;
    let owner = meta.owner_references.iter().flatten().map(|owner| &owner.uid);
    runner::fingerprint((
        &meta.uid,
        meta.generation,
        meta.deletion_timestamp.is_some(),
        &meta.labels,
        owner.collect::<Vec<_>>(),
        Phase::from_machine(machine),
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Between the write of a status and the event of that write, the former status is compared.
    #[test]
    fn a_written_status_wakes_the_controller() {
        let mut set: MachineSet = serde_json::from_value(json!({
            "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "MachineSet", "metadata": {"name": "s"},
            "spec": {}, "status": {"readyReplicas": 3},
        }))
        .unwrap();
        let before = fingerprint(&set);
        set.status = serde_json::from_value(json!({"readyReplicas": 2})).unwrap();
        assert_ne!(fingerprint(&set), before);
    }

    #[test]
    fn a_label_that_leaves_the_template_leaves_the_machine() {
        let spec = |node_template: serde_json::Value| -> MachineSpec {
            serde_json::from_value(json!({"class": {"name": "c"}, "nodeTemplate": node_template})).unwrap()
        };
        let metadata = json!({"labels": {"a": "1", "b": "2"}, "annotations": {"c": "3"}});
        let (now, template) = (
            spec(json!({"metadata": metadata})),
            spec(json!({"metadata": {"labels": {"a": "1"}}})),
        );
        let mut whole = json!(now);
        json_patch::merge(&mut whole, &in_place_patch(&now, &template).unwrap());
        let changed: MachineSpec = serde_json::from_value(whole).unwrap();
        assert_eq!(json!(changed.node_template), json!(template.node_template));
        assert_eq!(in_place_patch(&changed, &template), None);
    }
}
