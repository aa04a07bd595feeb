//! The rights of the pods: only to read and write their volumes and to use the network.

use k8s_openapi::api::core::v1::PodSecurityContext;
pub use runtime::workload::container_security as container;
use runtime::workload::{NON_ROOT, pod_security};

use crate::wanted::ValidatedEtcd;

/// Security context of the whole pod. `runAsRoot` is for volumes with folders that only root may write (some
/// host-path provisioners).
#[must_use]
pub fn pod(wanted: &ValidatedEtcd) -> PodSecurityContext {
    pod_security(if wanted.run_as_root { 0 } else { NON_ROOT })
}
