//! Taints a Node whose instance is off as out of service. Kubernetes then deletes the pods of the Node
//! without the kubelet and detaches the volumes at once, so that a StatefulSet starts on a different Node.
//!
//! On an instance that runs, the taint would give a volume two writers. So the taint needs a silent kubelet,
//! and a provider that reports the instance as stopped or terminated. The annotation of a user counts in the
//! place of the provider's report only where the provider cannot say whether the instance runs. The taint
//! goes as soon as the kubelet reports again or the provider reports the instance as running.

use std::sync::Arc;

use api::{constants::is_switched_on, machine::Machine};
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::{Api, ResourceExt};
use runtime::{Result, client::Cluster as _, controller::Next};
use serde_json::{Value, json};
use tracing::{info, warn};

use super::{Machines, deletion::node_belongs_to};
use crate::{
    constants::{INSTANCE_OFF, OUT_OF_SERVICE, OUT_OF_SERVICE_BY},
    driver::InstancePower,
    reach::bounded_write,
};

/// Value of the taint. Kubernetes acts on key and effect.
const SHUTDOWN: &str = "nodeshutdown";
/// Effect of the taint.
const NO_EXECUTE: &str = "NoExecute";
/// Values of [`OUT_OF_SERVICE_BY`]: the reason of the taint.
const BY_PROVIDER: &str = "provider";
const BY_USER: &str = "user";

impl Machines {
    /// Taints the Node as out of service, or removes the taint, and reports a refused annotation. A write
    /// that the shoot's API refuses does not stop the remaining steps for the Machine, and is repeated after
    /// the poll interval. A conflict is repeated, too: a heartbeat of the kubelet wakes no controller.
    pub(super) async fn mark_out_of_service(&self, machine: &Arc<Machine>, node: &Node) -> Result<Next> {
        if !node_belongs_to(node, machine) {
            return Ok(Next::Change);
        }
        let marks = Marks::from_node(node);
        let power = if is_kubelet_silent(node) {
            if marks.is_settled() {
                return Ok(Next::Change);
            }
            let Some(power) = self.query_power(machine).await? else {
                return Ok(Next::Change);
            };
            power
        } else {
            // A report of the kubelet proves that the instance runs.
            self.power.forget(&machine.uid().unwrap_or_default());
            InstancePower::Running
        };
        let Some(change) = marks.change(power) else {
            return Ok(Next::Change);
        };
        let nodes: Api<Node> = self.shoot.cluster_wide();
        let body = change.body(node);
        match bounded_write(self.manager.try_merge_of(&nodes, node, &body)).await {
            Ok(None) => Ok(Next::After(self.timing.poll_interval)),
            Ok(Some(_)) => {
                self.report_power_change(machine, node, &change).await;
                Ok(Next::Change)
            }
            Err(error) if error.is_failure() => {
                warn!(
                    node = node.name_any(),
                    error = format_args!("{error:#}"),
                    "the taint of a Node could not be changed"
                );
                Ok(Next::After(self.timing.poll_interval))
            }
            Err(error) => Err(error),
        }
    }

    /// Reports to users by an Event in the shoot, and to operators by an Event in the seed.
    async fn report_power_change(&self, machine: &Machine, node: &Node, change: &Change) {
        let (reason, text) = (
            change.reason,
            format!("Node {}: {}", node.name_any(), change.note),
        );
        info!(
            machine = machine.name_any(),
            reason, text, "an instance is off or runs"
        );
        self.shoot_events.answer_with_warning(node, reason, &text).await;
        self.events.answer_with_warning(machine, reason, &text).await;
    }
}

/// Whether the kubelet has stopped to report. `False` is a report of the kubelet, so the instance runs.
fn is_kubelet_silent(node: &Node) -> bool {
    let mut conditions = node
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "Unknown")
}

/// The marks of a Node that count here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Marks {
    /// The Node has the taint, set by this controller or by a user.
    is_tainted: bool,
    /// The reason for which this controller has set the taint.
    by: Option<&'static str>,
    /// The user states that the instance is off.
    is_claimed: bool,
}

