//! Extensions of the seed: installs what the ControllerInstallations of this seed say, and takes it away
//! again.
//!
//! A ControllerDeployment holds a Helm chart. It is rendered by helm's own template engine (a child process
//! with bounds, decision 17), and what comes out is a ManagedResource of class `seed` in the namespace
//! `garden`, which the resource-manager applies, keeps and prunes. The release's namespace is
//! `extension-<registration>`.
//!
//! Promises: the conditions say what is true now (`Valid`: it could be rendered; `Installed`, `Healthy`,
//! `Progressing`: as the resource-manager reports, `Healthy` also by the extension's sign of life;
//! `Required`: extension objects that it serves are in the seed). Nothing is taken away while such objects
//! are there, whoever asks for it, nor a namespace that was not made here.
//!
//! | file | what |
//! |---|---|
//! | `chart` | what of a ControllerDeployment can be rendered |
//! | `values` | the values that a chart is given |
//! | `render` | helm as a child process, within bounds |
//! | `objects` | what helm wrote becomes objects |
//! | `kinds` | extension objects in the seed: which are there, and when one comes or goes |
//! | `conditions` | what is told |
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
