//! A controller that a user installs in a shoot. The controller is a pod that lists and watches, with only
//! the default address of the Service `kubernetes` and a ServiceAccount.
//!
//! The controller is a separate CoreDNS, a Go client like most controllers. CoreDNS shows the known objects:
//! a new Service becomes a name that CoreDNS answers. HAProxy queries CoreDNS for these names and logs a line
//! for each new name.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service, ServiceAccount},
    rbac::v1::ClusterRoleBinding,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    runtime::wait::conditions,
};
use serde_json::{Value, json};

use super::web::{READY_WITHIN, WRITER, apply, deployment, lines, pod_of};
use crate::{proof, watched};

const NAME: &str = "controller";
/// Name of the HAProxy that queries the controller.
const ASKER: &str = "asker";
/// Longer than a client with a lost watch takes. The time is the proxy's three lookups of the API's name (15
/// s), the TTL, and the pauses of the client.
const KNOWS_WITHIN: Duration = Duration::from_secs(90);
/// The namespace of the shoot's own CoreDNS.
const SYSTEM: &str = "kube-system";

/// No cache, so that the answers equal the known objects.
const COREFILE: &str = ".:8053 {\n  errors\n  ready\n  kubernetes cluster.local {\n    ttl 0\n  }\n}\n";

/// A controller that runs.
pub struct Controller;

impl Controller {
    /// Deploys the controller, and waits until the controller is ready; readiness requires a first read from
    /// the API.
    pub async fn deploy(shoot: &Client) -> Result<Self> {
        let kube_system: Api<Deployment> = Api::namespaced(shoot.clone(), SYSTEM);
        let system = kube_system.get("coredns").await?;
        let system = serde_json::to_value(system)?;
        let image = &system["spec"]["template"]["spec"]["containers"][0]["image"];
        apply::<ServiceAccount>(shoot, json!({"metadata": {"name": NAME}})).await?;
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "repot-test-controller"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": "default"}],
        });
        Api::<ClusterRoleBinding>::all(shoot.clone())
            .patch(
                "repot-test-controller",
                &PatchParams::apply(WRITER).force(),
                &Patch::Apply(binding),
            )
            .await?;
        apply::<ConfigMap>(
            shoot,
            json!({"metadata": {"name": NAME}, "data": {"Corefile": COREFILE}}),
        )
        .await?;
        apply::<Service>(
            shoot,
            json!({"metadata": {"name": NAME}, "spec": {"selector": {"app": NAME},
                "ports": [{"port": 53, "targetPort": 8053, "protocol": "UDP"}]}}),
        )
        .await?;
        apply::<Deployment>(shoot, of_controller(image)).await?;
        let services: Api<Service> = Api::default_namespaced(shoot.clone());
        let service = services.get(NAME).await?.spec.and_then(|spec| spec.cluster_ip);
        let config = asker(&service.context("the controller's Service has no address")?);
        apply::<ConfigMap>(
            shoot,
            json!({"metadata": {"name": ASKER}, "data": {"haproxy.cfg": config}}),
        )
        .await?;
        apply::<Deployment>(shoot, deployment(ASKER, &config, 1)).await?;
        for name in [NAME, ASKER] {
            let deployments: Api<Deployment> = Api::default_namespaced(shoot.clone());
            let ready = conditions::is_deployment_completed();
            watched::until(&deployments, name, READY_WITHIN, ready)
                .await
                .context("does the Service kubernetes lead to the API?")?;
        }
        Ok(Self)
    }

    /// The controller learns of a Service that is created now: `before` or `after`, the names that the asker
    /// queries. The watch from before the move does not hang, without a restart of the controller (checked by
    /// [`super::Fleet`]).
    pub async fn hears_of(&self, shoot: &Client, service: &str) -> Result<()> {
        apply::<Service>(
            shoot,
            json!({"metadata": {"name": service}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}}),
        )
        .await?;
        let server = format!("names/{service} ");
        let missing = proof::until_nothing(KNOWS_WITHIN, || async {
            let said = lines(shoot, &pod_of(shoot, ASKER).await?).await?;
            let known = |line: &String| line.contains(&server) && line.contains("changed its IP from (none)");
            Ok(if said.iter().any(known) { vec![] } else { said })
        })
        .await?;
        ensure!(
            missing.is_empty(),
            "a controller with the in-cluster configuration does not hear of Service {service}: {missing:?}"
        );
        Ok(())
    }
}

fn asker(controller: &str) -> String {
    format!(
        "global\n  log stdout format raw local0\ndefaults\n  mode tcp\n  log global\n  timeout client 10s\n  timeout server 10s\n  \
         timeout connect 2s\nresolvers controller\n  nameserver controller {controller}:53\n  resolve_retries 3\n  timeout resolve 1s\n  \
         timeout retry 1s\n  hold valid 1s\n  hold nx 1s\n  hold other 1s\n  hold refused 1s\n  hold timeout 1s\nbackend names\n  \
         server before before.default.svc.cluster.local:80 check inter 1s resolvers controller init-addr none\n  \
         server after after.default.svc.cluster.local:80 check inter 1s resolvers controller init-addr none\n\
         frontend ready\n  mode http\n  bind :8080\n  http-request return status 200 content-type text/plain string ok\n"
    )
}

/// The kubelet passes the address of the API, as to any pod.
fn of_controller(image: &Value) -> Value {
    json!({
        "metadata": {"name": NAME},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": NAME}},
            "template": {
                "metadata": {"labels": {"app": NAME}},
                "spec": {
                    "serviceAccountName": NAME,
                    "terminationGracePeriodSeconds": 5,
                    "containers": [{
                        "name": "coredns", "image": image, "imagePullPolicy": "IfNotPresent",
                        "args": ["-conf", "/config/Corefile"],
                        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
                        "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "allowPrivilegeEscalation": false,
                            "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}},
                        "volumeMounts": [{"name": "config", "mountPath": "/config"}],
                    }],
                    "volumes": [{"name": "config", "configMap": {"name": NAME}}],
                },
            },
        },
    })
}
