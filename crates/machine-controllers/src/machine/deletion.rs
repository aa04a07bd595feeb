//! The end of a Machine: its Node takes no more pods, the pods leave, the instance goes, the Node goes, and last the Machine.
//! What was done already is seen and not done again, so that this may be interrupted anywhere and go on on another seed.

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
    drain::{Drained, silent_for},
    identity::{is_forced, node_name, provider_id},
    status::{Doing, State, Told, since},
};
use crate::{phase::Phase, words::FINALIZER};

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
                let told = Told::error(Phase::Terminating, Doing::Delete, &error);
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
        let bounds = Bounds::of(machine, &self.timing)?;
        let node = match self.node_to_leave(machine).await {
            Ok(node) => node,
            Err(why) if is_forced(machine) => {
                info!(machine = machine.name_any(), %why, "deletion is forced, its pods are not asked");
                None
            }
            Err(why) => return Err(why),
        };
        if let Some(node) = &node {
            self.cordon(node).await?;
            if !is_forced(machine) && !self.empty(machine, node, &bounds).await? {
                return Ok(Next::After(self.timing.look_every));
            }
        }
        self.telling(machine, "its instance is deleted").await?;
        let class = self.cloud.class(machine).await?;
        self.cloud.delete(machine, &class).await?;
        info!(machine = machine.name_any(), "its instance is gone");
        match self.forget(machine, node.as_ref()).await {
            Err(why) if is_forced(machine) => {
                info!(machine = machine.name_any(), %why, "deletion is forced, its Node is left");
            }
            other => other?,
        }
        self.release(machine).await
    }

    /// Takes the finalizer away here: the runner knows the object as it was before its status was written, collides, and would
    /// have the cloud asked once more.
    async fn release(&self, machine: &Machine) -> Result<Next> {
        let read = self.machines_api().get_opt(&machine.name_any()).await;
        let read = read.context(format_args!("could not read Machine {}", machine.name_any()))?;
        if let Some(now) = read.filter(|now| now.uid() == machine.uid()) {
            finalizer::remove(&self.machines_api(), &now, FINALIZER).await?;
        }
        Ok(Next::Change)
    }

    /// The Node, unless the name belongs to another instance. Read live: what an answer is missing for is not deleted.
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
        self.manager
            .merge(&nodes, &node.name_any(), &body)
            .await
            .map(drop)
    }

    /// Whether the pods have left, or need not be waited for any more.
    async fn empty(&self, machine: &Machine, node: &Node, bounds: &Bounds) -> Result<bool> {
        let begun = machine.meta().deletion_timestamp.as_ref().map(|time| time.0);
        let left = bounds.drain.saturating_sub(since(begun));
        if left.is_zero() {
            let why = format!("they did not leave within {:?}", bounds.drain);
            self.give_up_waiting(machine, node, &why).await?;
            return Ok(true);
        }
        if let Some(time) = silent_for(node).filter(|time| *time >= self.timing.kubelet_is_gone) {
            let why = format!(
                "their kubelet has not been ready for {} s, so that nobody can end them",
                time.as_secs()
            );
            self.give_up_waiting(machine, node, &why).await?;
            return Ok(true);
        }
        let wait = self.timing.look_every.min(left);
        match self.drain.round(&node.name_any(), wait).await? {
            Drained::Empty => Ok(true),
            Drained::Waits(why) => {
                self.telling(machine, &format!("pods leave its Node: {why}"))
                    .await?;
                if !self.is_any_wanted().await? {
                    let why = "no machine is wanted any more, so that no pod in their place can start";
                    self.give_up_waiting(machine, node, why).await?;
                }
                Ok(false)
            }
        }
    }

    /// Whether pods can run elsewhere, now or soon. A budget that waits for that is waited for no longer than it can come: of a
    /// shoot that falls asleep, or goes, all machines go.
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
    async fn give_up_waiting(&self, machine: &Machine, node: &Node, why: &str) -> Result<()> {
        let name = node.name_any();
        let Some(pods) = self.drain.force(&name).await? else {
            return Ok(());
        };
        let told = format!("pods of Node {name} were deleted, since {why}: {pods}");
        self.events.warning(machine, "DrainTimedOut", &told).await;
        self.telling(machine, &told).await
    }

    async fn telling(&self, machine: &Machine, what: &str) -> Result<()> {
        let told = Told::new(Phase::Terminating, Doing::Delete, State::Processing, what);
        self.tell(machine, &told).await
    }

    /// Removes what is left of it in the shoot: its Node, exactly the one that was drained, and its token.
    async fn forget(&self, machine: &Machine, node: Option<&Node>) -> Result<()> {
        self.tokens.remove(machine).await?;
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
fn is_of(node: &Node, machine: &Machine) -> bool {
    let said = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
    match (said.filter(|id| !id.is_empty()), provider_id(machine)) {
        (Some(said), Some(own)) => said == own,
        _ => true,
    }
}
