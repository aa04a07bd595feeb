//! The number of machines of each pool in each zone before a zone was isolated. Failback restores this size
//! of the zone. Without a cluster autoscaler, the remaining zones shrink to their former sizes. No further
//! object records the sizes: the zone's MachineDeployment is deleted.
//!
//! The sizes are an annotation of the Worker from the first write of a failover to the end of the failback.
//! The sizes are also part of the carried machine state.

use std::collections::BTreeMap;

use api::{
    extensions::{Worker, WorkerPool},
    machine::{
        MachineDeployment,
        labels::{self, SIZES_BEFORE_ISOLATION},
    },
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, ResourceExt};
use runtime::{Error, Result, client::Cluster as _, error::Explain as _};
use serde::{Deserialize, Serialize};

use crate::Context;

/// Name of the Deployment of a cluster autoscaler beside a shoot's control plane, as Gardener names it.
const CLUSTER_AUTOSCALER: &str = "cluster-autoscaler";

/// Sizes of all pools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FormerSizes {
    /// Name of the isolated zone.
    zone: String,
    pools: BTreeMap<String, FormerPool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FormerPool {
    minimum: i32,
    maximum: i32,
    /// Machines by zone.
    zones: BTreeMap<String, i32>,
}

impl FormerSizes {
    /// The sizes for this operation. Recorded if a failover begins, and removed if a hibernated shoot has no
    /// sizes.
    ///
    /// # Errors
    /// The Worker cannot be read or written.
    pub async fn reconcile(
        context: &Context<Worker>,
        isolated: Option<&str>,
        existing: &[MachineDeployment],
    ) -> Result<Option<Self>> {
        let status = context.object.status.as_ref();
        let carried = status.and_then(|status| status.default.state.as_ref());
        let is_restored = carried.is_some_and(|carried| !carried.0.is_null());
        let is_recorded = context.object.annotations().contains_key(SIZES_BEFORE_ISOLATION);
        if isolated.is_none() && !is_restored && !is_recorded {
            return Ok(None);
        }
        // A restoration in the same operation has written the annotation.
        let name = context.name();
        let worker = workers(context)?.get(&name).await;
        let worker = worker.context(format_args!("could not read Worker {name}"))?;
        let known = Self::read(&worker);
        let Some(zone) = isolated else {
            if known.is_some() && context.is_hibernated() {
                Self::forget(context).await?;
                return Ok(None);
            }
            return Ok(known);
        };
        let sizes = Self::in_failover(known.as_ref(), zone, &worker, existing, context.is_hibernated());
        if known.as_ref() != Some(&sizes) {
            let text = serde_json::to_string(&sizes)
                .map_err(|error| Error::bug("sizes of pools do not serialise").caused_by(error))?;
            context
                .manager
                .annotate(&workers(context)?, &name, SIZES_BEFORE_ISOLATION, Some(&text))
                .await?;
        }
        Ok(Some(sizes))
    }

    /// Removes the sizes: the failback has ended.
    ///
    /// # Errors
    /// The Worker cannot be written.
    pub async fn forget(context: &Context<Worker>) -> Result<()> {
        let (api, name) = (workers(context)?, context.name());
        let written = context
            .manager
            .annotate(&api, &name, SIZES_BEFORE_ISOLATION, None);
        written.await.map(drop)
    }

    /// The annotation of the Worker. An invalid annotation was not written by this module.
    fn read(worker: &Worker) -> Option<Self> {
        serde_json::from_str(worker.annotations().get(SIZES_BEFORE_ISOLATION)?).ok()
    }

    /// Known sizes of the same zone stay. A hibernated shoot has no sizes, and wakes up with the minimum of
    /// each pool.
    fn in_failover(
        known: Option<&Self>,
        zone: &str,
        worker: &Worker,
        existing: &[MachineDeployment],
        hibernated: bool,
    ) -> Self {
        if let Some(known) = known.filter(|known| known.zone == zone && !hibernated) {
            return known.clone();
        }
        let pools = worker.spec.pools.iter().filter(|_| !hibernated);
        let pools = pools.map(|pool| (pool.name.clone(), FormerPool::from_deployments(pool, existing)));
        Self {
            zone: zone.to_owned(),
            pools: pools.collect(),
        }
    }

    /// The former number of machines of the pool in all zones. `None` without a record.
    #[must_use]
    pub fn machines(&self, pool: &WorkerPool) -> Option<i32> {
        let zones = &self.pools.get(&pool.name)?.zones;
        (!zones.is_empty()).then(|| zones.values().sum())
    }

    /// Whether this zone was isolated.
    #[must_use]
    pub fn is_of(&self, zone: &str) -> bool {
        self.zone == zone
    }

