//! What runs on the nodes of every shoot that has any: kube-proxy, so that Services lead to pods, CoreDNS, so
//! that names lead to Services, and api-proxy, so that the Service `kubernetes` leads to the API. Each is a
//! ManagedResource, which the resource-manager keeps in the shoot.
//!
//! They name the shoot's API by its own name, which is the same on every seed: a move changes none of these
//! objects, and so no pod (I4). They are ready when they are applied, not when they run: there may be no node
//! yet.
//!
//! A part that is not wanted any more is taken away, with its objects. When the shoot goes or moves,
//! [`crate::ManagedResources`] looks after them.

mod api_proxy;
mod coredns;
mod kube_proxy;

use runtime::{
    Result,
    manifests::{self, Manifests},
    workload::container_security,
};
use serde_json::{Value, json};

pub use api_proxy::ApiProxy;
pub use coredns::CoreDns;
pub use kube_proxy::KubeProxy;

use crate::{FIELD_MANAGER, Facts, managed_resources::OWN_ORIGIN};

/// Where they are in the shoot.
pub(crate) const NAMESPACE: &str = "kube-system";

/// Writes the objects of a part; takes the part away where it is not wanted.
pub(crate) async fn deploy(f: &Facts, name: &'static str, wanted: Option<&[Value]>) -> Result<()> {
    if let Some(objects) = wanted {
        let manifests = Manifests::new(name, objects).of_origin(OWN_ORIGIN);
        return manifests.deploy(FIELD_MANAGER, &f.seed, &f.namespace).await;
    }
    let within = f.settings.timeouts.managed_resources;
    manifests::remove(FIELD_MANAGER, &f.seed, &f.namespace, name, false, within).await
}

/// Waits until exactly these objects are applied.
pub(crate) async fn ready(f: &Facts, name: &'static str, wanted: Option<&[Value]>) -> Result<()> {
    let Some(objects) = wanted else { return Ok(()) };
    let within = f.settings.timeouts.managed_resources;
    let manifests = Manifests::new(name, objects);
    manifests.applied(&f.seed, &f.namespace, within).await
}

pub(crate) fn labels(name: &str) -> Value {
    json!({"k8s-app": name, "gardener.cloud/role": "system-component"})
}

/// What no container of these may do, unless it says why.
pub(crate) fn hardened() -> Value {
    json!(container_security())
}

#[cfg(test)]
mod tests;
