//! Completes an absent or incomplete `spec.kubernetes.version` of a Shoot from the versions that its
//! CloudProfile offers.
//!
//! Once: the written version stays until a user changes it. A repeated computation would upgrade shoots
//! without a request, as soon as a profile offers more. Gardenlets wait for the version and choose no version
//! themselves. Policy `garden-controller-manager-shoot` allows this process two changes of a Shoot's
//! specification: the completion of a version, and `hibernation.enabled` (`shoot_hibernation`).
//!
//! This controller refuses no version. Policy `shoot-version` refuses a version that is not on offer.

mod choice;
mod controller;

pub use choice::newest;
pub use controller::run;
