//! The end of a Machine while the shoot's API is silent or refuses to read the Node. Without the API no pod
//! can be evicted, so that a Machine waits for the API. A Machine of an isolated zone does not wait without a
//! bound: the sick zone may be the cause of the silence, users of the shoot may cause the refusal, and the
//! instance must not run on in the zone (RZ-21, RZ-32). The instance is terminated when the time of the drain
//! is over, or when the budget of the zone is spent and the silence has lasted. A refusal, or an API that
//! answers only some requests, holds the instance for [`Timing::kubelet_is_gone`] after the end of the budget
//! at most. The Machine stays until the API answers, so that the Node goes with the Machine.
//!
//! [`Timing::kubelet_is_gone`]: crate::Timing::kubelet_is_gone

use std::time::Duration;

use api::{
    constants::ISOLATED_ZONE_CLOSE_DEADLINE,
    extensions::Worker,
    machine::{Machine, labels},
};
use jiff::Timestamp;
use kube::{Api, ResourceExt, api::ListParams};
use runtime::{Error, Result, client::Cluster as _, clock};
use tracing::{debug, info};

use super::{Machines, configuration::MachineConfiguration, identity::is_forced};
use crate::isolation::is_isolated;

impl Machines {
    /// Lets the deletion continue without a drain when a bound has passed. `why`: the failure to read the
    /// Node.
    ///
    /// # Errors
    /// `why`, where the Machine waits for the shoot's API.
    pub(super) async fn skip_drain(
        &self,
        machine: &Machine,
        configuration: &MachineConfiguration,
        why: Error,
    ) -> Result<()> {
        let name = machine.name_any();
        if is_forced(machine) {
            info!(
                machine = name,
                %why,
                "the deletion is forced: the pods of the Machine are not evicted"
            );
            return Ok(());
        }
        let workers = self.workers().await;
        // A single late answer, or a short refusal, must not end a drain that is under way.
        let is_lasting = self.reach.unreachable_for() >= self.timing.kubelet_is_gone;
        let waits = Waits {
            drain: configuration.drain,
            after_budget: if is_lasting {
                Duration::ZERO
            } else {
                self.timing.kubelet_is_gone
            },
        };
        let Some(bound) = passed_bound(machine, &workers, waits, clock::now()) else {
            return Err(why);
        };
        if self.ended.contains(&machine.uid().unwrap_or_default()) {
            return Err(node_is_left(why));
        }
        if !self.cloud.has_asked_to_delete(machine) {
            let report = format!(
                "the zone of Machine {name} is isolated and {bound}: the instance is terminated without a drain, as {why}"
            );
            self.events.warning(machine, "DrainTimedOut", &report).await;
        }
        Ok(())
    }

    /// Records that the instance has ended while the Node could not be read. `why`: the failure to read the
    /// Node. Returns the error for the status: the Machine stays until the Node can be deleted.
    pub(super) fn keep_until_node_deletion(&self, machine: &Machine, why: Error) -> Error {
        self.ended.insert(machine.uid().unwrap_or_default());
        node_is_left(why)
    }

    /// Whether the zone of the Machine is isolated and the budget of the zone is spent. From then on the
    /// network of the zone is closed, so that neither a drain nor a refusal of a drain holds the instance.
    pub(super) async fn is_zone_budget_spent(&self, machine: &Machine) -> bool {
        if !machine.labels().contains_key(labels::ZONE) {
            return false;
        }
        let workers = self.workers().await;
        let deadline = isolating_worker(machine, &workers).and_then(close_deadline);
        deadline.is_some_and(|deadline| clock::now() >= deadline)
    }

    /// The Workers of the namespace. Without the right to list Workers, only the mark of the Machine counts.
    async fn workers(&self) -> Vec<Worker> {
        let workers: Api<Worker> = self.seed.namespaced(&self.namespace);
        match workers.list(&ListParams::default()).await {
            Ok(workers) => workers.items,
            Err(error) => {
                debug!(%error, "Workers could not be listed");
                Vec::new()
            }
        }
    }
}

fn node_is_left(why: Error) -> Error {
    why.context("the instance is gone, and the Machine stays until its Node can be deleted")
}

/// The longest times for which a Machine of an isolated zone waits for the shoot's API.
#[derive(Clone, Copy)]
struct Waits {
    /// From the begin of the deletion.
    drain: Duration,
    /// From the end of the zone's budget. Zero when the API has been silent for so long that a single lost
    /// answer cannot be the cause.
    after_budget: Duration,
}

