//! The end of a Machine: its Node takes no more pods, the pods leave, volumes are detached, the instance
//! goes, the Node goes, and last the Machine. What was done already is seen and not done again, so that this
//! may be interrupted anywhere and go on on another seed.

use std::sync::Arc;

use api::machine::{Machine, MachineDeployment, MachineSet};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Preconditions},
};
use runtime::{Cluster as _, Error, Next, Result, error::Explain as _, finalizer};
use serde_json::json;
use tracing::info;

use super::{
    Machines,
    bounds::Bounds,
    drain::{Detachment, Drained, silent_for},
    identity::{is_forced, node_name, provider_id},
    status::{Doing, MachineReport, State, since},
};
use crate::{driver::Instance, phase::Phase, reach::bounded_write, words::FINALIZER};

impl Machines {
    /// Goes on with a deletion. The finalizer stays until it is `Next::Change`.
    pub(super) async fn take_away(&self, seen: &Arc<Machine>) -> Result<Next> {
        // As it is now: what was seen last may be done already, and the cloud is not asked twice.
        let read = self.machines_api().get_opt(&seen.name_any()).await;
        let read = read.context(format_args!("could not read Machine {}", seen.name_any()))?;
        let own = |machine: &Machine| {
            machine.uid() == seen.uid() && machine.finalizers().iter().any(|f| f == FINALIZER)
        };
        let Some(machine) = &read.filter(own).map(Arc::new) else {
            return Ok(Next::Change);
        };
        match self.steps(machine).await {
            Err(error) if error.is_failure() => {
                let told = MachineReport::error(Phase::Terminating, Doing::Delete, &error);
                self.tell(machine, &told).await?;
                Err(error)
            }
            Err(Error::NotReady { after, why }) => {
                self.telling(machine, &why).await?;
                Err(Error::NotReady { after, why })
            }
            other => other,
        }
    }

    async fn steps(&self, machine: &Arc<Machine>) -> Result<Next> {
        let machine = &self.with_instance(machine).await?;
        let bounds = Bounds::from_machine(machine, &self.timing)?;
        let node = match self.node_to_leave(machine).await {
            Ok(node) => node,
            Err(why) => {
                self.leave_undrained(machine, &bounds, why).await?;
                None
            }
        };
        if let Some(node) = &node {
            if let Err(refused) = self.cordon(node).await {
                self.pass_over(machine, Some(node), &bounds, refused).await?;
            }
            if !is_forced(machine) {
                Box::pin(self.mark_out_of_service(machine, node)).await?;
            }
            let is_released = is_forced(machine)
                || self.empty(machine, node, &bounds).await?
                    && self.are_volumes_detached(machine, node, &bounds).await?;
            if !is_released {
                return Ok(Next::After(self.timing.look_every));
            }
        }
        // The report of an earlier attempt stays: the cause of a termination that hangs or is refused.
        if !self.cloud.has_asked_to_delete(machine) {
            self.telling(machine, "its instance is deleted").await?;
        }
        let class = self.cloud.class(machine).await?;
        self.cloud.delete(machine, &class).await?;
        info!(machine = machine.name_any(), "its instance is gone");
        let node = match node {
            // The kubelet may have registered after the first read.
            None if !is_forced(machine) => {
                let node = self.node_to_leave(machine).await;
                node.map_err(|why| self.keep_for_node(machine, why))?
            }
            node => node,
        };
        // Both are tried: a refusal of the token's deletion is no reason to leave the Node.
        let removals = [
            self.tokens.remove(machine).await,
            self.forget(node.as_ref()).await,
        ];
        for refused in removals.into_iter().filter_map(Result::err) {
            self.pass_over(machine, node.as_ref(), &bounds, refused).await?;
        }
        self.release(machine).await
    }

    /// The Machine with its Node's name and its instance's ID. A Machine that was deleted between the launch
    /// of the instance and the first write of both would leave the Node where no cloud-controller-manager
    /// removes Nodes.
    async fn with_instance(&self, machine: &Arc<Machine>) -> Result<Arc<Machine>> {
        if node_name(machine).is_some() {
            return Ok(Arc::clone(machine));
        }
        // Before the first listing of Nodes the cloud is asked.
        let known = provider_id(machine).and_then(|id| {
            Some(Instance {
                provider_id: id.to_owned(),
                node_name: self.node_of(id).ok().flatten()?,
            })
        });
        let instance = if known.is_some() {
            known
        } else {
            let class = self.cloud.class(machine).await?;
            self.cloud.status(machine, &class).await?
        };
        match instance {
            Some(instance) => self.record(machine, &instance).await.map(Arc::new),
            None => Ok(Arc::clone(machine)),
        }
    }

