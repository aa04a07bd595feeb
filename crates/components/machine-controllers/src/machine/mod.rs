//! A Machine: the instance, the Node, the health and the deletion.
//!
//! | file | purpose |
//! |---|---|
//! | `create` | finds the instance, creates the instance of a Machine that never had an instance |
//! | `launch`, `launch_query` | reports a launch that the cloud has accepted and then ended |
//! | `health`, `expiry` | the health of a Machine, and the time of a replacement |
//! | `deletion`, `drain` | cordon, pods, volumes, instance, Node, in this order |
//! | `silence`, `ended_instances` | the end of instances of an isolated zone under a silent API |
//! | `request` | the deletion that a user asks for on the Node |
//! | `token` | the bootstrap token for the kubelet |
//! | `out_of_service`, `power`, `power_query` | the Node of an instance that is off |
//! | `identity`, `status` | the instance and the Node of a Machine, and its status |
//! | `configuration` | timeouts of a Machine, and the conditions of an unhealthy Node |
//! | `node_template` | labels, annotations and taints of the Node |
//!
//! A step that needs the shoot's API and gets no answer changes no object and is retried (`reach`). Only an
//! isolated zone bounds this wait (`silence`).

mod configuration;
mod create;
mod deletion;
mod drain;
mod ended_instances;
mod expiry;
mod health;
mod identity;
mod launch;
mod launch_query;
mod node_template;
mod out_of_service;
mod power;
mod power_query;
mod request;
mod silence;
mod status;
mod token;

use std::{future::Future, sync::Arc};

use api::machine::{Machine, MachineClass};
use futures::Stream;
use k8s_openapi::api::core::v1::Node;
use kube::{
    ResourceExt,
    runtime::{controller::Controller, reflector::ObjectRef, watcher},
};
use runtime::{
    Result,
    client::{Seed, Shoot, apply::FieldManager},
    controller::{
        Events, Next, Reconciler,
        runner::{self, Settings},
    },
};
use tracing::info;

use self::{
    configuration::MachineConfiguration,
    drain::{Drain, Volumes},
    ended_instances::EndedInstances,
    health::{HealthInputs, Verdict, judge_health},
    launch::LaunchQuestions,
    power::PowerQuestions,
    status::{MachineReport, Operation, State},
    token::Tokens,
};
use crate::{
    cloud::Cloud,
    constants::{FINALIZER, NODE},
    context::{Context, Timing},
    feed::Cache,
    phase::Phase,
    reach::Reach,
};

pub use identity::{is_forced, node_name, provider_id};
pub use status::elapsed_since;

/// The controller of Machines.
pub struct Machines {
    seed: Seed,
    shoot: Shoot,
    namespace: String,
    manager: FieldManager,
    events: Events,
    /// Events that users of the shoot see.
    shoot_events: Events,
    power: PowerQuestions,
    launches: LaunchQuestions,
    timing: Timing,
    cloud: Cloud,
    tokens: Tokens,
    drain: Drain,
    volumes: Volumes,
    ended: EndedInstances,
    reach: Arc<Reach>,
    cache: Cache<Machine>,
    nodes: Cache<Node>,
    /// Held while a Machine is marked as failed: two concurrent decisions would not see each other's result.
    judging: tokio::sync::Mutex<()>,
}

impl Machines {
    /// The controller, with the parts that several controllers share.
    pub fn new(context: &Context, reach: Arc<Reach>, machines: Cache<Machine>, nodes: Cache<Node>) -> Self {
        Self {
            seed: context.control.clone(),
            shoot: context.shoot.clone(),
            namespace: context.namespace.clone(),
            manager: context.manager,
            events: context.settings.events.clone(),
            shoot_events: Events::new(
                runtime::client::Cluster::client(&context.shoot).clone(),
                context.manager.0,
            ),
            power: PowerQuestions::new(&context.timing, context.settings.concurrency),
            launches: LaunchQuestions::new(&context.timing),
            timing: context.timing.clone(),
            cloud: Cloud::new(context),
            tokens: Tokens::new(&context.shoot, context.manager),
            drain: Drain::new(&context.shoot, context.settings.concurrency),
            volumes: Volumes::new(&context.shoot, context.timing.poll_interval),
            ended: EndedInstances::default(),
            reach,
            cache: machines,
            nodes,
            judging: tokio::sync::Mutex::default(),
        }
    }

