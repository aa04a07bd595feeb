//! kube-apiserver: the process behind a shoot's address. When it is gone, nobody can write to the shoot any more (R7-50).

mod flags;

use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::Api;
use runtime::{
    Cluster, Result,
    workload::{Files, Health, Workload, labels},
};
use serde_json::json;

use flags::{AUTHENTICATION, PORT};

use crate::{
    Botanist, FIELD_MANAGER,
    component::program,
    from_json,
    secrets::config::{
        CA_CLIENT, CA_ETCD, CA_FRONT_PROXY, ETCD_CLIENT, ETCD_ENCRYPTION, KUBE_AGGREGATOR, KUBE_APISERVER,
        KUBELET_CLIENT, SERVICE_ACCOUNT_KEY, STATIC_TOKEN,
    },
};

/// Name of the Deployment, of the Service and of the Secret with its certificate.
pub(crate) const NAME: &str = KUBE_APISERVER;
/// All that a planned stop may take. Longer than it takes to answer the requests that were begun; shorter than the two
/// seconds that a move has for it.
const GRACE_SECONDS: i64 = 2;

impl Botanist {
    /// "Deploying Kubernetes API server service in the Seed cluster".
    pub async fn deploy_kube_apiserver_service(&self) -> Result<()> {
        let service: Service = from_json(json!({
            "metadata": {"name": NAME, "namespace": self.namespace, "labels": labels(NAME)},
            "spec": {
                "type": "ClusterIP",
                "selector": labels(NAME),
                "ports": [{"name": NAME, "port": 443, "targetPort": PORT, "protocol": "TCP"}],
            },
        }))?;
        let api: Api<Service> = self.seed.namespaced(&self.namespace);
        FIELD_MANAGER.apply(&api, &service).await.map(|_| ())
    }

    /// "Deploying Kubernetes API server".
    pub async fn deploy_kube_apiserver(&self) -> Result<()> {
        let api: Api<ConfigMap> = self.seed.namespaced(&self.namespace);
        FIELD_MANAGER
            .apply(&api, &authentication(&self.namespace)?)
            .await?;
        self.deploy_component(&component(self)).await
    }

    /// "Waiting until Kubernetes API server rolled out".
    pub async fn wait_until_kube_apiserver_ready(&self) -> Result<()> {
        self.wait_until_component_ready(NAME, self.settings.timeouts.kube_apiserver)
            .await
    }
}

fn component(botanist: &Botanist) -> Workload {
    let settings = &botanist.settings;
    let secrets = [
        ETCD_CLIENT,
        ETCD_ENCRYPTION,
        KUBE_AGGREGATOR,
        KUBE_APISERVER,
        KUBELET_CLIENT,
        SERVICE_ACCOUNT_KEY,
        STATIC_TOKEN,
    ];
    let authorities = [CA_CLIENT, CA_ETCD, CA_FRONT_PROXY];
    let mut files: Vec<_> = secrets.map(Files::Secret).into();
    files.extend(authorities.map(Files::Authority));
    files.push(Files::ConfigMap(AUTHENTICATION));
    Workload {
        name: NAME,
        image: settings.image(&settings.kube_apiserver_image, &botanist.kubernetes_version),
        program: program(NAME),
        args: flags::flags(&botanist.names),
        health: Health {
            scheme: "HTTPS",
            port: PORT,
            readiness: "/readyz",
            liveness: "/livez",
        },
        files,
        scratch: true,
        grace_seconds: GRACE_SECONDS,
        overlaps: true,
        requests: ["256Mi", "50m"],
    }
}

/// Requests without credentials are taken for health checks only.
fn authentication(namespace: &str) -> Result<ConfigMap> {
    let paths: Vec<_> = ["/livez", "/readyz", "/healthz"]
        .map(|path| json!({"path": path}))
        .into();
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1beta1",
        "kind": "AuthenticationConfiguration",
        "anonymous": {"enabled": true, "conditions": paths},
    });
    let text = serde_yaml_ng::to_string(&config).map_err(|e| runtime::Error::bug(e.to_string()))?;
    from_json(json!({
        "metadata": {"name": AUTHENTICATION, "namespace": namespace},
        "data": {"config.yaml": text},
    }))
}
