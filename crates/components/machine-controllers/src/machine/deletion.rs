//! Deletes a Machine: cordons the Node, drains the pods, waits for the volumes, terminates the instance,
//! deletes the Node, and removes the finalizer of the Machine. Each step reads whether the step is done. So
//! the deletion can be interrupted anywhere, and continues on another seed.

use std::{sync::Arc, time::Duration};

use api::machine::{Machine, MachineDeployment, MachineSet};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Preconditions},
};
use runtime::{
    Error, Result,
    client::Cluster as _,
    controller::{Next, finalizer},
    error::Explain as _,
};
use serde_json::json;
use tracing::info;

use super::{
    Machines,
    configuration::MachineConfiguration,
    drain::{Detachment, DrainProgress, unready_for},
    identity::{is_forced, node_name, provider_id},
    status::{MachineReport, Operation, State, elapsed_since},
};
use crate::{constants::FINALIZER, driver::Instance, phase::Phase, reach::bounded_write};

impl Machines {
    /// Continues a deletion. The finalizer stays until the result is `Next::Change`.
    pub(super) async fn continue_deletion(&self, seen: &Arc<Machine>) -> Result<Next> {
        // Read live: a step that the cache does not show yet may be done, and must not call the cloud twice.
        let read = self.machines_api().get_opt(&seen.name_any()).await;
        let read = read.context(format_args!("could not read Machine {}", seen.name_any()))?;
        let needs_deletion = |machine: &Machine| {
            machine.uid() == seen.uid() && machine.finalizers().iter().any(|f| f == FINALIZER)
        };
        let Some(machine) = &read.filter(needs_deletion).map(Arc::new) else {
            return Ok(Next::Change);
        };
        match self.run_steps(machine).await {
            Err(error) if error.is_failure() => {
                let report = MachineReport::error(Phase::Terminating, Operation::Delete, &error);
                self.write_report(machine, &report).await?;
                Err(error)
            }
            Err(Error::NotReady { after, why }) => {
                self.report_progress(machine, &why).await?;
                Err(Error::NotReady { after, why })
            }
            other => other,
        }
    }

    async fn run_steps(&self, machine: &Arc<Machine>) -> Result<Next> {
        let machine = &self.ensure_instance_recorded(machine).await?;
        let mut configuration = MachineConfiguration::from_machine(machine, &self.timing)?;
        let node = match self.node_to_drain(machine).await {
            Ok(node) => node,
            Err(why) => {
                self.skip_drain(machine, &configuration, why).await?;
                None
            }
        };
        if let Some(node) = &node {
            configuration.is_zone_budget_spent = self.is_zone_budget_spent(machine).await;
            if let Err(refused) = self.cordon(node).await {
                self.tolerate_refusal(machine, Some(node), &configuration, refused)
                    .await?;
            }
            if !is_forced(machine) {
                // The deletion comes back in any case.
                let _ = Box::pin(self.mark_out_of_service(machine, node)).await?;
            }
            if !Box::pin(self.is_node_released(machine, node, &configuration)).await? {
                return Ok(Next::After(self.timing.poll_interval));
            }
        }
        // The report of an earlier attempt stays, because the report has the cause of a termination that
        // hangs or is refused.
        if !self.cloud.has_asked_to_delete(machine) {
            self.report_progress(machine, "its instance is deleted").await?;
        }
        let class = self.cloud.class(machine).await?;
        self.cloud.delete(machine, &class).await?;
        info!(machine = machine.name_any(), "its instance is gone");
        let node = match node {
            // The kubelet may have registered the Node after the first read.
            None if !is_forced(machine) => {
                let node = self.node_to_drain(machine).await;
                node.map_err(|why| self.keep_until_node_deletion(machine, why))?
            }
            node => node,
        };
        // A refused deletion of the token does not stop the deletion of the Node.
        let removals = [
            self.tokens.remove(machine).await,
            self.delete_node(node.as_ref()).await,
        ];
        for refused in removals.into_iter().filter_map(Result::err) {
            self.tolerate_refusal(machine, node.as_ref(), &configuration, refused)
                .await?;
        }
        self.remove_finalizer(machine).await
    }

    /// The Machine with its Node's name and its instance's ID. A Machine that was deleted between the launch
    /// of the instance and the first write of both would leave the Node where no cloud-controller-manager
    /// removes Nodes.
    async fn ensure_instance_recorded(&self, machine: &Arc<Machine>) -> Result<Arc<Machine>> {
        if node_name(machine).is_some() {
            return Ok(Arc::clone(machine));
        }
        // Before the first listing of Nodes, the cloud reports the instance.
        let known = provider_id(machine).and_then(|id| {
            Some(Instance {
                provider_id: id.to_owned(),
                node_name: self.find_node_name(id).ok().flatten()?,
            })
        });
        let instance = if known.is_some() {
            known
        } else {
            let class = self.cloud.class(machine).await?;
            self.cloud.status(machine, &class).await?
        };
        match instance {
            Some(instance) => self.record_instance(machine, &instance).await.map(Arc::new),
            None => Ok(Arc::clone(machine)),
        }
    }

