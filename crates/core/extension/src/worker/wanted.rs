//! The wanted objects of a Worker: a class with a Secret, and a deployment, for each pool and zone. Pure.

use std::collections::BTreeMap;

use api::{
    extensions::{Worker, WorkerPool, worker::WorkerMachineDeployment},
    gardencore::shoot::MachineUpdateStrategy,
    machine::{MachineClass, MachineDeployment, labels},
    meta::ErrorCode,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use runtime::{Error, Result, workload::rollout::checksum};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    former_sizes::FormerSizes,
    isolation::{self, Begun, Grown},
    machines::Class,
    names::{self, Existing},
    spread,
};

/// Characters of the part of a class's name that changes when machines have to be replaced.
const HASH: usize = 5;
/// Key of the Secret of a class.
pub const USER_DATA: &str = "userData";

/// Whether a deployment whose deletion hangs has a successor for the same pool and zone, so that no operation
/// waits for the deletion.
#[must_use]
pub fn is_succeeded(hanging: &MachineDeployment, wanted: &[PoolObjects], now: Timestamp) -> bool {
    let place = |deployment: &MachineDeployment| {
        let label = |key: &str| deployment.labels().get(key).cloned();
        (label(labels::POOL), label(labels::ZONE))
    };
    let of = place(hanging);
    isolation::is_deletion_overdue(&hanging.metadata, now)
        && wanted.iter().any(|one| place(&one.deployment) == of)
}

/// The wanted objects for a pool in a zone.
#[derive(Clone, Debug)]
pub struct PoolObjects {
    /// The class.
    pub class: MachineClass,
    /// The Secret of the class, with the name of the class.
    pub secret: Secret,
    /// The deployment.
    pub deployment: MachineDeployment,
    /// The entry in `status.machineDeployments`.
    pub status: WorkerMachineDeployment,
    /// Set in the isolated zone: the deployment is deleted when the remaining deployments have grown, and is
    /// not in the status.
    pub leaving: Option<Begun>,
}

/// The existing objects and known facts.
pub struct Surroundings<'a> {
    /// The shoot's technical id.
    pub namespace: &'a str,
    /// Whether the shoot is hibernated: no machine is wanted.
    pub hibernated: bool,
    /// The deployments that exist.
    pub existing: &'a [MachineDeployment],
    /// The user data of a pool's machines, by the pool's name.
    pub user_data: BTreeMap<String, Vec<u8>>,
    /// The isolated zone.
    pub isolated: Option<&'a str>,
    /// Sizes before the isolation. Without an isolated zone, these sizes are restored.
    pub former: Option<&'a FormerSizes>,
    /// Whether zones shrink to these sizes: the returned zone has its machines, and no autoscaler runs.
    pub shrinks: bool,
    /// The present time.
    pub now: Timestamp,
}

impl Surroundings<'_> {
    /// The deployment with this name, unless in deletion.
    fn staying(&self, name: &str) -> Option<&MachineDeployment> {
        let stays = |other: &&MachineDeployment| {
            other.name_any() == name && other.metadata.deletion_timestamp.is_none()
        };
        self.existing.iter().find(stays)
    }

    /// Whether the returned zone gets machines while the remaining zones keep their machines.
    fn gives_back(&self) -> bool {
        self.former.is_some() && self.isolated.is_none() && !self.shrinks
    }

    /// The wanted machines of a zone before the limits apply. `current`: the present number.
    fn size(&self, place: &PoolZone<'_>, minimum: i32, current: Option<i32>) -> Option<i32> {
        let Some(former) = self.former.filter(|_| self.isolated.is_none()) else {
            return current;
        };
        let size = former.size(place.pool, place.zone).unwrap_or(minimum);
        if former.is_of(place.zone) {
            current.max(Some(size))
        } else if self.shrinks {
            current.map(|current| current.min(size))
        } else {
            current
        }
    }
}

