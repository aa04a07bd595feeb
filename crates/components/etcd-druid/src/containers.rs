//! The containers of a pod.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

/// All containers of a pod, in the order of their start.
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

/// The termination messages of a container that has ended without an error, in the order of the pods.
pub fn final_messages<'p>(pods: &'p [Pod], container: &str) -> impl Iterator<Item = &'p str> {
    pods.iter()
        .flat_map(statuses)
        .filter(move |status| status.name == container)
        .filter_map(|status| status.state.as_ref()?.terminated.as_ref())
        .filter(|ended| ended.exit_code == 0)
        .filter_map(|ended| ended.message.as_deref())
}
