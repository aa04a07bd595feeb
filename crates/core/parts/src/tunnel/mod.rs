//! The tunnel: the path from kube-apiserver to nodes, pods and Services of a shoot where the seed has no
//! route to them.
//!
//! kube-apiserver connects to the server ([`server`]) by HTTP CONNECT, as configured in the EgressSelector
//! ([`egress`]). Agents on the nodes ([`agent`]) have dialled the server through the seed's SNI proxy. A
//! different tunnel with HTTP CONNECT can replace this tunnel: kube-apiserver knows only an address.
//!
//! The keys belong to the shoot and move with the shoot, so the agents reach the new seed with the same keys
//! (gardener#15442).

mod agent;
mod egress;
mod server;

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service},
};
use kube::Api;
use runtime::{
    Result,
    client::{Cluster, apply},
};
use serde_json::Value;

use crate::{
    FIELD_MANAGER, Facts, component,
    secrets::config::TUNNEL_SERVICE,
    system_components,
    task::{ExternalSystems, NONE},
    verbs::{Deploy, Sleep, Tasks},
};

pub(crate) use egress::{FILES, flag};
use server::NAME as SERVER;

/// Name of the agents' ManagedResource.
const MANAGED_RESOURCE: &str = "shoot-core-tunnel-agent";

/// The tunnel server, in the seed.
#[derive(Debug)]
pub struct TunnelServer;

impl Deploy for TunnelServer {
    const TASKS: Tasks = [
        "Deploying tunnel to the nodes of the Shoot",
        "Waiting until tunnel to the nodes of the Shoot rolled out",
    ];
    const TOUCHES: ExternalSystems = NONE;

    async fn deploy(f: &Facts) -> Result<()> {
        let services: Api<Service> = f.residency.seed.namespaced(&f.residency.namespace);
        let files: Api<ConfigMap> = f.residency.seed.namespaced(&f.residency.namespace);
        if !f.wants_tunnel() {
            let deployments: Api<Deployment> = f.residency.seed.namespaced(&f.residency.namespace);
            apply::delete(&deployments, SERVER).await?;
            apply::delete(&services, TUNNEL_SERVICE).await?;
            return Ok(());
        }
        FIELD_MANAGER
            .apply(&services, &server::service(&f.residency.namespace)?)
            .await?;
        // Read by kube-apiserver, which a later task deploys.
        FIELD_MANAGER
            .apply(&files, &egress::config_map(&f.residency.namespace)?)
            .await?;
        component::deploy(&f.residency, &server::workload(f)).await
    }

    async fn ready(f: &Facts) -> Result<()> {
        if !f.wants_tunnel() {
            return Ok(());
        }
        f.residency
            .component_ready(SERVER, f.residency.settings.timeouts.controllers)
            .await
    }
}

impl Sleep for TunnelServer {
    const TASKS: Tasks = [
        "Scaling tunnel to the nodes of the Shoot down",
        "Waiting until tunnel to the nodes of the Shoot has stopped",
    ];
    const TOUCHES: ExternalSystems = NONE;

    async fn sleep(f: &Facts) -> Result<()> {
        if !f.wants_tunnel() {
            return Ok(());
        }
        component::stop(&f.residency, &server::workload(f)).await
    }

    async fn asleep(f: &Facts) -> Result<()> {
        if !f.wants_tunnel() {
            return Ok(());
        }
        f.residency
            .component_stopped(SERVER, f.residency.settings.timeouts.controllers)
            .await
    }
}

/// The tunnel agents, in the shoot.
#[derive(Debug)]
pub struct TunnelAgents;

impl Deploy for TunnelAgents {
    const TASKS: Tasks = [
        "Deploying agents of the tunnel in Shoot",
        "Waiting until agents of the tunnel in Shoot are applied",
    ];
    const TOUCHES: ExternalSystems = NONE;

    async fn deploy(f: &Facts) -> Result<()> {
        let wanted = objects(f).await?;
        system_components::deploy(&f.residency, MANAGED_RESOURCE, wanted.as_deref()).await
    }

    async fn ready(f: &Facts) -> Result<()> {
        let wanted = objects(f).await?;
        system_components::ready(&f.residency, MANAGED_RESOURCE, wanted.as_deref()).await
    }
}

impl Facts {
    /// Whether the API server reaches nodes through a tunnel. A shoot without nodes needs no tunnel.
    pub(crate) fn wants_tunnel(&self) -> bool {
        self.residency.settings.tunnel && self.has_workers()
    }
}

async fn objects(f: &Facts) -> Result<Option<Vec<Value>>> {
    if !f.wants_tunnel() {
        return Ok(None);
    }
    let keys = f
        .residency
        .secret_data(crate::secrets::config::TUNNEL_AGENT)
        .await?;
    let names = agent::Names {
        front: f.api_for_nodes()?,
        server: &server::name(&f.residency.namespace),
    };
    Ok(Some(agent::objects(
        &server::image(&f.residency.settings),
        &names,
        &keys,
    )))
}

#[cfg(test)]
mod tests;