    /// Goes on after a refused write to the shoot where the bound of the drain is over, and reports the
    /// refusal: a webhook of the shoot's users without backend would otherwise keep the Machine for ever. The
    /// error is returned before the bound, when the right is lost, and when the API does not answer reads
    /// either.
    async fn pass_over(
        &self,
        machine: &Machine,
        node: Option<&Node>,
        bounds: &Bounds,
        refused: Error,
    ) -> Result<()> {
        if is_forced(machine) {
            info!(machine = machine.name_any(), why = %refused, "deletion is forced, a refused write is left");
            return Ok(());
        }
        if !refused.is_failure() || !self.is_refusal_over(machine, node, bounds).await? {
            return Err(refused);
        }
        let now = self.check_answers(machine).await?;
        // A later Node of the same name belongs to another Machine: its pods are not deleted.
        if node.zip(now).is_some_and(|(node, now)| node.uid() != now.uid()) {
            return Err(refused);
        }
        let report = format!(
            "the deletion of the Machine goes on without a write that the shoot's API refused: {refused}"
        );
        self.events.warning(machine, "DeletionRefused", &report).await;
        Ok(())
    }

    /// Whether refusals of the shoot's API hold the deletion no longer. Where no machine is wanted, the
    /// backend of a webhook finds no other Node, and is waited for as long as a kubelet.
    async fn is_refusal_over(&self, machine: &Machine, node: Option<&Node>, bounds: &Bounds) -> Result<bool> {
        if node.is_some_and(|node| self.reason_to_stop_waiting(machine, node, bounds).is_some()) {
            return Ok(true);
        }
        let lasts = since(machine.meta().deletion_timestamp.as_ref().map(|time| time.0));
        Ok(lasts >= bounds.drain || lasts >= self.timing.kubelet_is_gone && !self.is_any_wanted().await?)
    }

    /// A refused write is told from an API that does not answer by a read that is made now. Returns the Node.
    async fn check_answers(&self, machine: &Machine) -> Result<Option<Node>> {
        match node_name(machine) {
            Some(name) => self.reach.node(name).await,
            None => self.reach.answers_for().await.map(|_| None),
        }
    }

    /// Takes the finalizer away here: the runner knows the object as it was before its status was written,
    /// collides, and would have the cloud asked once more.
    async fn release(&self, machine: &Machine) -> Result<Next> {
        let read = self.machines_api().get_opt(&machine.name_any()).await;
        let read = read.context(format_args!("could not read Machine {}", machine.name_any()))?;
        if let Some(now) = read.filter(|now| now.uid() == machine.uid()) {
            finalizer::remove(&self.machines_api(), &now, FINALIZER).await?;
        }
        self.power.forget(&machine.uid().unwrap_or_default());
        self.launches.forget(&machine.uid().unwrap_or_default());
        self.volumes.forget(&machine.uid().unwrap_or_default());
        self.ended.forget(&machine.uid().unwrap_or_default());
        Ok(Next::Change)
    }

    /// The Node, unless the name belongs to another instance. Read live: what an answer is missing for is not
    /// deleted.
    async fn node_to_leave(&self, machine: &Machine) -> Result<Option<Node>> {
        let Some(name) = node_name(machine) else {
            // Without a Node nothing is drained; but whether the shoot's API answers counts all the same.
            self.reach.answers_for().await?;
            return Ok(None);
        };
        Ok(self.reach.node(name).await?.filter(|node| is_of(node, machine)))
    }

