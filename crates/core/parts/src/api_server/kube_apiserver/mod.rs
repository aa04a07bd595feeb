//! kube-apiserver: the process behind a shoot's address. Without this process, no client can write to the
//! shoot (R7-50).

mod events;
mod flags;

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service},
};
use kube::Api;
use runtime::{
    Result,
    client::Cluster,
    error::Explain,
    workload::{Files, Health, Workload, labels},
};
use serde_json::json;

use flags::{AUTHENTICATION, PORT};

use crate::{
    FIELD_MANAGER, Facts, Residency,
    api_server::kube_apiserver_exposure,
    component::{self, program},
    etcd::owner::EVENTS_DIRECT,
    from_json,
    secrets::config::{
        CA_CLIENT, CA_ETCD, CA_FRONT_PROXY, ETCD_CLIENT, ETCD_ENCRYPTION, KUBE_AGGREGATOR, KUBE_APISERVER,
        KUBELET_CLIENT, SERVICE_ACCOUNT_KEY, STATIC_TOKEN,
    },
    task::{ExternalSystems, NONE},
    tunnel,
    verbs::{Deploy, Sleep, Tasks},
};

/// Name of the Deployment, the Service and the Secret with the certificate.
pub(crate) const NAME: &str = KUBE_APISERVER;
/// Secrets that the process mounts, without the Secrets of the tunnel.
const SECRETS: [&str; 7] = [
    ETCD_CLIENT,
    ETCD_ENCRYPTION,
    KUBE_AGGREGATOR,
    KUBE_APISERVER,
    KUBELET_CLIENT,
    SERVICE_ACCOUNT_KEY,
    STATIC_TOKEN,
];
/// Authorities whose certificates the process mounts, without the authority of the tunnel.
const AUTHORITIES: [&str; 3] = [CA_CLIENT, CA_ETCD, CA_FRONT_PROXY];
/// Upper bound of a planned stop. Longer than `--shutdown-delay-duration` and the answers to open requests;
/// not longer than the two seconds that a move has for the stop. Open watches always take the whole period.
/// A deletion of the pod can ask for a longer period.
const GRACE_SECONDS: i64 = 2;

/// The Service in front of kube-apiserver, and the route from the seed's SNI proxy to the Service.
#[derive(Debug)]
pub struct KubeApiserverService;

impl Deploy for KubeApiserverService {
    const TASKS: Tasks = [
        "Deploying Kubernetes API server service in the Seed cluster",
        "Waiting until Kubernetes API server service in the Seed cluster has reported readiness",
    ];
    const TOUCHES: ExternalSystems = NONE;

    async fn deploy(f: &Facts) -> Result<()> {
        let service: Service = from_json(json!({
            "metadata": {"name": NAME, "namespace": f.residency.namespace, "labels": labels(NAME)},
            "spec": {
                "type": "ClusterIP",
                "selector": labels(NAME),
                "ports": [{"name": NAME, "port": 443, "targetPort": PORT, "protocol": "TCP"}],
            },
        }))?;
        let api: Api<Service> = f.residency.seed.namespaced(&f.residency.namespace);
        FIELD_MANAGER.apply(&api, &service).await.map(|_| ())
    }

    async fn ready(f: &Facts) -> Result<()> {
        kube_apiserver_exposure::wait_for_front(&f.residency).await
    }
}

/// The process.
#[derive(Debug)]
pub struct KubeApiserver;

impl Deploy for KubeApiserver {
    const TASKS: Tasks = [
        "Deploying Kubernetes API server",
        "Waiting until Kubernetes API server rolled out",
    ];
    const TOUCHES: ExternalSystems = NONE;

    async fn deploy(f: &Facts) -> Result<()> {
        let api: Api<ConfigMap> = f.residency.seed.namespaced(&f.residency.namespace);
        FIELD_MANAGER
            .apply(&api, &authentication(&f.residency.namespace)?)
            .await?;
        let events = events::address(f).await?;
        component::deploy(&f.residency, &workload(f, &events)).await
    }

    async fn ready(f: &Facts) -> Result<()> {
        f.residency
            .component_ready(NAME, f.residency.settings.timeouts.kube_apiserver)
            .await
    }
}