    /// Runs until shutdown.
    pub fn run(
        self,
        machines: impl Stream<Item = Result<Machine, watcher::Error>> + Send + 'static,
        nodes: impl Stream<Item = Result<Node, watcher::Error>> + Send + 'static,
        classes: impl Stream<Item = Result<MachineClass, watcher::Error>> + Send + 'static,
        settings: Settings,
    ) -> impl Future<Output = ()> + Send {
        let all = self.cache.store();
        let of_node = move |node: Node| {
            let name = node.name_any();
            let own = all.state_filter(|machine| machine.labels().get(NODE) == Some(&name));
            own.iter()
                .map(|machine| ObjectRef::from_obj(machine.as_ref()))
                .collect::<Vec<_>>()
        };
        let all = self.cache.store();
        // A class that is created or corrected wakes the Machines that wait for the class.
        let of_class = move |class: MachineClass| {
            let name = class.name_any();
            let waiting = all.state_filter(|machine| {
                let of = machine
                    .spec
                    .class
                    .as_ref()
                    .and_then(|class| class.name.as_deref());
                of == Some(&name) && Phase::from_machine(machine) != Phase::Running
            });
            waiting
                .iter()
                .map(|machine| ObjectRef::from_obj(machine.as_ref()))
                .collect::<Vec<_>>()
        };
        let controller = Controller::for_stream(machines, self.cache.store())
            .watches_stream(nodes, of_node)
            .watches_stream(classes, of_class);
        let seed = self.seed.clone();
        async move { runner::run_namespaced(controller, &seed, Arc::new(self), settings).await }
    }

    async fn check_health(
        &self,
        machine: &Arc<Machine>,
        configuration: &MachineConfiguration,
        node: &str,
    ) -> Result<Next> {
        let node = self.nodes.get(&ObjectRef::new(node))?;
        let phase = Phase::from_status(machine);
        let timed = matches!(
            phase,
            Some(Phase::Pending | Phase::Unknown | Phase::CrashLoopBackOff)
        );
        let phase_age = if timed {
            status::phase_age(machine).min(self.reach.check_reachable().await?)
        } else {
            std::time::Duration::ZERO
        };
        let mut marked = Next::Change;
        if let Some(node) = &node {
            self.apply_node_template(machine, node).await?;
            marked = Box::pin(self.mark_out_of_service(machine, node)).await?;
        } else if matches!(phase, Some(Phase::Pending | Phase::CrashLoopBackOff))
            && let Some(next) = Box::pin(self.report_ended_launch(machine, configuration)).await?
        {
            return Ok(next);
        }
        let inputs = HealthInputs {
            phase,
            phase_age,
            node: node.as_deref(),
        };
        let (report, next) = match judge_health(&inputs, configuration) {
            Verdict::Stays => (None, Next::Change),
            Verdict::Waits(_) => (None, Next::After(self.timing.poll_interval)),
            Verdict::Expired(why) => return self.expire(machine, configuration, &why).await,
            Verdict::BecomesPhase(new_phase, why) => {
                let report = self.report_phase_change(machine, phase, new_phase, why).await?;
                (Some(report), Next::Change)
            }
        };
        let next = match &report {
            Some(report) if report.phase != Phase::Running => Next::After(self.timing.poll_interval),
            _ if next == Next::Change => marked,
            _ => next,
        };
        let conditions = node
            .as_ref()
            .and_then(|node| node.status.as_ref()?.conditions.as_deref());
        status::write(
            self.manager,
            &self.machines_api(),
            machine,
            report.as_ref(),
            conditions,
        )
        .await?;
        Ok(next)
    }