/// The wanted objects of all pools. `class_of` calls the provider.
///
/// # Errors
/// The error of the provider; a pool wants an unsupported update strategy.
pub fn wanted(
    worker: &Worker,
    around: &Surroundings<'_>,
    class_of: impl Fn(&WorkerPool, &str) -> Result<Class>,
) -> Result<Vec<PoolObjects>> {
    let existing: Vec<Existing> = around
        .existing
        .iter()
        .filter_map(|deployment| whose(deployment, around.now))
        .collect();
    let mut all = Vec::new();
    for pool in &worker.spec.pools {
        refuse_in_place(pool)?;
        // A pool without zones counts as a single zone without a name.
        let zones = if pool.zones.is_empty() {
            vec![String::new()]
        } else {
            pool.zones.clone()
        };
        let names = names::of_zones(around.namespace, &pool.name, &zones, &existing);
        let is_isolated = |zone: &String| around.isolated == Some(zone.as_str());
        let begun = begun(
            pool,
            around,
            zones.iter().zip(&names).find(|(zone, _)| is_isolated(zone)),
        );
        let others = zones.iter().filter(|zone| !is_isolated(zone)).count();
        let mut index = 0;
        for (place, (zone, name)) in zones.iter().zip(&names).enumerate() {
            let is_left = is_isolated(zone);
            if is_left && begun.is_none() {
                // The deployment is gone, or never existed.
                continue;
            }
            let class = class_of(pool, zone)?;
            let place = PoolZone {
                pool,
                zone,
                name,
                index,
                zones: others,
                usual_maximum: spread::share(pool.maximum, place, zones.len()),
                node_labels: class.labels_of_node(pool, &worker.spec.region, zone),
                class_name: format!("{name}-{}", hash(pool, &class)),
                begun,
                is_left,
            };
            all.push(place.wanted(worker, around, &class)?);
            index += usize::from(!is_left);
        }
    }
    Ok(all)
}

/// The machines of the pool at the begin of the zone's isolation; `None` if the zone's deployment is gone.
fn begun(
    pool: &WorkerPool,
    around: &Surroundings<'_>,
    isolated: Option<(&String, &String)>,
) -> Option<Begun> {
    let deployment = around.staying(isolated?.1)?;
    let is_of_pool = |other: &&MachineDeployment| other.labels().get(labels::POOL) == Some(&pool.name);
    let all = around.existing.iter().filter(is_of_pool);
    let mut begun = Begun::from_deployments(deployment, all, around.now);
    // A move carries no annotation of a deployment, and the remaining zones have grown by now.
    if let Some(machines) = around.former.and_then(|former| former.machines(pool)) {
        begun.machines = machines;
    }
    Some(begun)
}

/// The values whose change replaces a pool's machines:
/// - type, image, disks and processors
/// - the minor version of Kubernetes
/// - the user data, by name and not by bytes, because the bytes change with every certificate. The name is
///   `nodeAgentSecretName`, which also covers the container runtime, or else the name of the Secret
/// - the provider's configuration of the pool
#[must_use]
pub fn rolls_with(pool: &WorkerPool) -> Vec<String> {
    let version = pool.kubernetes_version.clone().unwrap_or_default();
    let minor: Vec<_> = version.split('.').take(2).collect();
    let first = pool
        .node_agent_secret_name
        .clone()
        .unwrap_or_else(|| pool.user_data_secret_ref.name.clone());
    vec![
        pool.machine_type.clone(),
        format!("{}-{}", pool.machine_image.name, pool.machine_image.version),
        json!([pool.volume, pool.data_volumes, pool.architecture]).to_string(),
        minor.join("."),
        first,
        json!(pool.provider_config).to_string(),
    ]
}

fn hash(pool: &WorkerPool, class: &Class) -> String {
    let parts = rolls_with(pool).into_iter().chain(class.rolls_with.clone());
    let mut sum = checksum(parts.enumerate().map(|(index, part)| (index.to_string(), part)));
    sum.truncate(HASH);
    sum
}

/// The pool and zone of a deployment; `None` for a foreign deployment.
fn whose(deployment: &MachineDeployment, now: Timestamp) -> Option<Existing> {
    // MachineDeployments, MachineSets and machines have these labels.
    let of = |label: &str| deployment.labels().get(label).cloned();
    Some(Existing {
        name: deployment.name_any(),
        pool: of(labels::POOL)?,
        zone: of(labels::ZONE).unwrap_or_default(),
        is_stuck: isolation::is_deletion_overdue(&deployment.metadata, now),
    })
}

