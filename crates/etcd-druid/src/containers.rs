//! The containers of a pod.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

/// All containers of a pod, in the order in which they start.
pub fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.as_ref();
    let first = status
        .and_then(|s| s.init_container_statuses.as_deref())
        .unwrap_or_default();
    let then = status
        .and_then(|s| s.container_statuses.as_deref())
        .unwrap_or_default();
    first.iter().chain(then)
}