    async fn cordon(&self, node: &Node) -> Result<()> {
        if node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true) {
            return Ok(());
        }
        let nodes: Api<Node> = self.shoot.cluster_wide();
        let body = json!({"metadata": {"uid": node.uid()}, "spec": {"unschedulable": true}});
        bounded_write(self.manager.merge(&nodes, &node.name_any(), &body))
            .await
            .map(drop)
    }

    /// Why the pods of a Node are not waited for any more; `None` while they are.
    fn reason_to_stop_waiting(&self, machine: &Machine, node: &Node, bounds: &Bounds) -> Option<String> {
        let lasts = since(machine.meta().deletion_timestamp.as_ref().map(|time| time.0));
        if lasts >= bounds.drain {
            return Some(format!("they did not leave within {:?}", bounds.drain));
        }
        let silent = silent_for(node).filter(|time| *time >= self.timing.kubelet_is_gone)?;
        Some(format!(
            "their kubelet has not been ready for {} s, so that nobody can end them",
            silent.as_secs()
        ))
    }

    /// Whether the pods have left, or need not be waited for any more.
    async fn empty(&self, machine: &Machine, node: &Node, bounds: &Bounds) -> Result<bool> {
        if let Some(why) = self.reason_to_stop_waiting(machine, node, bounds) {
            self.give_up_waiting(machine, node, &why).await?;
            return Ok(true);
        }
        let lasts = since(machine.meta().deletion_timestamp.as_ref().map(|time| time.0));
        let wait = self.timing.look_every.min(bounds.drain.saturating_sub(lasts));
        match self.drain.round(&node.name_any(), wait).await? {
            Drained::Empty => Ok(true),
            Drained::Waits(why) => {
                let is_rest_refused = if self.is_any_wanted().await? {
                    false
                } else {
                    let why = "no machine is wanted any more, so that no pod in their place can start";
                    self.give_up_waiting(machine, node, why).await?
                };
                if is_rest_refused {
                    return self.is_refusal_over(machine, Some(node), bounds).await;
                }
                self.telling(machine, &format!("pods leave its Node: {why}"))
                    .await?;
                Ok(false)
            }
        }
    }

    /// Whether all volumes of the Node are detached, or are waited for no longer. Where the time of the drain
    /// is over, pods may still use the volumes, so that waiting is useless.
    async fn are_volumes_detached(&self, machine: &Machine, node: &Node, bounds: &Bounds) -> Result<bool> {
        if self.reason_to_stop_waiting(machine, node, bounds).is_some() {
            return Ok(true);
        }
        let (uid, name, bound) = (
            machine.uid().unwrap_or_default(),
            node.name_any(),
            self.timing.detach,
        );
        match self.volumes.detachment(&uid, &name, bound).await? {
            Detachment::Done => Ok(true),
            Detachment::Waits(volumes) => {
                let waits = format!("volumes are detached from its Node: {volumes}");
                self.telling(machine, &waits).await?;
                Ok(false)
            }
            Detachment::TimedOut(volumes) => {
                let report = format!(
                    "volumes were not detached from Node {name} within {bound:?} after its pods had left, and the instance \
                     ends with them: {volumes}"
                );
                self.events.warning(machine, "VolumesNotDetached", &report).await;
                Ok(true)
            }
        }
    }

    /// Whether pods can run elsewhere, now or soon. A budget that waits for that is waited for no longer than
    /// it can come: of a shoot that falls asleep, or goes, all machines go.
    async fn is_any_wanted(&self) -> Result<bool> {
        let stays = |machine: &Arc<Machine>| machine.metadata.deletion_timestamp.is_none();
        if self.known.all()?.iter().any(stays) {
            return Ok(true);
        }
        let (sets, deployments): (Api<MachineSet>, Api<MachineDeployment>) = (
            self.seed.namespaced(&self.namespace),
            self.seed.namespaced(&self.namespace),
        );
        let sets = sets.list(&ListParams::default()).await;
        let sets = sets.context("could not list MachineSets")?;
        let deployments = deployments.list(&ListParams::default()).await;
        let deployments = deployments.context("could not list MachineDeployments")?;
        let of_sets = sets.iter().map(|set| set.spec.replicas);
        let of_deployments = deployments.iter().map(|deployment| deployment.spec.replicas);
        let mut wanted = of_sets.chain(of_deployments).flatten();
        Ok(wanted.any(|replicas| replicas > 0))
    }

    /// Nobody waits any more for the pods: they are deleted, whatever their budgets say, and that is told.
    /// Returns whether the API refuses to delete all pods that are left.
    async fn give_up_waiting(&self, machine: &Machine, node: &Node, why: &str) -> Result<bool> {
        let name = node.name_any();
        let forced = self.drain.force(&name).await?;
        let mut sentences = Vec::new();
        if let Some(pods) = &forced.deleted {
            sentences.push(format!("pods of Node {name} were deleted, since {why}: {pods}"));
        }
        if let Some(pods) = &forced.refused {
            self.check_answers(machine).await?;
            sentences.push(format!(
                "the shoot's API refused to delete pods of Node {name}, which end with the instance: {pods}"
            ));
        }
        if !sentences.is_empty() {
            let told = sentences.join("; ");
            self.events.warning(machine, "DrainTimedOut", &told).await;
            self.telling(machine, &told).await?;
        }
        Ok(forced.is_rest_refused)
    }

    async fn telling(&self, machine: &Machine, what: &str) -> Result<()> {
        let told = MachineReport::new(Phase::Terminating, Doing::Delete, State::Processing, what);
        self.tell(machine, &told).await
    }

    /// Removes the Node, exactly the one that was drained.
    async fn forget(&self, node: Option<&Node>) -> Result<()> {
        let Some(node) = node else { return Ok(()) };
        let nodes: Api<Node> = self.shoot.cluster_wide();
        let exactly = DeleteParams {
            preconditions: Some(Preconditions {
                uid: node.uid(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match nodes.delete(&node.name_any(), &exactly).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
            Err(error) => Err(error).context(format_args!("could not delete Node {}", node.name_any())),
        }
    }
}

/// A Node that says it is another instance has taken the name since.
pub(super) fn is_of(node: &Node, machine: &Machine) -> bool {
    let said = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
    match (said.filter(|id| !id.is_empty()), provider_id(machine)) {
        (Some(said), Some(own)) => said == own,
        _ => true,
    }
}
