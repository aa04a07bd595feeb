//! Installs and removes the extensions of the seed, as the ControllerInstallations of this seed specify.
//!
//! A ControllerDeployment holds a Helm chart. The template engine of helm renders the chart (a child process
//! with bounds, decision 17). The output becomes a ManagedResource of class `seed` in the namespace `garden`,
//! and the resource-manager applies, keeps and prunes the objects. The namespace of the release is
//! `extension-<registration>`.
//!
//! Promises: the conditions report the present state.
//! - `Valid`: the chart could be rendered.
//! - `Installed`, `Healthy`, `Progressing`: as the resource-manager reports; `Healthy` also depends on the
//!   extension's sign of life.
//! - `Required`: the seed has extension objects that the extension serves. While such objects exist, no
//!   request removes the extension.
//!
//! A namespace that was not created here is never removed.
//!
//! | file | content |
//! |---|---|
//! | `chart` | the part of a ControllerDeployment that can be rendered |
//! | `values` | the values for a chart |
//! | `render` | helm as a child process, within bounds |
//! | `objects` | parses the output of helm into objects |
//! | `kinds` | extension objects in the seed: the existing objects, and their coming and going |
//! | `conditions` | the reported conditions |
//! | `release` | the ManagedResource and the namespace |
//! | `sign_of_life` | whether an extension renews its Lease |
//! | `controller` | read, decide, write |

mod chart;
mod conditions;
mod controller;
mod kinds;
mod objects;
mod release;
mod render;
mod sign_of_life;
mod values;

pub use controller::run;