    /// Acts on a new phase of a Machine, and returns the report.
    async fn report_phase_change(
        &self,
        machine: &Machine,
        former: Option<Phase>,
        new_phase: Phase,
        why: String,
    ) -> Result<MachineReport> {
        let name = machine.name_any();
        info!(
            machine = name,
            phase = new_phase.as_str(),
            why,
            "a machine enters a phase"
        );
        Ok(match new_phase {
            Phase::Running if former == Some(Phase::Unknown) => {
                MachineReport::new(new_phase, Operation::HealthCheck, State::Successful, why)
            }
            Phase::Running => {
                // The kubelet has a certificate now. A restored Machine has no token, or no longer needs the
                // token.
                self.tokens.remove(machine).await?;
                MachineReport::new(new_phase, Operation::Create, State::Successful, why)
            }
            Phase::Unknown => {
                self.events.warning(machine, "Unhealthy", &why).await;
                MachineReport::new(new_phase, Operation::HealthCheck, State::Processing, why)
            }
            _ => MachineReport::new(new_phase, Operation::Create, State::Processing, why),
        })
    }
}

impl Reconciler<Machine> for Machines {
    const NAME: &'static str = "machine";
    const FINALIZER: Option<&'static str> = Some(FINALIZER);

    async fn apply(&self, machine: Arc<Machine>) -> Result<Next> {
        let configuration = MachineConfiguration::from_machine(&machine, &self.timing)?;
        if self.delete_on_request(&machine).await? {
            return Ok(Next::Change);
        }
        if Phase::from_status(&machine) == Some(Phase::Failed) {
            return Ok(Next::Change);
        }
        match (provider_id(&machine), node_name(&machine)) {
            (Some(_), Some(node)) => self.check_health(&machine, &configuration, node).await,
            _ => self.ensure_instance(&machine, &configuration).await,
        }
    }

    async fn cleanup(&self, machine: Arc<Machine>) -> Result<Next> {
        self.continue_deletion(&machine).await
    }
}

/// The fields of a Machine that wake the controller. The phase is a field, although this controller writes
/// the phase: a decision between the write and the event of the write was made on the former phase. The
/// phases of a creation that the cloud refuses are left out: these events would skip the back-off.
pub fn fingerprint(machine: &Machine) -> Option<u64> {
    let meta = &machine.metadata;
    runner::fingerprint((
        &meta.uid,
        meta.generation,
        meta.deletion_timestamp.is_some(),
        &meta.labels,
        &meta.finalizers,
        Phase::from_status(machine)
            .filter(|phase| !matches!(phase, Phase::Pending | Phase::CrashLoopBackOff)),
    ))
}

/// The fields of a Node that wake the controller. Heartbeats are left out.
pub fn node_fingerprint(node: &Node) -> Option<u64> {
    let conditions = node
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let conditions: Vec<_> = conditions
        .map(|condition| (&condition.type_, &condition.status))
        .collect();
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let taints: Vec<_> = taints
        .map(|taint| (&taint.key, &taint.value, &taint.effect))
        .collect();
    runner::fingerprint((
        &node.metadata.uid,
        node.metadata.deletion_timestamp.is_some(),
        conditions,
        taints,
        &node.metadata.labels,
        &node.metadata.annotations,
    ))
}

/// Images take most of the memory of a Node, and no controller here reads images.
pub fn trim_node(node: &mut Node) {
    if let Some(status) = &mut node.status {
        status.images = None;
        status.volumes_attached = None;
        status.volumes_in_use = None;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn machine_in(phase: Option<&str>) -> Machine {
        serde_json::from_value(json!({
            "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine", "metadata": {"name": "m"},
            "spec": {"class": {"name": "c"}}, "status": {"currentStatus": {"phase": phase}},
        }))
        .unwrap()
    }

    /// Between the write of a phase and the event of that write, a decision is made on the former phase.
    #[test]
    fn a_written_phase_wakes_the_controller() {
        let before = fingerprint(&machine_in(Some("Running")));
        for phase in ["Unknown", "Failed"] {
            assert_ne!(fingerprint(&machine_in(Some(phase))), before, "{phase}");
        }
    }

    /// The first attempt writes two phases. Their events would start the next attempt without the back-off.
    #[test]
    fn a_refused_creation_waits_for_the_back_off() {
        let before = fingerprint(&machine_in(None));
        for phase in ["Pending", "CrashLoopBackOff"] {
            assert_eq!(fingerprint(&machine_in(Some(phase))), before, "{phase}");
        }
    }
}