    /// Whether the pods have left and the volumes are detached, or the deletion no longer waits. When the
    /// budget of an isolated zone is spent, a refused request of the drain, such as the list of the pods,
    /// does not hold the instance.
    async fn is_node_released(
        &self,
        machine: &Machine,
        node: &Node,
        configuration: &MachineConfiguration,
    ) -> Result<bool> {
        if is_forced(machine) {
            return Ok(true);
        }
        let is_drained = match self.drain_round(machine, node, configuration).await {
            Err(refused) if configuration.is_zone_budget_spent => {
                self.tolerate_refusal(machine, Some(node), configuration, refused)
                    .await?;
                true
            }
            result => result?,
        };
        Ok(is_drained && self.are_volumes_detached(machine, node, configuration).await?)
    }

    /// Continues the deletion after a refused request to the shoot when the bound of the drain or the budget
    /// of the zone has passed, and reports the refusal. Otherwise a webhook without backend, of the shoot's
    /// users, would keep the Machine for ever.
    ///
    /// # Errors
    /// `refused`, before the bound and for a lost permit. Another error while the API does not answer reads.
    async fn tolerate_refusal(
        &self,
        machine: &Machine,
        node: Option<&Node>,
        configuration: &MachineConfiguration,
        refused: Error,
    ) -> Result<()> {
        if is_forced(machine) {
            info!(
                machine = machine.name_any(),
                why = format_args!("{refused:#}"),
                "the deletion is forced and continues without a refused request"
            );
            return Ok(());
        }
        if !refused.is_failure() || !self.may_tolerate_refusal(machine, node, configuration).await? {
            return Err(refused);
        }
        let now = self.read_live_node(machine).await?;
        // A later Node of the same name belongs to another Machine: its pods are not deleted.
        if node.zip(now).is_some_and(|(node, now)| node.uid() != now.uid()) {
            return Err(refused);
        }
        let report = format!(
            "the deletion of the Machine goes on without a request that the shoot's API refused: {refused}"
        );
        self.events.warning(machine, "DeletionRefused", &report).await;
        Ok(())
    }

    /// Whether the deletion may continue in spite of a refusal by the shoot's API. Without a Node elsewhere,
    /// the backend of a webhook cannot start, and the deletion waits only as long as for a silent kubelet.
    async fn may_tolerate_refusal(
        &self,
        machine: &Machine,
        node: Option<&Node>,
        configuration: &MachineConfiguration,
    ) -> Result<bool> {
        if node.is_some_and(|node| {
            self.reason_to_stop_waiting(machine, node, configuration)
                .is_some()
        }) {
            return Ok(true);
        }
        let age = deletion_age(machine);
        Ok(age >= configuration.drain
            || age >= self.timing.kubelet_is_gone && !self.pods_can_run_elsewhere().await?)
    }

    /// Reads the Node live. The read distinguishes a refused write from an API that does not answer.
    async fn read_live_node(&self, machine: &Machine) -> Result<Option<Node>> {
        match node_name(machine) {
            Some(name) => self.reach.read_node(name).await,
            None => self.reach.check_reachable().await.map(|_| None),
        }
    }

