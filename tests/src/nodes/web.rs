//! A web page on the workers, and a probe inside the shoot that requests the page all the time.
//!
//! Both are HAProxy. The server answers with a page and logs a line for each request. The probe requests the
//! page by the Service's name five times a second, and logs a line when the result changes. Failures are a
//! refused connection, no connection after a second, and no complete answer after ten seconds. So the counts
//! come from inside the shoot, even while the shoot's API is away, and are read from the logs afterwards.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod, Service},
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, LogParams, Patch, PatchParams},
    runtime::wait::conditions,
};
use serde_json::{Value, json};
use tokio::process::Command;

use super::Fleet;
use crate::{proof, watched};

/// Longer than pods take to be placed and started on two machines.
pub(super) const READY_WITHIN: Duration = Duration::from_secs(120);

pub(super) const WRITER: &str = "repot-test";

/// Requests of the probe per second: one request by each of so many server entries in the probe's
/// configuration.
const RATE: u64 = 5;

pub(super) const SERVER: &str = "global\n  log stdout format raw local0\ndefaults\n  mode http\n  log global\n  option httplog\n  timeout client 10s\n\
  timeout server 10s\n  timeout connect 2s\nfrontend page\n  bind :8080\n\
  http-request return status 200 content-type text/html string \"<h1>this page stays</h1>\"\n";

pub(super) const PROBE: &str = "global\n  log stdout format raw local0\ndefaults\n  mode http\n  log global\n  timeout client 10s\n\
  timeout server 10s\n  timeout connect 2s\n  timeout check 10s\nresolvers cluster\n  parse-resolv-conf\n  hold valid 5s\n\
backend page\n  option httpchk GET /page\n  option log-health-checks\n\
  server-template web 5 web.default.svc.cluster.local:80 check inter 1s fall 1 rise 1 resolvers cluster \
  resolve-opts allow-dup-ip init-addr libc,none\n\
frontend ready\n  bind :8080\n  http-request return status 200 content-type text/plain string ok\n";

/// The page and the probe.
pub struct Web;

/// The counts of failures and requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Changes from an answer to a failure.
    pub failed: u64,
    /// Requests that the page has seen.
    pub served: u64,
}

impl Counts {
    /// Fails if a request was lost since `before`, or if the probe did not run all that time.
    pub fn nothing_lost_since(self, before: Self, time: Duration) -> Result<()> {
        let (failed, served) = (self.failed - before.failed, self.served - before.served);
        ensure!(failed == 0, "{failed} requests inside the shoot were lost");
        // Half of the requests: the machine may be busy.
        let least = time.as_secs() * RATE / 2;
        ensure!(
            served >= least,
            "only {served} requests in {time:?}: that proves nothing"
        );
        Ok(())
    }
}

impl Web {
    /// Deploys server and probe, with a server on each node, and waits until both are ready.
    pub async fn deploy(shoot: &Client) -> Result<Self> {
        for (name, config, replicas) in [("web", SERVER, 2), ("probe", PROBE, 1)] {
            apply::<ConfigMap>(
                shoot,
                json!({"metadata": {"name": name}, "data": {"haproxy.cfg": config}}),
            )
            .await?;
            apply::<Deployment>(shoot, deployment(name, config, replicas)).await?;
            apply::<Service>(
                shoot,
                json!({"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}}),
            )
            .await?;
        }
        for name in ["web", "probe"] {
            let deployments: Api<Deployment> = Api::default_namespaced(shoot.clone());
            let ready = conditions::is_deployment_completed();
            watched::until(&deployments, name, READY_WITHIN, ready).await?;
        }
        Ok(Self)
    }

    /// Waits until the probe reaches the page by the name of the Service.
    pub async fn answers(&self, shoot: &Client) -> Result<()> {
        answers(shoot).await
    }

    /// The number of failures so far, and the number of requests that the page has served.
    pub async fn counts(&self, shoot: &Client) -> Result<Counts> {
        let failed = looks(shoot)
            .await?
            .iter()
            .filter(|look| look.contains(" failed"))
            .count();
        let mut served = 0;
        for pod in pods_of(shoot, "web").await? {
            served += lines(shoot, &pod)
                .await?
                .iter()
                .filter(|line| line.contains("GET /page"))
                .count();
        }
        Ok(Counts {
            failed: u64::try_from(failed)?,
            served: u64::try_from(served)?,
        })
    }

    /// Checks that the API server reaches the kubelets. `kubeconfig` is for kubectl, used for exec.
    pub async fn logs_and_exec_work(&self, shoot: &Client, kubeconfig: &Path) -> Result<()> {
        let pods: Api<Pod> = Api::default_namespaced(shoot.clone());
        let pod = pod_of(shoot, "web").await?;
        pods.logs(&pod.name_any(), &LogParams::default())
            .await
            .context("logs")?;
        let ran = Command::new("kubectl")
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(["exec", &pod.name_any(), "--", "/usr/sbin/haproxy", "-v"])
            .kill_on_drop(true)
            .output();
        let ran = testkit::timeout(READY_WITHIN, ran)
            .await
            .context("exec hangs")??;
        let said = String::from_utf8_lossy(&ran.stdout);
        let why = String::from_utf8_lossy(&ran.stderr);
        ensure!(said.contains("HAProxy"), "exec gave {said:?} {why:?}");
        Ok(())
    }

    /// Checks that a new pod runs on a node of the fleet.
    pub async fn a_new_pod_runs_on(&self, shoot: &Client, fleet: &Fleet) -> Result<()> {
        apply::<ConfigMap>(
            shoot,
            json!({"metadata": {"name": "new"}, "data": {"haproxy.cfg": SERVER}}),
        )
        .await?;
        apply::<Deployment>(shoot, deployment("new", SERVER, 1)).await?;
        let deployments: Api<Deployment> = Api::default_namespaced(shoot.clone());
        let ready = conditions::is_deployment_completed();
        watched::until(&deployments, "new", READY_WITHIN, ready)
            .await
            .context("a new pod does not become ready")?;
        let node = pod_of(shoot, "new")
            .await?
            .spec
            .and_then(|spec| spec.node_name)
            .unwrap_or_default();
        ensure!(fleet.nodes.contains_key(&node), "the new pod runs on {node:?}");
        Ok(())
    }
}

/// Spread over the nodes, and as careful as a pod in the shoot should be.
pub(super) fn deployment(name: &str, config: &str, replicas: i32) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                // A changed configuration must recreate the pods.
                "metadata": {"labels": {"app": name}, "annotations": {"repot.test/config": config}},
                "spec": {
                    "terminationGracePeriodSeconds": 5,
                    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app": name}}}],
                    "containers": [{
                        "name": "haproxy", "image": "repot/edge:dev", "imagePullPolicy": "IfNotPresent",
                        "command": ["/usr/sbin/haproxy", "-f", "/config/haproxy.cfg"],
                        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 1},
                        "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "allowPrivilegeEscalation": false,
                            "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}},
                        "volumeMounts": [{"name": "config", "mountPath": "/config"}],
                    }],
                    "volumes": [{"name": "config", "configMap": {"name": name}}],
                },
            },
        },
    })
}