/// The bound after which a Machine no longer waits for the API; `None` for a Machine that still waits.
fn passed_bound(machine: &Machine, workers: &[Worker], waits: Waits, now: Timestamp) -> Option<&'static str> {
    let isolating = isolating_worker(machine, workers);
    if isolating.is_none() && !is_isolated(&machine.spec) {
        return None;
    }
    let begun = machine.metadata.deletion_timestamp.as_ref()?.0;
    let lasts = Duration::try_from(now.duration_since(begun)).unwrap_or_default();
    if lasts >= waits.drain {
        return Some("the time of the drain is over");
    }
    let deadline = close_deadline(isolating?)?;
    let overdue = Duration::try_from(now.duration_since(deadline)).ok()?;
    (overdue >= waits.after_budget).then_some("the budget of the zone is spent")
}

/// The Worker that leaves the zone of the Machine.
fn isolating_worker<'w>(machine: &Machine, workers: &'w [Worker]) -> Option<&'w Worker> {
    let zone = machine.labels().get(labels::ZONE)?;
    workers.iter().find(|worker| isolated_zone(worker) == Some(zone))
}

/// The end of the budget for the zone that the Worker leaves.
fn close_deadline(worker: &Worker) -> Option<Timestamp> {
    let deadline = worker.annotations().get(ISOLATED_ZONE_CLOSE_DEADLINE)?;
    deadline.parse().ok()
}

/// The account's name of the zone that the Worker leaves.
fn isolated_zone(worker: &Worker) -> Option<&String> {
    worker.spec.isolated_zone_id.as_ref()?;
    worker.status.as_ref()?.isolated_zone_code.as_ref()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::machine::labels::ISOLATED_ZONE_TAINT;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    const DRAIN: Duration = Duration::from_secs(600);
    const AFTER_BUDGET: Duration = Duration::from_secs(300);

    fn waits(is_lasting: bool) -> Waits {
        Waits {
            drain: DRAIN,
            after_budget: if is_lasting { Duration::ZERO } else { AFTER_BUDGET },
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// A Machine of zone `a` whose deletion begins at second 0.
    fn machine(is_marked: bool) -> Machine {
        let taints = json!([{"key": ISOLATED_ZONE_TAINT, "effect": "NoSchedule"}]);
        let template = json!({"spec": {"taints": taints}});
        serde_json::from_value(json!({
            "metadata": {"name": "m", "labels": {(labels::ZONE): "a"}, "deletionTimestamp": "1970-01-01T00:00:00Z"},
            "spec": {"nodeTemplate": is_marked.then_some(template)},
        }))
        .unwrap()
    }

    /// A Worker that leaves this zone until second 60.
    fn worker(zone: &str) -> Worker {
        serde_json::from_value(json!({
            "metadata": {"name": "w", "annotations": {(ISOLATED_ZONE_CLOSE_DEADLINE): "1970-01-01T00:01:00Z"}},
            "spec": {"type": "metal", "region": "r", "secretRef": {"name": "s", "namespace": "n"},
                "isolatedZoneID": "id", "pools": []},
            "status": {"isolatedZoneCode": zone},
        }))
        .unwrap()
    }

    #[rstest]
    #[case::drains(true, "b", true, 599, None)]
    #[case::drained_for_long_enough(true, "b", false, 600, Some("the time of the drain is over"))]
    #[case::mark_has_not_arrived(false, "a", false, 600, Some("the time of the drain is over"))]
    #[case::within_the_budget(true, "a", true, 59, None)]
    #[case::budget_is_spent(false, "a", true, 60, Some("the budget of the zone is spent"))]
    #[case::one_answer_is_late(true, "a", false, 60, None)]
    #[case::refused_within_the_grace(true, "a", false, 359, None)]
    #[case::refused_for_too_long(true, "a", false, 360, Some("the budget of the zone is spent"))]
    #[case::healthy_zone(false, "b", true, 9000, None)]
    #[case::refused_in_a_healthy_zone(false, "b", false, 9000, None)]
    fn a_silent_api_holds_only_machines_of_healthy_zones(
        #[case] is_marked: bool,
        #[case] isolated: &str,
        #[case] is_lasting: bool,
        #[case] now: i64,
        #[case] expected: Option<&str>,
    ) {
        let workers = [worker(isolated)];
        let bound = passed_bound(&machine(is_marked), &workers, waits(is_lasting), at(now));
        assert_eq!(bound, expected);
    }

    #[test]
    fn a_failover_that_was_cancelled_ends_no_machine() {
        let mut cancelled = worker("a");
        cancelled.spec.isolated_zone_id = None;
        let bound = passed_bound(&machine(false), &[cancelled], waits(true), at(9000));
        assert_eq!(bound, None);
    }
}