    /// Removes the finalizer here instead of in the runner. The runner has the object from before the write
    /// of the status, so that the write of the runner would conflict, and the cloud would be called again.
    async fn remove_finalizer(&self, machine: &Machine) -> Result<Next> {
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

    /// The Node, read live, unless the Node belongs to a different instance.
    ///
    /// # Errors
    /// The shoot's API does not answer, or refuses the read. Then the Machine is not deleted.
    async fn node_to_drain(&self, machine: &Machine) -> Result<Option<Node>> {
        let Some(name) = node_name(machine) else {
            // No drain is needed, but the shoot's API has to answer before a deletion.
            self.reach.check_reachable().await?;
            return Ok(None);
        };
        let node = self.reach.read_node(name).await?;
        Ok(node.filter(|node| node_belongs_to(node, machine)))
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

    /// The reason why the deletion no longer waits for the pods of the Node; `None` while the deletion waits.
    fn reason_to_stop_waiting(
        &self,
        machine: &Machine,
        node: &Node,
        configuration: &MachineConfiguration,
    ) -> Option<String> {
        if deletion_age(machine) >= configuration.drain {
            return Some(format!("the pods did not leave within {:?}", configuration.drain));
        }
        if configuration.is_zone_budget_spent {
            return Some("the zone is isolated, and the budget of the zone is spent".to_owned());
        }
        let unready = unready_for(node).filter(|time| *time >= self.timing.kubelet_is_gone)?;
        Some(format!(
            "the kubelet has not been ready for {} s and cannot end the pods",
            unready.as_secs()
        ))
    }

    /// Evicts the pods, and returns whether the pods have left or the deletion no longer waits for the pods.
    async fn drain_round(
        &self,
        machine: &Machine,
        node: &Node,
        configuration: &MachineConfiguration,
    ) -> Result<bool> {
        if let Some(why) = self.reason_to_stop_waiting(machine, node, configuration) {
            self.delete_remaining_pods(machine, node, &why).await?;
            return Ok(true);
        }
        let left = configuration.drain.saturating_sub(deletion_age(machine));
        let wait = self.timing.poll_interval.min(left);
        match self.drain.run_round(&node.name_any(), wait).await? {
            DrainProgress::Empty => Ok(true),
            DrainProgress::Waits(why) => {
                let is_rest_refused = if self.pods_can_run_elsewhere().await? {
                    false
                } else {
                    let why = "no machine is wanted any more, so that no replacement of a pod can start";
                    self.delete_remaining_pods(machine, node, why).await?
                };
                if is_rest_refused {
                    return self
                        .may_tolerate_refusal(machine, Some(node), configuration)
                        .await;
                }
                self.report_progress(machine, &format!("pods leave its Node: {why}"))
                    .await?;
                Ok(false)
            }
        }
    }

    /// Whether all volumes of the Node are detached, or the deletion no longer waits for the volumes. After
    /// the bound of the drain, pods may still use the volumes, so that waiting is useless.
    async fn are_volumes_detached(
        &self,
        machine: &Machine,
        node: &Node,
        configuration: &MachineConfiguration,
    ) -> Result<bool> {
        if self
            .reason_to_stop_waiting(machine, node, configuration)
            .is_some()
        {
            return Ok(true);
        }
        let (uid, name, bound) = (
            machine.uid().unwrap_or_default(),
            node.name_any(),
            self.timing.detach,
        );
        match self.volumes.check_detachment(&uid, &name, bound).await? {
            Detachment::Done => Ok(true),
            Detachment::Waits(volumes) => {
                let waits = format!("volumes are detached from its Node: {volumes}");
                self.report_progress(machine, &waits).await?;
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

    /// Whether pods can run on a different machine, now or soon. In a shoot that hibernates or is deleted, no
    /// budget can be met any more.
    async fn pods_can_run_elsewhere(&self) -> Result<bool> {
        let is_staying = |machine: &Arc<Machine>| machine.metadata.deletion_timestamp.is_none();
        if self.cache.all()?.iter().any(is_staying) {
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
        let set_replicas = sets.iter().map(|set| set.spec.replicas);
        let deployment_replicas = deployments.iter().map(|deployment| deployment.spec.replicas);
        let mut all = set_replicas.chain(deployment_replicas).flatten();
        Ok(all.any(|replicas| replicas > 0))
    }

    /// Deletes the remaining pods in spite of their budgets, and reports the deletion. Returns whether the
    /// API refuses to delete all remaining pods.
    async fn delete_remaining_pods(&self, machine: &Machine, node: &Node, why: &str) -> Result<bool> {
        let name = node.name_any();
        let forced = self.drain.delete_pods(&name).await?;
        let mut sentences = Vec::new();
        if let Some(pods) = &forced.deleted {
            sentences.push(format!("pods of Node {name} were deleted, since {why}: {pods}"));
        }
        if let Some(pods) = &forced.refused {
            self.read_live_node(machine).await?;
            sentences.push(format!(
                "the shoot's API refused to delete pods of Node {name}, which end with the instance, \
                 since {why}: {pods}"
            ));
        }
        if !sentences.is_empty() {
            let report = sentences.join("; ");
            self.events.warning(machine, "DrainTimedOut", &report).await;
            self.report_progress(machine, &report).await?;
        }
        Ok(forced.is_rest_refused)
    }

    async fn report_progress(&self, machine: &Machine, progress: &str) -> Result<()> {
        let report = MachineReport::new(Phase::Terminating, Operation::Delete, State::Processing, progress);
        self.write_report(machine, &report).await
    }

    /// Deletes the Node that was drained, not a later Node of the same name.
    async fn delete_node(&self, node: Option<&Node>) -> Result<()> {
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

/// The time since the deletion of the Machine was requested.
fn deletion_age(machine: &Machine) -> Duration {
    elapsed_since(machine.meta().deletion_timestamp.as_ref().map(|time| time.0))
}

/// Whether the Node is of the Machine's instance. A Node with a different provider id has taken the name
/// later.
pub(super) fn node_belongs_to(node: &Node, machine: &Machine) -> bool {
    let node_id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
    match (node_id.filter(|id| !id.is_empty()), provider_id(machine)) {
        (Some(node_id), Some(machine_id)) => node_id == machine_id,
        _ => true,
    }
}
