//! MachineDeployment → MachineSet → Machine over a [`Driver`] of four functions. A process for a single cloud
//! brings the driver and calls [`process::start`]. docs/understand/machines.md describes the life of a
//! Machine, with the reasons.
//!
//! | module | controller ([`NAMES`]) | purpose |
//! |---|---|---|
//! | `machine_deployment` | `machine-deployment` | a set for each template, and the rolling update |
//! | `machine_set` | `machine-set` | the requested number of Machines from a template |
//! | `machine` | `machine` | the instance, the Node, health, drain, deletion |
//! | `machine_class` | `machine-class` | keeps a class for as long as a Machine needs the class |
//! | `safety` | `machine-safety` | deletes instances that certainly have no Machine |
//!
//! Shared files:
//!
//! | file | content |
//! |---|---|
//! | `driver`, `cloud` | the interface to a cloud, and the calls under the permit |
//! | `context` | the inputs of all controllers, with the default timeouts (`Timing`) |
//! | `process` | the process: flags, lock, owner check; `names` starts the controllers |
//! | `feed`, `reach` | the shared watch of a kind, and whether the API of the shoot answers |
//! | `isolation`, `outgoing` | Machines of an isolated zone, and the taint of Nodes that are about to go |
//! | `owners`, `removal` | adoption of restored objects, and the deletion of exactly a read object |
//! | `phase`, `constants` | the phases of a Machine, and names in objects |
//! | `merge_patch`, `hex` | merge patches, bytes as text |
//!
//! Promises of this crate
//! - An instance is created only for a Machine that never had an instance (R7-03): a restored Machine or
//!   instance is recognised and adopted, whichever manager created the instance.
//! - No machine is judged or deleted while the shoot's API does not answer. Only a limited number of machines
//!   of a deployment are replaced at once because they are unhealthy
//!   (gardener/machine-controller-manager#718). The instance of a deleted Machine in an isolated zone ends
//!   also without an answer, or in spite of refusals, when the time of the drain is over or the budget of the
//!   zone is spent (RZ-21, RZ-32).
//! - An instance that has a Node is never taken for an orphan (gardener/gardener#8742, #5471, #3520).
//! - Every call of the driver goes through the permit (I3), is bounded in time, and ends with the future of
//!   [`run`].
//!
//! Rights that a process needs:
//!
//! | where | resources | verbs |
//! |---|---|---|
//! | seed, the namespace | machineclasses, machinedeployments, machinesets, machines | get, list, watch, create, patch, delete |
//! | seed, the namespace | machinedeployments/status, machinesets/status, machines/status | patch |
//! | seed, the namespace | workers of extensions.gardener.cloud | get, list |
//! | seed, the namespace | workers/status of extensions.gardener.cloud | patch |
//! | seed, the namespace | secrets | get |
//! | seed, the namespace | events of events.k8s.io | create, patch |
//! | shoot | nodes | get, list, watch, patch, delete |
//! | shoot | pods | list, watch, delete |
//! | shoot | pods/eviction | create |
//! | shoot | poddisruptionbudgets, volumeattachments | list |
//! | shoot | events of events.k8s.io | create, patch |
//! | shoot, `kube-system` | secrets | get, create, patch, delete |

mod cloud;
mod constants;
mod context;
mod driver;
mod feed;
mod hex;
mod isolation;
mod machine;
mod machine_class;
mod machine_deployment;
mod machine_set;
mod merge_patch;
mod names;
mod outgoing;
mod owners;
mod phase;
pub mod process;
mod reach;
mod removal;
mod safety;

pub use context::{Context, Timing};
pub use driver::{Driver, Instance, InstancePower, ListedInstance, Request};
pub use names::{NAMES, run};
