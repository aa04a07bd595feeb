//! Completes `spec.kubernetes.version` of a Shoot that names none, or none in full, from what its
//! CloudProfile offers.
//!
//! Once: what is written stays until a user changes it. Worked out anew each time it would be an upgrade that
//! nobody asked for, as soon as a profile offers more. Gardenlets wait for it and choose nothing by
//! themselves. Policy `garden-controller-manager-shoot` lets this process change nothing else of a Shoot's
//! specification.

mod choice;
mod controller;

pub use choice::newest;
pub use controller::run;