/// A change of a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    /// The reason of the taint; `None` for a Node without taint of this controller.
    by: Option<&'static str>,
    /// The taint that is there goes or stays.
    removes_taint: bool,
    /// Removes the annotation of the user, so that the annotation does not count later, when the provider
    /// gives no answer.
    removes_claim: bool,
    /// Reason of the Event.
    reason: &'static str,
    /// Note of the Event.
    note: &'static str,
}

impl Marks {
    fn from_node(node: &Node) -> Self {
        let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        let is_tainted = taints.into_iter().any(is_out_of_service);
        let annotations = node.annotations();
        let by = annotations
            .get(OUT_OF_SERVICE_BY)
            .filter(|_| is_tainted)
            .map(String::as_str);
        Self {
            is_tainted,
            by: [BY_PROVIDER, BY_USER]
                .into_iter()
                .find(|report| by == Some(report)),
            is_claimed: annotations
                .get(INSTANCE_OFF)
                .is_some_and(|value| is_switched_on(value)),
        }
    }

    /// Whether the answer of the provider cannot change the Node, because a user has set the taint.
    fn is_settled(self) -> bool {
        self.is_tainted && self.by.is_none() && !self.is_claimed
    }

    fn change(self, power: InstancePower) -> Option<Change> {
        let is_own = self.by.is_some();
        match power {
            InstancePower::Running if is_own || self.is_claimed => Some(Change {
                by: None,
                removes_taint: is_own,
                removes_claim: self.is_claimed,
                reason: if is_own {
                    "InstanceIsBack"
                } else {
                    "InstanceIsRunning"
                },
                note: if is_own {
                    "the instance runs again, so that the taint node.kubernetes.io/out-of-service was removed"
                } else {
                    "the instance runs, by its kubelet or its provider: the annotation worker.gardener.cloud/instance-off was \
                     removed without effect, because pods and volumes must not be taken from an instance that runs. \
                     Stop the instance at the provider first"
                },
            }),
            InstancePower::Off if !self.is_tainted => Some(Change::taint(
                BY_PROVIDER,
                "the provider reports the instance as off and its kubelet is silent: the taint \
                 node.kubernetes.io/out-of-service deletes the pods of the Node and detaches their volumes",
            )),
            InstancePower::Unclear if self.is_claimed && !self.is_tainted => Some(Change::taint(
                BY_USER,
                "the provider does not report whether the instance runs, its kubelet is silent, and the annotation \
                 worker.gardener.cloud/instance-off states that the instance is off: the taint \
                 node.kubernetes.io/out-of-service deletes the pods of the Node and detaches their volumes",
            )),
            InstancePower::Unclear if self.by == Some(BY_USER) && !self.is_claimed => Some(Change {
                by: None,
                removes_taint: true,
                removes_claim: false,
                reason: "InstanceIsBack",
                note: "the annotation worker.gardener.cloud/instance-off was withdrawn, so that the taint \
                       node.kubernetes.io/out-of-service was removed",
            }),
            _ => None,
        }
    }
}

impl Change {
    fn taint(by: &'static str, note: &'static str) -> Self {
        Self {
            by: Some(by),
            removes_taint: false,
            removes_claim: false,
            reason: "InstanceIsOff",
            note,
        }
    }

    /// A merge patch. The remaining taints do not change.
    fn body(&self, node: &Node) -> Value {
        let mut annotations = json!({});
        if self.removes_claim {
            annotations[INSTANCE_OFF] = Value::Null;
        }
        let mut body = json!({});
        if self.by.is_some() || self.removes_taint {
            annotations[OUT_OF_SERVICE_BY] = json!(self.by);
            let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
            let mut taints: Vec<_> = taints
                .filter(|taint| !is_out_of_service(taint))
                .cloned()
                .collect();
            taints.extend(self.by.map(|_| Taint {
                key: OUT_OF_SERVICE.to_owned(),
                value: Some(SHUTDOWN.to_owned()),
                effect: NO_EXECUTE.to_owned(),
                ..Taint::default()
            }));
            body["spec"] = json!({"taints": taints});
        }
        body["metadata"] = json!({"annotations": annotations});
        body
    }
}

fn is_out_of_service(taint: &Taint) -> bool {
    taint.key == OUT_OF_SERVICE && taint.effect == NO_EXECUTE
}

#[cfg(test)]
#[path = "out_of_service_tests.rs"]
mod tests;