    /// The former number of machines of the pool in this zone. `None` without a record, or when the limits of
    /// the pool have changed.
    #[must_use]
    pub fn size(&self, pool: &WorkerPool, zone: &str) -> Option<i32> {
        let former = self.pools.get(&pool.name)?;
        let is_same = (former.minimum, former.maximum) == (pool.minimum, pool.maximum);
        former.zones.get(zone).copied().filter(|_| is_same)
    }
}

impl FormerPool {
    fn from_deployments(pool: &WorkerPool, existing: &[MachineDeployment]) -> Self {
        let of_pool = existing.iter().filter(|deployment| {
            deployment.labels().get(labels::POOL) == Some(&pool.name)
                && deployment.metadata.deletion_timestamp.is_none()
        });
        let zones = of_pool.filter_map(|deployment| {
            let zone = deployment.labels().get(labels::ZONE)?;
            Some((zone.clone(), deployment.spec.replicas?))
        });
        Self {
            minimum: pool.minimum,
            maximum: pool.maximum,
            zones: zones.collect(),
        }
    }
}

/// Whether a cluster autoscaler controls the number of machines. Repot deploys none; Gardener's gardenlet
/// deploys a cluster autoscaler.
///
/// # Errors
/// The seed does not answer.
pub async fn has_autoscaler(context: &Context<Worker>) -> Result<bool> {
    let api: Api<Deployment> = context.seed.namespaced(&context.namespace()?);
    let found = api.get_opt(CLUSTER_AUTOSCALER).await;
    let found = found.context(format_args!("could not read Deployment {CLUSTER_AUTOSCALER}"))?;
    let replicas = found.map(|found| found.spec.and_then(|spec| spec.replicas).unwrap_or(1));
    Ok(replicas.is_some_and(|replicas| replicas > 0))
}

fn workers(context: &Context<Worker>) -> Result<Api<Worker>> {
    Ok(context.seed.namespaced(&context.namespace()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn worker(maximum: i32) -> Worker {
        serde_json::from_value(json!({
            "metadata": {"name": "one"},
            "spec": {"type": "local", "region": "r", "secretRef": {}, "pools": [{
                "name": "a", "machineType": "small", "machineImage": {"name": "os", "version": "1"}, "minimum": 3, "maximum": maximum,
                "maxSurge": 1, "maxUnavailable": 0, "userDataSecretRef": {"name": "u", "key": "k"},
            }]},
        }))
        .unwrap()
    }

    fn deployment(zone: &str, replicas: i32) -> MachineDeployment {
        let of = json!({labels::POOL: "a", labels::ZONE: zone});
        let spec = json!({"replicas": replicas, "template": {}});
        serde_json::from_value(json!({"metadata": {"name": zone, "labels": of}, "spec": spec})).unwrap()
    }

    #[test]
    fn sizes_are_those_of_the_begin_of_a_failover() {
        let (worker, begin) = (worker(9), [deployment("x", 3), deployment("y", 2)]);
        let sizes = FormerSizes::in_failover(None, "x", &worker, &begin, false);
        let pool = &worker.spec.pools[0];
        let of = |sizes: &FormerSizes| ["x", "y", "z"].map(|zone| sizes.size(pool, zone));
        assert_eq!(of(&sizes), [Some(3), Some(2), None]);
        // The remaining zones have grown.
        let grown = [deployment("y", 5)];
        let again = FormerSizes::in_failover(Some(&sizes), "x", &worker, &grown, false);
        assert_eq!(again, sizes);
        let of_other_zone = FormerSizes::in_failover(Some(&sizes), "y", &worker, &grown, false);
        assert_eq!(of(&of_other_zone), [None, Some(5), None]);
        let asleep = FormerSizes::in_failover(Some(&sizes), "x", &worker, &grown, true);
        assert_eq!(of(&asleep), [None, None, None]);
        assert!(asleep.is_of("x") && !asleep.is_of("y"));
    }

    #[test]
    fn sizes_of_other_bounds_do_not_count() {
        let begin = [deployment("x", 3)];
        let sizes = FormerSizes::in_failover(None, "x", &worker(9), &begin, false);
        assert_eq!(sizes.size(&worker(4).spec.pools[0], "x"), None);
    }

    #[test]
    fn the_annotation_is_read_as_it_was_written() {
        let mut worker = worker(9);
        let sizes = FormerSizes::in_failover(None, "x", &worker, &[deployment("x", 3)], false);
        let text = serde_json::to_string(&sizes).unwrap();
        assert_eq!(
            text,
            r#"{"zone":"x","pools":{"a":{"minimum":3,"maximum":9,"zones":{"x":3}}}}"#
        );
        worker
            .annotations_mut()
            .insert(SIZES_BEFORE_ISOLATION.into(), text);
        assert_eq!(FormerSizes::read(&worker), Some(sizes));
        worker
            .annotations_mut()
            .insert(SIZES_BEFORE_ISOLATION.into(), "{".into());
        assert_eq!(FormerSizes::read(&worker), None);
    }
}
