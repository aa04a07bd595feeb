//! The tunnel: by which kube-apiserver reaches nodes, pods and Services of a shoot where the seed has no road
//! to them.
//!
//! kube-apiserver asks the server ([`server`]) by HTTP CONNECT, as its EgressSelector is told ([`egress`]);
//! agents on the nodes ([`agent`]) have dialled the server through the seed's front. Another tunnel that
//! takes CONNECT can stand in the same place: kube-apiserver knows nothing of this one but an address.
//!
//! Keys are the shoot's own and go with it, so that agents find the new seed with what they have
//! (gardener#15442).

mod agent;
mod egress;
mod server;

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service},
};
use kube::Api;
use runtime::{Cluster, Result, apply};
use serde_json::Value;

use crate::{
    FIELD_MANAGER, Facts, component,
    secrets::config::TUNNEL_SERVICE,
    system_components,
    verbs::{Deploy, Sleep, Tasks},
};

pub(crate) use egress::{FILES, flag};
use server::NAME as SERVER;

/// Of the agents' ManagedResource.
const MANAGED_RESOURCE: &str = "shoot-core-tunnel-agent";

/// The server, in the seed.
#[derive(Debug)]
pub struct TunnelServer;

impl Deploy for TunnelServer {
    const TASKS: Tasks = [
        "Deploying tunnel to the nodes of the Shoot",
        "Waiting until tunnel to the nodes of the Shoot rolled out",
    ];

    async fn deploy(f: &Facts) -> Result<()> {
        let services: Api<Service> = f.seed.namespaced(&f.namespace);
        let files: Api<ConfigMap> = f.seed.namespaced(&f.namespace);
        if !f.wants_tunnel() {
            let deployments: Api<Deployment> = f.seed.namespaced(&f.namespace);
            apply::delete(&deployments, SERVER).await?;
            apply::delete(&services, TUNNEL_SERVICE).await?;
            return Ok(());
        }
        FIELD_MANAGER
            .apply(&services, &server::service(&f.namespace)?)
            .await?;
        // Read by kube-apiserver, which follows.
        FIELD_MANAGER
            .apply(&files, &egress::config_map(&f.namespace)?)
            .await?;
        component::deploy(f, &server::workload(f)).await
    }

    async fn ready(f: &Facts) -> Result<()> {
        if !f.wants_tunnel() {
            return Ok(());
        }
        f.component_ready(SERVER, f.settings.timeouts.controllers).await
    }
}

impl Sleep for TunnelServer {
    const TASKS: Tasks = [
        "Scaling tunnel to the nodes of the Shoot down",
        "Waiting until tunnel to the nodes of the Shoot has stopped",
    ];

    async fn sleep(f: &Facts) -> Result<()> {
        if !f.wants_tunnel() {
            return Ok(());
        }
        component::stop(f, &server::workload(f)).await
    }

    async fn asleep(f: &Facts) -> Result<()> {
        if !f.wants_tunnel() {
            return Ok(());
        }
        f.component_stopped(SERVER, f.settings.timeouts.controllers).await
    }
}

/// The agents, in the shoot.
#[derive(Debug)]
pub struct TunnelAgents;

impl Deploy for TunnelAgents {
    const TASKS: Tasks = [
        "Deploying agents of the tunnel in Shoot",
        "Waiting until agents of the tunnel in Shoot are applied",
    ];

    async fn deploy(f: &Facts) -> Result<()> {
        let wanted = objects(f).await?;
        system_components::deploy(f, MANAGED_RESOURCE, wanted.as_deref()).await
    }

    async fn ready(f: &Facts) -> Result<()> {
        let wanted = objects(f).await?;
        system_components::ready(f, MANAGED_RESOURCE, wanted.as_deref()).await
    }
}

impl Facts {
    /// Whether the API server goes to nodes through a tunnel. One without nodes goes nowhere.
    pub(crate) fn wants_tunnel(&self) -> bool {
        self.settings.tunnel && self.has_workers()
    }
}

async fn objects(f: &Facts) -> Result<Option<Vec<Value>>> {
    if !f.wants_tunnel() {
        return Ok(None);
    }
    let keys = f.secret_data(crate::secrets::config::TUNNEL_AGENT).await?;
    let names = agent::Names {
        front: f.api_for_nodes()?,
        server: &server::name(&f.namespace),
    };
    Ok(Some(agent::objects(&server::image(f), &names, &keys)))
}

#[cfg(test)]
mod tests;
