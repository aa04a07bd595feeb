//! An isolated zone has no machines (RZ-20..22). First the pool grows in the remaining zones by the machines
//! of the isolated zone, and the isolated zone's Nodes accept no new pods. Then the zone's deployment is
//! deleted, and the machines and their pods go. Pure.
//!
//! Both steps are bounded, since a sick zone must not hold up the isolation: [`GROW_WITHIN`],
//! [`DRAIN_WITHIN`], [`END_WITHIN`]. After the isolation, the deployment is created again with the former
//! size (RZ-22, [`super::former_sizes`]). The growth in the remaining zones stays until then ([`Grown`]),
//! even beyond the pool's maximum. With a cluster autoscaler, the growth stays until the autoscaler scales
//! down.

use std::time::Duration;

use api::{
    constants::{ISOLATED_ZONE_PODS_FIRST, SHOOT_ISOLATED_ZONE_ORDER},
    extensions::WorkerPool,
    machine::{
        Machine, MachineDeployment,
        labels::{self, ISOLATED_ZONE_TAINT},
    },
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::spread;

/// Annotation of the zone's deployment: [`Begun`] as JSON.
const BEGUN: &str = "worker.gardener.cloud/isolation";
/// Annotation of a deployment in a remaining zone: [`Grown`] as JSON.
const GROWN: &str = "worker.gardener.cloud/grown";
/// Timeout for machines in the remaining zones. After the timeout, missing machines are not awaited any more.
pub const GROW_WITHIN: SignedDuration = SignedDuration::from_mins(10);
/// Maximum time for pods to leave the zone. A shorter limit of the pool has precedence.
pub const DRAIN_WITHIN: Duration = Duration::from_secs(600);
/// Maximum time for the end of a machine of the zone after the drain.
const END_WITHIN: SignedDuration = SignedDuration::from_mins(5);

/// The machines of a pool at the begin of the isolation of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// The begin of the isolation.
    pub since: Timestamp,
    /// The wanted machines in all zones.
    pub machines: i32,
}

impl Begun {
    /// The recorded value, or a new value from the deployments of a pool. An invalid record counts as absent.
    #[must_use]
    pub fn from_deployments<'a>(
        isolated: &MachineDeployment,
        all: impl Iterator<Item = &'a MachineDeployment>,
        now: Timestamp,
    ) -> Self {
        let told = Self::recorded(isolated);
        let machines = || all.filter_map(|deployment| deployment.spec.replicas).sum();
        Self {
            // A clock that was ahead must not extend the wait.
            since: told.map_or(now, |told| told.since.min(now)),
            machines: told.map_or_else(machines, |told| told.machines),
        }
    }

    /// The record of a deployment in the zone.
    #[must_use]
    pub fn recorded(isolated: &MachineDeployment) -> Option<Self> {
        let recorded = isolated.annotations().get(BEGUN)?;
        serde_json::from_str(recorded).ok()
    }

    /// Whether the wait for machines elsewhere is over.
    #[must_use]
    pub fn has_waited(&self, now: Timestamp) -> bool {
        now.duration_since(self.since) >= GROW_WITHIN
    }

    /// The share of a remaining zone, by the index of the zone among the remaining zones. The limits of the
    /// pool apply afterwards.
    #[must_use]
    pub fn share(&self, index: usize, others: usize) -> i32 {
        spread::share(self.machines, index, others)
    }

    /// The annotation.
    #[must_use]
    pub fn annotation(&self) -> (String, Value) {
        // A string within JSON: the value of an annotation is text.
        (BEGUN.to_owned(), Value::String(json!(self).to_string()))
    }
}

/// The growth of a deployment beyond the deployment's share, with the limits of the pool at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grown {
    /// The number of machines.
    pub machines: i32,
    /// The pool's minimum at that time.
    pub minimum: i32,
    /// The pool's maximum at that time.
    pub maximum: i32,
}

impl Grown {
    /// The number of machines that a deployment may keep: `None` if the pool's limits have changed since.
    #[must_use]
    pub fn kept(deployment: &MachineDeployment, pool: &WorkerPool) -> Option<i32> {
        let told = deployment.annotations().get(GROWN)?;
        let told: Self = serde_json::from_str(told).ok()?;
        let is_same = (told.minimum, told.maximum) == (pool.minimum, pool.maximum);
        is_same.then_some(told.machines)
    }

    /// The annotation.
    #[must_use]
    pub fn annotation(machines: i32, pool: &WorkerPool) -> (String, Value) {
        let grown = Self {
            machines,
            minimum: pool.minimum,
            maximum: pool.maximum,
        };
        (GROWN.to_owned(), Value::String(json!(grown).to_string()))
    }
}

