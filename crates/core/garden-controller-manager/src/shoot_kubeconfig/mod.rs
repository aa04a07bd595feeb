//! Creates the Secret `<shoot>.kubeconfig` of each Shoot, empty: the gardenlet of the shoot's seed fills the
//! Secret.
//!
//! A user who may create Secrets in the garden may create a token of any of its service accounts. Therefore
//! no gardenlet may create Secrets, and this process may create only these Secrets. Policy
//! `garden-controller-manager-secret` refuses all other Secrets, and the role of this process does not allow
//! reading any Secret.

mod controller;

pub use controller::run;
