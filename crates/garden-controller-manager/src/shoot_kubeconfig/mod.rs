//! Makes the Secret `<shoot>.kubeconfig` of each Shoot, empty: the gardenlet of the shoot's seed fills it.
//!
//! Whoever may make Secrets in the garden may make a token of any service account of it. Therefore no
//! gardenlet may, and this process may make no others: policy `garden-controller-manager-secret` refuses
//! them, and its role lets it read none.

mod controller;

pub use controller::run;
