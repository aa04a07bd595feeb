//! The state of a shoot's machines that is carried from seed to seed (R7-12), and the encoding of this state.
//!
//! Promises: equal machines give equal bytes, independent of the order of the lists and of the last writer.
//! Each machine is there once (gardener#12579, #12821). No entry names an object of the former seed (uid,
//! resourceVersion, owner). No content of any origin is unpacked beyond [`MOST_BYTES`].
//!
//! The shape is Gardener's: `{machineDeployments: {name: {replicas, machineSets, machines}}}`, as gzip in
//! `{state: …}`. Two additions are missing in comparable implementations. The first addition is the classes
//! that sets and machines still need: without these classes no old machine of an unfinished rolling update
//! could be deleted. The second addition is the `deletionTimestamp` of machines in deletion. While a zone is
//! isolated, the sizes of the pools before the isolation are a third addition.

use std::io::{Read as _, Write as _};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use k8s_openapi::{ByteString, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::ResourceExt;

use super::{CurrentStatus, Machine, MachineClass, MachineDeployment, MachineSet, MachineStatus, labels};
use crate::{
    constants::WRITTEN_IN_EPOCH,
    derive::{BTreeMap, Deserialize, RawExtension, Serialize},
};

/// Most bytes that a state is unpacked to. Some 50,000 machines; less than a process may take of memory.
pub const MOST_BYTES: u64 = 128 * 1024 * 1024;
/// Name and type of the entry with the machine state in a ShootState.
pub const ENTRY: &str = "machine-state";

/// All machines of a shoot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineState {
    /// By the name of the deployment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machine_deployments: BTreeMap<String, MachineDeploymentState>,
    /// The classes that the sets and machines need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine_classes: Vec<MachineClass>,
    /// Value of the Worker's annotation [`labels::SIZES_BEFORE_ISOLATION`], so that failback after a move
    /// gives the zone the former size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes_before_isolation: Option<String>,
}

/// The machines of a deployment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineDeploymentState {
    /// Wanted number of machines: perhaps decided by a cluster autoscaler.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replicas: i32,
    /// The sets of the deployment, by name: all sets that want or have a machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine_sets: Vec<MachineSet>,
    /// The machines of the deployment, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<Machine>,
}

/// Why carried bytes are no machine state.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The bytes have a different shape.
    #[error("the machine state cannot be understood: {0}")]
    Shape(#[from] serde_json::Error),
    /// The bytes are no gzip, or were cut off.
    #[error("the machine state cannot be unpacked: {0}")]
    Packing(#[from] std::io::Error),
    /// The bytes hold more than the machines of any real shoot.
    #[error("the machine state has more than {MOST_BYTES} bytes: it is refused")]
    TooLarge,
}

/// The carried form of the state. The bytes are base64 in JSON.
#[derive(Serialize, Deserialize)]
struct Carried {
    state: ByteString,
}

/// The state to carry of these objects, the objects of a single namespace.
#[must_use]
pub fn collect(
    deployments: &[MachineDeployment],
    sets: &[MachineSet],
    machines: &[Machine],
    classes: &[MachineClass],
) -> MachineState {
    let mut of_deployment: BTreeMap<String, MachineDeploymentState> = BTreeMap::new();
    for deployment in deployments {
        let state = of_deployment.entry(deployment.name_any()).or_default();
        state.replicas = deployment.spec.replicas.unwrap_or_default();
    }
    for machine in machines {
        let name = deployment_of(machine, sets);
        let state = of_deployment.entry(name).or_default();
        state.machines.push(bare_machine(machine));
    }
    for set in sets {
        let has_machines = machines
            .iter()
            .any(|machine| owner(machine, "MachineSet").as_ref() == Some(&set.name_any()));
        if has_machines || set.spec.replicas.unwrap_or_default() > 0 {
            let state = of_deployment.entry(deployment_of(set, sets)).or_default();
            state.machine_sets.push(bare_set(set));
        }
    }
    for state in of_deployment.values_mut() {
        state.machine_sets.sort_by_key(ResourceExt::name_any);
        state.machines.sort_by_key(ResourceExt::name_any);
    }
    let mut state = MachineState {
        machine_deployments: of_deployment,
        ..MachineState::default()
    };
    let needed = state.classes_in_use();
    let needed = classes.iter().filter(|class| needed.contains(&class.name_any()));
    state.machine_classes = needed.map(bare_class).collect();
    state.machine_classes.sort_by_key(ResourceExt::name_any);
    state
}

impl MachineState {
    /// Whether the state is empty: no machine and no set that wants a machine.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let mut of_deployment = self.machine_deployments.values();
        of_deployment.all(|state| state.machines.is_empty() && state.machine_sets.is_empty())
    }

    /// How many machines there are.
    #[must_use]
    pub fn machines(&self) -> usize {
        let of_deployment = self.machine_deployments.values();
        of_deployment.map(|state| state.machines.len()).sum()
    }

    fn classes_in_use(&self) -> Vec<String> {
        let of_deployment = self.machine_deployments.values();
        let specs = of_deployment.flat_map(|state| {
            let of_sets = state.machine_sets.iter().filter_map(|set| {
                let template = set.spec.template.as_ref()?;
                template.spec.as_ref()
            });
            of_sets.chain(state.machines.iter().map(|machine| &machine.spec))
        });
        specs
            .filter_map(|spec| spec.class.as_ref()?.name.clone())
            .collect()
    }
}

