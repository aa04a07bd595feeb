//! kube-apiserver: the process behind a shoot's address. When it is gone, nobody can write to the shoot any more (R7-50).

mod flags;

use k8s_openapi::api::{
    autoscaling::v2::HorizontalPodAutoscaler,
    core::v1::{ConfigMap, Service},
};
use kube::{Api, ResourceExt, api::ListParams};
use runtime::{Cluster, Result, apply, error::Context};
use serde_json::json;

use crate::{
    Botanist, FIELD_MANAGER,
    component::{Component, labels},
    from_json,
    secrets::config::{
        CA_CLIENT, CA_ETCD, CA_FRONT_PROXY, ETCD_CLIENT, ETCD_ENCRYPTION, KUBE_AGGREGATOR, KUBE_APISERVER,
        KUBELET_CLIENT, SERVICE_ACCOUNT_KEY, STATIC_TOKEN,
    },
};

/// Name of the Deployment, of the Service and of the Secret with its certificate.
pub(crate) const NAME: &str = KUBE_APISERVER;
/// Port in the pod; the Service's port is 443.
const PORT: u16 = 6443;
/// ConfigMap that says who may ask without credentials: probes, and nobody else.
const AUTHENTICATION: &str = "kube-apiserver-authentication";
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

    /// "Deleting kube-apiserver deployment", and what could bring its pods back (R7-54).
    pub async fn delete_kube_apiserver(&self) -> Result<()> {
        let api: Api<HorizontalPodAutoscaler> = self.seed.namespaced(&self.namespace);
        let scalers = api
            .list(&ListParams::default())
            .await
            .context("could not list HorizontalPodAutoscalers")?;
        for scaler in scalers.items.iter().filter(|scaler| scales(scaler, NAME)) {
            apply::delete(&api, &scaler.name_any()).await?;
        }
        self.delete_component(NAME).await
    }

    /// "Waiting until kube-apiserver has been deleted": until no process is left that could write to etcd.
    pub async fn wait_until_kube_apiserver_deleted(&self) -> Result<()> {
        self.wait_until_component_deleted(NAME, self.settings.timeouts.kube_apiserver)
            .await
    }

    /// Whether kube-apiserver is deployed.
    pub async fn kube_apiserver_exists(&self) -> Result<bool> {
        self.component_exists(NAME).await
    }
}

fn scales(scaler: &HorizontalPodAutoscaler, deployment: &str) -> bool {
    let target = scaler.spec.as_ref().map(|spec| &spec.scale_target_ref);
    target.is_some_and(|target| target.kind == "Deployment" && target.name == deployment)
}

fn component(botanist: &Botanist) -> Component {
    Component {
        name: NAME,
        image: botanist.settings.image(
            &botanist.settings.kube_apiserver_image,
            &botanist.kubernetes_version,
        ),
        args: flags::flags(&botanist.names),
        port: PORT,
        readiness: "/readyz",
        liveness: "/livez",
        authorities: vec![CA_CLIENT, CA_ETCD, CA_FRONT_PROXY],
        secrets: vec![
            ETCD_CLIENT,
            ETCD_ENCRYPTION,
            KUBE_AGGREGATOR,
            KUBE_APISERVER,
            KUBELET_CLIENT,
            SERVICE_ACCOUNT_KEY,
            STATIC_TOKEN,
        ],
        config_maps: vec![AUTHENTICATION],
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn only_autoscalers_of_this_deployment_are_deleted() {
        let scaler = |kind: &str, name: &str| -> HorizontalPodAutoscaler {
            from_json(json!({"spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": kind, "name": name}}}))
                .unwrap()
        };
        assert!(scales(&scaler("Deployment", "kube-apiserver"), NAME));
        assert!(!scales(&scaler("Deployment", "other"), NAME));
        assert!(!scales(&scaler("StatefulSet", "kube-apiserver"), NAME));
    }
}