fn refuse_in_place(pool: &WorkerPool) -> Result<()> {
    match &pool.update_strategy {
        None | Some(MachineUpdateStrategy::AutoRollingUpdate) => Ok(()),
        Some(_) => Err(Error::config(
            ErrorCode::ErrConfigurationProblem,
            format!(
                "machines cannot be updated in place: set updateStrategy of pool {} to AutoRollingUpdate",
                pool.name
            ),
        )),
    }
}

struct PoolZone<'a> {
    pool: &'a WorkerPool,
    zone: &'a str,
    name: &'a str,
    /// The index among the zones with machines.
    index: usize,
    /// The number of these zones.
    zones: usize,
    /// The maximum machines of this zone without an isolated zone.
    usual_maximum: i32,
    /// Labels of the machines' Nodes.
    node_labels: BTreeMap<String, String>,
    class_name: String,
    /// Set while a zone of the pool is being left.
    begun: Option<Begun>,
    /// Whether this zone is being left.
    is_left: bool,
}

impl PoolZone<'_> {
    fn wanted(&self, worker: &Worker, around: &Surroundings<'_>, class: &Class) -> Result<PoolObjects> {
        let share = |total| spread::share(total, self.index, self.zones);
        let there = around.staying(self.name);
        let current = there.and_then(|deployment| deployment.spec.replicas);
        let minimum = share(self.pool.minimum);
        let current = around.size(self, minimum, current);
        let mut maximum = share(self.pool.maximum);
        let kept = if around.gives_back() {
            current
        } else {
            there.and_then(|deployment| Grown::kept(deployment, self.pool))
        };
        if let Some(kept) = kept {
            // The deployment has grown for an isolated zone: capacity that was scaled down since does not
            // return.
            maximum = maximum.max(kept.min(current.unwrap_or_default()));
        }
        let replicas = if self.is_left {
            // The present number, until the deletion.
            current.filter(|_| !around.hibernated).unwrap_or_default()
        } else {
            let grown = self.begun.map(|begun| begun.share(self.index, self.zones));
            spread::replicas(minimum, maximum, current.max(grown), around.hibernated)
        };
        let has_grown = !self.is_left && replicas > self.usual_maximum;
        Ok(PoolObjects {
            class: self.class(worker, around.namespace, class)?,
            secret: self.secret(around)?,
            deployment: self.deployment(replicas, has_grown)?,
            leaving: self.begun.filter(|_| self.is_left),
            status: WorkerMachineDeployment {
                name: self.name.to_owned(),
                minimum,
                maximum,
                priority: self.pool.priority,
                auto_preserve_failed_machine_max: self
                    .pool
                    .machine_controller_manager
                    .as_ref()
                    .and_then(|settings| settings.auto_preserve_failed_machine_max),
            },
        })
    }

    fn class(&self, worker: &Worker, namespace: &str, class: &Class) -> Result<MachineClass> {
        let node_template = self.pool.node_template.as_ref().map(|node| {
            json!({
                "capacity": node.capacity, "virtualCapacity": node.virtual_capacity,
                "instanceType": self.pool.machine_type, "region": worker.spec.region, "zone": self.zone,
                "architecture": self.pool.architecture,
            })
        });
        made(json!({
            "metadata": {"name": self.class_name, "labels": self.labels()},
            "nodeTemplate": node_template,
            "provider": class.provider,
            "providerSpec": class.provider_spec,
            "credentialsSecretRef": worker.spec.secret_ref,
            "secretRef": {"name": self.class_name, "namespace": namespace},
        }))
    }

    fn secret(&self, around: &Surroundings<'_>) -> Result<Secret> {
        let missing = || {
            Error::bug(format!(
                "nobody has read the user data of pool {}",
                self.pool.name
            ))
        };
        let user_data = around.user_data.get(&self.pool.name).ok_or_else(missing)?;
        let (purpose, machine_class) = labels::PURPOSE;
        let mut secret: Secret = made(json!({
            "metadata": {"name": self.class_name, "labels": {purpose: machine_class, labels::POOL: self.pool.name}},
            "type": "Opaque",
        }))?;
        let user_data = k8s_openapi::ByteString(user_data.clone());
        secret.data = Some([(USER_DATA.to_owned(), user_data)].into());
        Ok(secret)
    }

    fn deployment(&self, replicas: i32, has_grown: bool) -> Result<MachineDeployment> {
        let (surge, unavailable) = spread::bounds(
            &self.pool.max_surge,
            &self.pool.max_unavailable,
            self.index,
            self.zones,
        );
        let mut of_machines = self.labels();
        of_machines.insert(labels::NAME, self.name);
        let mut annotations = self.autoscaler();
        annotations.extend(
            self.begun
                .filter(|_| self.is_left)
                .map(|begun| begun.annotation()),
        );
        annotations.extend(has_grown.then(|| Grown::annotation(replicas, self.pool)));
        let mut deployment = made(json!({
            "metadata": {"name": self.name, "labels": self.labels(), "annotations": annotations},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {labels::NAME: self.name}},
                "strategy": {
                    "type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
                },
                "autoPreserveFailedMachineMax":
                    self.pool.machine_controller_manager.as_ref().and_then(|s| s.auto_preserve_failed_machine_max),
                "template": {"metadata": {"labels": of_machines}, "spec": self.machine()},
            },
        }))?;
        if self.is_left {
            isolation::prepare_to_leave(&mut deployment);
        }
        Ok(deployment)
    }

    /// The specification of each machine of the deployment.
    fn machine(&self) -> Value {
        let pool = self.pool;
        // The taint of an isolated zone, in the hands of a user, would keep the pool without machines.
        let taints: Vec<_> = pool
            .taints
            .iter()
            .filter(|taint| taint.key != labels::ISOLATED_ZONE_TAINT)
            .collect();
        let mut spec = json!({
            "class": {"kind": "MachineClass", "name": self.class_name},
            "nodeTemplate": {
                "metadata": {"labels": self.node_labels, "annotations": pool.annotations},
                "spec": {"taints": taints},
            },
        });
        if let Some(settings) = &pool.machine_controller_manager {
            spec["drainTimeout"] = json!(settings.machine_drain_timeout);
            spec["healthTimeout"] = json!(settings.machine_health_timeout);
            spec["creationTimeout"] = json!(settings.machine_creation_timeout);
            spec["inPlaceUpdateTimeout"] = json!(settings.in_place_update_timeout);
            spec["machinePreserveTimeout"] = json!(settings.machine_preserve_timeout);
            spec["disableHealthTimeout"] = json!(settings.disable_health_timeout);
            spec["maxEvictRetries"] = json!(settings.max_evict_retries);
            if !settings.node_conditions.is_empty() {
                spec["nodeConditions"] = json!(settings.node_conditions.join(","));
            }
        }
        spec
    }

    fn labels(&self) -> BTreeMap<&'static str, &str> {
        let mut labels = BTreeMap::from([(labels::POOL, self.pool.name.as_str())]);
        if !self.zone.is_empty() {
            labels.insert(labels::ZONE, self.zone);
        }
        labels
    }

    /// The annotations that a cluster autoscaler reads from the deployment.
    fn autoscaler(&self) -> BTreeMap<String, Value> {
        let Some(options) = &self.pool.cluster_autoscaler else {
            return BTreeMap::new();
        };
        let all = [
            (
                "scale-down-utilization-threshold",
                json!(options.scale_down_utilization_threshold),
            ),
            (
                "scale-down-gpu-utilization-threshold",
                json!(options.scale_down_gpu_utilization_threshold),
            ),
            (
                "scale-down-unneeded-time",
                json!(options.scale_down_unneeded_time),
            ),
            ("scale-down-unready-time", json!(options.scale_down_unready_time)),
            ("max-node-provision-time", json!(options.max_node_provision_time)),
        ];
        let given = all.into_iter().filter(|(_, value)| !value.is_null());
        given
            .map(|(name, value)| (format!("autoscaler.gardener.cloud/{name}"), value))
            .collect()
    }
}

fn made<T: DeserializeOwned>(object: Value) -> Result<T> {
    serde_json::from_value(object)
        .map_err(|error| Error::bug("an object of a pool's machines cannot be made").caused_by(error))
}

#[cfg(test)]
#[path = "wanted_tests.rs"]
mod tests;
