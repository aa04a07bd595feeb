//! Completes an absent or incomplete `spec.kubernetes.version` of a Shoot from the versions that its
//! CloudProfile offers.
//!
//! Once: the written version stays until a user changes it. A repeated computation would upgrade shoots
//! without a request, as soon as a profile offers more. Gardenlets wait for the version and choose no version
//! themselves. Policy `garden-controller-manager-shoot` allows this process no other change of a Shoot's
//! specification.

mod choice;
mod controller;

pub use choice::newest;
pub use controller::run;