/// Prepares the deployment of an isolated zone for the deletion: the Nodes accept no new pods, and existing
/// pods get a bounded time to leave.
pub fn prepare_to_leave(deployment: &mut MachineDeployment) {
    let spec = deployment.spec.template.spec.get_or_insert_default();
    let bound = spec
        .drain_timeout
        .as_deref()
        .and_then(|text| text.parse().ok())
        .map(|bound: kube::core::Duration| {
            if bound.is_negative() {
                Duration::ZERO
            } else {
                bound.into()
            }
        });
    let bound = bound.unwrap_or(DRAIN_WITHIN).min(DRAIN_WITHIN);
    spec.drain_timeout = Some(format!("{}s", bound.as_secs()));
    let node = spec
        .node_template
        .get_or_insert_default()
        .spec
        .get_or_insert_default();
    let taints = node.taints.get_or_insert_default();
    taints.retain(|taint| taint.key != ISOLATED_ZONE_TAINT);
    taints.push(k8s_openapi::api::core::v1::Taint {
        key: ISOLATED_ZONE_TAINT.to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Default::default()
    });
}

/// Whether the user lets pods leave an isolated zone before machines elsewhere are awaited. An invalid value
/// counts as absent: capacity then comes first, so that a typing error takes no capacity from pods.
#[must_use]
pub fn pods_leave_first(shoot: Option<&Value>) -> bool {
    let annotations = shoot.and_then(|shoot| shoot.pointer("/metadata/annotations"));
    let order = annotations.and_then(|annotations| annotations.get(SHOOT_ISOLATED_ZONE_ORDER));
    order.and_then(Value::as_str) == Some(ISOLATED_ZONE_PODS_FIRST)
}

/// Whether a machine of the zone is overdue: the machine still exists after the time for the drain and for
/// the end of the instance.
#[must_use]
pub fn is_overdue(machine: &Machine, now: Timestamp) -> bool {
    is_deletion_overdue(&machine.metadata, now)
}

/// Whether an object still exists although the time for a drain and for the end of an instance has passed
/// since the deletion.
#[must_use]
pub fn is_deletion_overdue(metadata: &ObjectMeta, now: Timestamp) -> bool {
    let Some(told) = metadata.deletion_timestamp.as_ref() else {
        return false;
    };
    let drain = SignedDuration::try_from(DRAIN_WITHIN).unwrap_or(GROW_WITHIN);
    now.duration_since(told.0) >= drain + END_WITHIN
}

/// Whether a machine is in this zone.
#[must_use]
pub fn is_in(machine: &Machine, zone: &str) -> bool {
    machine.labels().get(labels::ZONE).is_some_and(|of| of == zone)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn deployment(replicas: i32) -> MachineDeployment {
        serde_json::from_value(json!({
            "metadata": {"name": "d"}, "spec": {"replicas": replicas, "template": {"spec": {"drainTimeout": "2h"}}},
        }))
        .unwrap()
    }

    #[test]
    fn what_a_pool_had_is_told_once() {
        let (mut isolated, mut other) = (deployment(2), deployment(3));
        let begun = Begun::from_deployments(&isolated, [&isolated, &other].into_iter(), at(100));
        assert_eq!((begun.machines, begun.since), (5, at(100)));
        let (key, value) = begun.annotation();
        isolated
            .annotations_mut()
            .insert(key.clone(), value.as_str().unwrap().to_owned());
        // The deployment has grown by now.
        other.spec.replicas = Some(5);
        assert_eq!(
            Begun::from_deployments(&isolated, [&isolated, &other].into_iter(), at(200)),
            begun
        );
        assert!(!begun.has_waited(at(699)) && begun.has_waited(at(700)));
        let early = Begun::from_deployments(&isolated, [&isolated, &other].into_iter(), at(40));
        assert_eq!(
            (early.since, early.machines),
            (at(40), 5),
            "told by a clock that was ahead"
        );
        isolated.annotations_mut().insert(key, "{".into());
        assert_eq!(
            Begun::from_deployments(&isolated, [&isolated].into_iter(), at(200)).machines,
            2
        );
    }

    #[test]
    fn nodes_that_are_left_take_nothing_and_are_not_held_up() {
        for (bound, is) in [
            (Some("2h"), "600s"),
            (None, "600s"),
            (Some("30s"), "30s"),
            (Some("-1s"), "0s"),
        ] {
            let mut left = deployment(1);
            left.spec.template.spec.as_mut().unwrap().drain_timeout = bound.map(str::to_owned);
            prepare_to_leave(&mut left);
            prepare_to_leave(&mut left);
            let spec = json!(left.spec.template.spec);
            assert_eq!(spec["drainTimeout"], is);
            assert_eq!(
                spec["nodeTemplate"]["spec"]["taints"],
                json!([{"key": ISOLATED_ZONE_TAINT, "effect": "NoSchedule"}])
            );
        }
    }

    #[test]
    fn a_machine_has_its_time() {
        let machine = |deleted: Option<i64>| -> Machine {
            let time = deleted.map(|second| at(second).to_string());
            serde_json::from_value(json!({
                "metadata": {"name": "m", "deletionTimestamp": time, "labels": {labels::ZONE: "x"}}, "spec": {},
            }))
            .unwrap()
        };
        assert!(!is_overdue(&machine(None), at(10_000)));
        assert!(!is_overdue(&machine(Some(0)), at(899)));
        assert!(is_overdue(&machine(Some(0)), at(900)));
        assert!(is_in(&machine(None), "x") && !is_in(&machine(None), "y"));
    }
}
