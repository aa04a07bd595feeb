//! The web page with a server in each zone, and a probe in a zone that stays.

use anyhow::{Result, ensure};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service},
};
use kube::{Api, Client, ResourceExt, runtime::wait::conditions};
use serde_json::json;

use super::web::{PROBE, READY_WITHIN, SERVER, answers, apply, deployment, lines, looks, pods_of};
use crate::{proof, watched};

/// Label of a node's zone.
const ZONE: &str = "topology.kubernetes.io/zone";
/// Longer than the shoot's machines take to stop sending requests to a removed pod, in seconds.
const ASKED_STILL: i64 = 20;

/// The page and the probe.
pub struct Zonal;

impl Zonal {
    /// Deploys a server in each of the zones, and a probe in `home`, and waits until all are ready and the
    /// page answers.
    pub async fn deploy(shoot: &Client, zones: i32, home: &str) -> Result<Self> {
        for (name, config, replicas) in [("web", SERVER, zones), ("probe", PROBE, 1)] {
            let config_map = json!({"metadata": {"name": name}, "data": {"haproxy.cfg": config}});
            apply::<ConfigMap>(shoot, config_map).await?;
            let mut wanted = deployment(name, config, replicas);
            let spec = &mut wanted["spec"]["template"]["spec"];
            if name == "web" {
                spec["topologySpreadConstraints"][0]["topologyKey"] = json!(ZONE);
                // A careful service answers while clients still send requests: the end of the zone must not
                // be mixed up with a careless shutdown.
                spec["containers"][0]["lifecycle"] = json!({"preStop": {"sleep": {"seconds": ASKED_STILL}}});
                spec["terminationGracePeriodSeconds"] = json!(ASKED_STILL + 5);
            } else {
                spec["nodeSelector"] = json!({ZONE: home});
            }
            apply::<Deployment>(shoot, wanted).await?;
            let service = json!({"metadata": {"name": name},
                "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}});
            apply::<Service>(shoot, service).await?;
        }
        for name in ["web", "probe"] {
            let deployments: Api<Deployment> = Api::default_namespaced(shoot.clone());
            let ready = conditions::is_deployment_completed();
            watched::until(&deployments, name, READY_WITHIN, ready).await?;
        }
        answers(shoot).await?;
        Ok(Self)
    }

    /// The number of failures of the probe so far.
    pub async fn failed(&self, shoot: &Client) -> Result<usize> {
        let looks = looks(shoot).await?;
        ensure!(
            looks.iter().any(|look| look.contains(" succeeded")),
            "the probe has never had an answer: {looks:?}"
        );
        Ok(looks.iter().filter(|look| look.contains(" failed")).count())
    }

    /// As [`Zonal::served`], after so many servers run.
    pub async fn served_by(&self, shoot: &Client, servers: usize) -> Result<Vec<(String, usize)>> {
        let others = proof::until_nothing(READY_WITHIN, || async {
            let run = pods_of(shoot, "web").await?;
            let names: Vec<_> = run.iter().map(ResourceExt::name_any).collect();
            Ok(Vec::from_iter(
                (names.len() != servers).then(|| format!("{names:?}")),
            ))
        })
        .await?;
        ensure!(others.is_empty(), "not {servers} servers: {others:?}");
        self.served(shoot).await
    }

    /// The number of requests of each running server, by name.
    pub async fn served(&self, shoot: &Client) -> Result<Vec<(String, usize)>> {
        let mut served = Vec::new();
        for pod in pods_of(shoot, "web").await? {
            let said = lines(shoot, &pod).await?;
            let requests = said.iter().filter(|line| line.contains("GET /page")).count();
            served.push((pod.name_any(), requests));
        }
        Ok(served)
    }
}
