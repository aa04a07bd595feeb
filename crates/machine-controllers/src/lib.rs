//! MachineDeployment → MachineSet → Machine over a [`Driver`] of four functions. A process for one cloud
//! brings the driver and calls [`run`]; docs/understand/machines.md says how a Machine lives and why.
//!
//! | controller ([`NAMES`]) | what it does |
//! |---|---|
//! | `machine-deployment` | a set for each template, and the way from one to the next within bounds |
//! | `machine-set` | so many Machines from one template |
//! | `machine` | the instance, the Node, health, drain, deletion |
//! | `machine-class` | keeps a class for as long as a Machine needs it |
//! | `machine-safety` | takes away instances that no Machine stands for, when that is sure |
//!
//! What this crate promises
//! - An instance is made only for a Machine that never had one (R7-03): what is restored is recognised and
//!   adopted, whichever manager made it.
//! - Nothing is judged or deleted while the shoot's API does not answer, and only so many machines of a
//!   deployment at once are replaced because they are unhealthy (gardener/machine-controller-manager#718).
//!   The instance of a deleted Machine in an isolated zone ends all the same, when the time of the drain is
//!   over or the budget of the zone is spent (RZ-21, RZ-32).
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
mod context;
mod driver;
mod feed;
mod hex;
mod isolation;
mod machine;
mod machine_class;
mod machine_deployment;
mod machine_set;
mod names;
mod outgoing;
mod owners;
mod phase;
mod reach;
mod removal;
mod safety;
mod words;

pub use context::{Context, Timing};
pub use driver::{Driver, Found, Instance, InstancePower, Request};
pub use names::{NAMES, run};