impl Sleep for KubeApiserver {
    const TASKS: Tasks = [
        "Scaling Kubernetes API server down",
        "Waiting until Kubernetes API server has stopped",
    ];
    const TOUCHES: ExternalSystems = NONE;

    async fn sleep(f: &Facts) -> Result<()> {
        // No process runs with this address: the flow that wakes the shoot reads the address again.
        component::stop(&f.residency, &workload(f, EVENTS_DIRECT)).await
    }

    async fn asleep(f: &Facts) -> Result<()> {
        f.residency
            .component_stopped(NAME, f.residency.settings.timeouts.kube_apiserver)
            .await
    }
}

impl KubeApiserver {
    /// Whether kube-apiserver is hibernated: the Deployment exists with zero replicas.
    pub async fn sleeps(residency: &Residency) -> Result<bool> {
        let found = Self::read(residency).await?;
        let replicas = |found: Deployment| found.spec.and_then(|spec| spec.replicas);
        Ok(found.and_then(replicas) == Some(0))
    }

    /// Whether the Deployment exists, awake or hibernated, and is not being deleted.
    pub async fn exists(residency: &Residency) -> Result<bool> {
        Ok(Self::read(residency).await?.is_some())
    }

    async fn read(residency: &Residency) -> Result<Option<Deployment>> {
        let api: Api<Deployment> = residency.seed.namespaced(&residency.namespace);
        let found = api.get_opt(NAME).await;
        let found = found.context("could not read Deployment kube-apiserver")?;
        Ok(found.filter(|found| found.metadata.deletion_timestamp.is_none()))
    }
}

fn workload(f: &Facts, events: &str) -> Workload {
    let settings = &f.residency.settings;
    let mut files: Vec<_> = SECRETS.map(Files::Secret).into();
    files.extend(AUTHORITIES.map(Files::Authority));
    files.push(Files::ConfigMap(AUTHENTICATION));
    let mut args = flags::flags(&f.names, events);
    if f.wants_tunnel() {
        files.extend(tunnel::FILES);
        args.push(tunnel::flag());
    }
    Workload {
        name: NAME,
        image: settings.image(&settings.kube_apiserver_image, &f.kubernetes_version),
        program: program(NAME),
        args,
        health: Health {
            scheme: "HTTPS",
            port: PORT,
            // Missing Events are no reason to end kube-apiserver: etcd-events may be down while etcd-main
            // serves the shoot.
            readiness: "/readyz?exclude=etcd-override-0&exclude=etcd-override-readiness-0",
            liveness: "/livez?exclude=etcd-override-0",
        },
        files,
        scratch: true,
        grace_seconds: GRACE_SECONDS,
        overlaps: true,
        requests: ["256Mi", "50m"],
    }
}

/// Requests without credentials are accepted only for health checks.
fn authentication(namespace: &str) -> Result<ConfigMap> {
    let paths: Vec<_> = ["/livez", "/readyz", "/healthz"]
        .map(|path| json!({"path": path}))
        .into();
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1beta1",
        "kind": "AuthenticationConfiguration",
        "anonymous": {"enabled": true, "conditions": paths},
    });
    let text = serde_yaml_ng::to_string(&config)
        .map_err(|e| runtime::Error::bug(runtime::ErrorMessage::from_source(e)))?;
    from_json(json!({
        "metadata": {"name": AUTHENTICATION, "namespace": namespace},
        "data": {"config.yaml": text},
    }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::secrets::config::{PreparedShare, prepared_names, prepared_share};

    /// A preparation shares the keys of a second API server, and no further key.
    #[test]
    fn a_preparation_shares_the_files_of_an_api_server_alone() {
        let mut mounted = SECRETS.map(|name| (name, false)).to_vec();
        mounted.extend(AUTHORITIES.map(|name| (name, true)));
        mounted.extend(tunnel::FILES.into_iter().filter_map(|files| match files {
            Files::Secret(name) => Some((name, false)),
            Files::Authority(name) => Some((name, true)),
            Files::ConfigMap(_) => None,
        }));
        let mounted: BTreeSet<_> = mounted.into_iter().collect();
        let is_authority = |name| prepared_share(name) == PreparedShare::Authority;
        let shared: BTreeSet<_> = prepared_names().map(|name| (name, is_authority(name))).collect();
        assert_eq!(shared, mounted);
    }
}