/// The probe's log lines about the page.
pub(super) async fn looks(shoot: &Client) -> Result<Vec<String>> {
    let pod = pod_of(shoot, "probe").await?;
    let all = lines(shoot, &pod).await?.into_iter();
    Ok(all
        .filter(|line| line.starts_with("Health check for server page/web"))
        .collect())
}

pub(super) async fn lines(shoot: &Client, pod: &Pod) -> Result<Vec<String>> {
    let pods: Api<Pod> = Api::default_namespaced(shoot.clone());
    let text = pods.logs(&pod.name_any(), &LogParams::default()).await;
    let text = text.with_context(|| format!("no logs of {}", pod.name_any()))?;
    Ok(text.lines().map(str::to_owned).collect())
}

pub(super) async fn pod_of(shoot: &Client, app: &str) -> Result<Pod> {
    let pods = pods_of(shoot, app).await?;
    pods.into_iter()
        .next()
        .with_context(|| format!("no pod of {app} runs"))
}

/// The running pods of an app.
pub(super) async fn pods_of(shoot: &Client, app: &str) -> Result<Vec<Pod>> {
    let pods: Api<Pod> = Api::default_namespaced(shoot.clone());
    let found = pods
        .list(&ListParams::default().labels(&format!("app={app}")))
        .await?;
    let running = |pod: &Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        phase == Some("Running") && pod.metadata.deletion_timestamp.is_none()
    };
    Ok(found.items.into_iter().filter(running).collect())
}

pub(super) async fn apply<K>(shoot: &Client, object: Value) -> Result<()>
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug,
{
    let mut object = object;
    object["apiVersion"] = json!(K::api_version(&()));
    object["kind"] = json!(K::kind(&()));
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    Api::<K>::default_namespaced(shoot.clone())
        .patch(&name, &PatchParams::apply(WRITER).force(), &Patch::Apply(&object))
        .await
        .with_context(|| format!("{} {name} cannot be applied", K::kind(&())))?;
    Ok(())
}

/// The last log line of a server entry, unless the line reports an answer.
fn unanswered(looks: &[String], server: u64) -> Option<String> {
    let name = format!("page/web{server} ");
    let last = looks.iter().rfind(|look| look.contains(&name));
    let is_answer = last.is_some_and(|look| look.contains(" succeeded"));
    (!is_answer).then(|| last.cloned().unwrap_or(name))
}

/// Waits until the probe reaches the page by the name of the Service.
pub(super) async fn answers(shoot: &Client) -> Result<()> {
    let wrong = proof::until_nothing(READY_WITHIN, || async {
        Ok(match looks(shoot).await {
            Ok(looks) => (1..=RATE)
                .filter_map(|server| unanswered(&looks, server))
                .collect(),
            // On new machines the probe is restarted.
            Err(error) => vec![format!("{error:#}")],
        })
    })
    .await?;
    ensure!(
        wrong.is_empty(),
        "the page is not to be had from inside the shoot: {wrong:?}"
    );
    Ok(())
}
