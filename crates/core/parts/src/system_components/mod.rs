//! Components on the nodes of every shoot with nodes. kube-proxy routes Services to pods, CoreDNS resolves
//! names of Services, and api-proxy leads the Service `kubernetes` to the API. Each component is a
//! ManagedResource, which the resource-manager applies in the shoot.
//!
//! The components use the name of the shoot's API, which is the same on every seed. So a move changes no
//! object and restarts no pod (I4). A component is ready when the objects are applied, not when the pods run:
//! the shoot may have no node yet.
//!
//! A component that is no longer wanted is removed, with all objects. When the shoot is deleted or moves,
//! [`crate::ManagedResources`] handles the ManagedResources.

mod api_proxy;
mod coredns;
mod kube_proxy;

use runtime::{
    Result,
    workload::{
        container_security,
        manifests::{self, Manifests},
    },
};
use serde_json::{Value, json};

pub use api_proxy::ApiProxy;
pub use coredns::CoreDns;
pub use kube_proxy::KubeProxy;

use crate::{FIELD_MANAGER, Residency, managed_resources::OWN_ORIGIN};

/// Namespace of the components in the shoot.
pub(crate) const NAMESPACE: &str = "kube-system";

/// Writes the objects of a component; `None` removes the component.
pub(crate) async fn deploy(
    residency: &Residency,
    name: &'static str,
    wanted: Option<&[Value]>,
) -> Result<()> {
    if let Some(objects) = wanted {
        let manifests = Manifests::new(name, objects).of_origin(OWN_ORIGIN);
        return manifests
            .deploy(FIELD_MANAGER, &residency.seed, &residency.namespace)
            .await;
    }
    let within = residency.settings.timeouts.managed_resources;
    manifests::remove(
        FIELD_MANAGER,
        &residency.seed,
        &residency.namespace,
        name,
        false,
        within,
    )
    .await
}

/// Waits until exactly these objects are applied.
pub(crate) async fn ready(residency: &Residency, name: &'static str, wanted: Option<&[Value]>) -> Result<()> {
    let Some(objects) = wanted else { return Ok(()) };
    let within = residency.settings.timeouts.managed_resources;
    let manifests = Manifests::new(name, objects);
    manifests
        .applied(&residency.seed, &residency.namespace, within)
        .await
}

pub(crate) fn labels(name: &str) -> Value {
    json!({"k8s-app": name, "gardener.cloud/role": "system-component"})
}

/// Security context of all containers here; a comment states each exception.
pub(crate) fn hardened() -> Value {
    json!(container_security())
}

#[cfg(test)]
mod tests;