/// The bytes of a state, as `{"state": "<base64>"}`. Equal states are equal bytes.
///
/// # Errors
/// None with a state that was collected.
pub fn encode(state: &MachineState) -> Result<RawExtension, StateError> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(&serde_json::to_vec(state)?)?;
    let carried = Carried {
        state: ByteString(packer.finish()?),
    };
    Ok(RawExtension(serde_json::to_value(carried)?))
}

/// The state in these bytes.
///
/// # Errors
/// The bytes are no state, or hold more than [`MOST_BYTES`].
pub fn decode(carried: &RawExtension) -> Result<MachineState, StateError> {
    decode_within(carried, MOST_BYTES)
}

fn decode_within(carried: &RawExtension, most: u64) -> Result<MachineState, StateError> {
    let carried: Carried = carried.decode()?;
    let mut bytes = Vec::new();
    let unpacked = GzDecoder::new(carried.state.0.as_slice())
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if unpacked as u64 > most {
        return Err(StateError::TooLarge);
    }
    Ok(serde_json::from_slice(&bytes)?)
}

/// The deployment of an object: the owner, or the owner of the set, or the name in the label. An object
/// without a deployment is carried nevertheless, because a machine that is not carried is lost.
fn deployment_of<K: ResourceExt>(object: &K, sets: &[MachineSet]) -> String {
    let of_set = || {
        let set = owner(object, "MachineSet")?;
        let set = sets.iter().find(|other| other.name_any() == set)?;
        owner(set, "MachineDeployment").or_else(|| set.labels().get(labels::NAME).cloned())
    };
    owner(object, "MachineDeployment")
        .or_else(of_set)
        .or_else(|| object.labels().get(labels::NAME).cloned())
        .unwrap_or_else(|| "without-deployment".to_owned())
}

fn owner<K: ResourceExt>(object: &K, kind: &str) -> Option<String> {
    let mut owners = object.owner_references().iter();
    owners
        .find(|owner| owner.kind == kind)
        .map(|owner| owner.name.clone())
}

/// Without the epoch of the last write: the destination writes a new epoch.
fn bare<K: ResourceExt>(object: &K) -> ObjectMeta {
    let metadata = object.meta();
    let mut annotations = metadata.annotations.clone();
    if let Some(all) = &mut annotations {
        all.remove(WRITTEN_IN_EPOCH);
    }
    ObjectMeta {
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        labels: metadata.labels.clone(),
        annotations: annotations.filter(|all| !all.is_empty()),
        ..ObjectMeta::default()
    }
}

fn bare_set(set: &MachineSet) -> MachineSet {
    MachineSet {
        metadata: bare(set),
        spec: set.spec.clone(),
        status: None,
    }
}

/// Only the part of the status that cannot be observed again; no times, because times would change the state
/// every minute.
fn bare_machine(machine: &Machine) -> Machine {
    let status = machine.status.as_ref().map(|status| MachineStatus {
        addresses: status.addresses.clone(),
        current_status: status.current_status.as_ref().map(|current| CurrentStatus {
            phase: current.phase.clone(),
            ..CurrentStatus::default()
        }),
        last_known_state: status.last_known_state.clone(),
        ..MachineStatus::default()
    });
    Machine {
        metadata: ObjectMeta {
            deletion_timestamp: machine.metadata.deletion_timestamp.clone(),
            ..bare(machine)
        },
        spec: machine.spec.clone(),
        status,
    }
}

fn bare_class(class: &MachineClass) -> MachineClass {
    MachineClass {
        metadata: bare(class),
        ..class.clone()
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde calls it
fn is_zero(number: &i32) -> bool {
    *number == 0
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
