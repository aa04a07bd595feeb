//! Controllers of Kubernetes beside the API server, and the manager that runs each controller.

pub mod controller_leaders;
pub(crate) mod kube_controller_manager;
pub(crate) mod kube_scheduler;
