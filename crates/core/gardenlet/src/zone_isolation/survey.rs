//! Reads the facts about the shoot and its seed that decide about a failover, also for a dry run. Every read
//! has a bound of time, and of the number of objects.

use std::{collections::BTreeSet, ops::ControlFlow, time::Duration};

use api::{
    extensions::Infrastructure,
    gardencore::{Seed as SeedObject, Shoot as ShootObject},
};
use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, Pod};
use kube::{Api, Resource, ResourceExt, api::ListParams};
use parts::{Facts, Residency, SubnetIsolation, Workers};
use placement::{Isolation, Operation, isolation};
use runtime::{
    Error, Result,
    client::{Cluster, apply::Object},
    error::Explain,
};
use serde::de::DeserializeOwned;

use super::judgement::{ReportedZone, ZoneFacts, ZoneNode};
use crate::{shoot::ownership::status_writer::StatusWriter, zone_isolation};

/// Limit for answers of the shoot's API. Longer than a restart of the API server, and much shorter than a
/// flow: a failover is urgent.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause between two attempts to read the Nodes.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Objects of a kind that are read. Further objects are ignored.
const MAX_OBJECTS: usize = 10_000;

/// Refuses the requested failover if the failover must not begin, and reports doubts as Events. A failover
/// that has begun continues without a check.
///
/// # Errors
/// The garden or the seed could not be asked.
pub(crate) async fn judge_failover(
    f: &mut Facts,
    labels: &[String],
    status_writer: &StatusWriter<'_>,
) -> Result<()> {
    let Isolation::CutOff(zone) = &f.isolation else {
        return Ok(());
    };
    // A shoot that is being created has no Nodes and no pods.
    if f.operation != Operation::Reconcile || has_begun(f, zone).await? {
        return Ok(());
    }
    let facts = collect_facts(f, labels).await?;
    let verdict = zone_isolation::judgement::judge(zone, facts.zone_name(&f.shoot, zone), &facts);
    for sentence in &verdict.warnings {
        status_writer.warn("ZoneIsolationUncertain", sentence).await;
    }
    if let Some(refusal) = verdict.refusal {
        f.isolation = Isolation::Refused(refusal);
    }
    Ok(())
}

async fn has_begun(f: &Facts, zone: &str) -> Result<bool> {
    if isolation::is_begun(&f.shoot, zone) {
        return Ok(true);
    }
    let worker = Workers::object(&f.residency).get().await?;
    let is_left = |worker: &api::extensions::Worker| worker.spec.isolated_zone_id.as_deref() == Some(zone);
    if worker.as_ref().is_some_and(is_left) {
        return Ok(true);
    }
    let closed = SubnetIsolation::object(&f.residency).get().await?;
    Ok(closed.is_some_and(|closed| closed.spec.isolated_zone_id == zone))
}

/// The present facts that decide about a failover.
///
/// # Errors
/// The garden or the seed could not be asked.
pub(crate) async fn collect_facts(f: &Facts, labels: &[String]) -> Result<ZoneFacts> {
    let sleeps = placement::is_to_sleep(&f.shoot) || placement::is_asleep(&f.shoot);
    let asked = if sleeps {
        None
    } else {
        Some(read_nodes(f, labels).await)
    };
    let (nodes, uid) = match asked {
        None => (None, None),
        Some(Ok((nodes, uid))) => (Some(Ok(nodes)), uid),
        Some(Err(why)) => (Some(Err(why.to_string())), None),
    };
    Ok(ZoneFacts {
        nodes,
        control_plane: control_plane_pods(f, labels).await?,
        zones: reported_zones(f).await?,
        hosts_as: find_hosting_seed(f, uid.as_deref()).await?,
    })
}

/// The zones that the shoot's Infrastructure reports; empty before there is an Infrastructure.
async fn reported_zones(f: &Facts) -> Result<Vec<ReportedZone>> {
    let name = f.shoot.name_any();
    let api: Api<Infrastructure> = f.residency.seed.namespaced(&f.residency.namespace);
    let found = api.get_opt(&name).await;
    let found = found.context(format_args!("could not read Infrastructure {name}"))?;
    let status = found.and_then(|found| found.status);
    let status = status.and_then(|status| status.default.provider_status);
    Ok(ReportedZone::all(status.as_ref()))
}

/// The shoot's Nodes, and the uid of namespace kube-system, by which a Seed names its cluster.
async fn read_nodes(f: &Facts, labels: &[String]) -> Result<(Vec<ZoneNode>, Option<String>)> {
    let mut last = Error::transient("the shoot's API has not answered");
    let tries = async {
        loop {
            match read_nodes_once(f, labels).await {
                Ok(seen) => return seen,
                Err(error) => last = error,
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    };
    match tokio::time::timeout(READ_TIMEOUT, tries).await {
        Ok(seen) => Ok(seen),
        Err(_) => Err(last),
    }
}

async fn read_nodes_once(f: &Facts, labels: &[String]) -> Result<(Vec<ZoneNode>, Option<String>)> {
    let shoot = f.residency.shoot_client().await?;
    let mut seen = Vec::new();
    survey(&shoot.cluster_wide::<Node>(), |node| {
        seen.push(ZoneNode::from_node(&node, labels));
    })
    .await?;
    let system = shoot.cluster_wide::<Namespace>().get_opt("kube-system").await;
    let system = system.context("could not read namespace kube-system of the shoot")?;
    Ok((seen, system.and_then(|system| system.uid())))
}

/// Pods of etcd and of the API server, each with the zone of its Node.
async fn control_plane_pods(f: &Facts, labels: &[String]) -> Result<Vec<(String, Option<String>)>> {
    let mut serving = Vec::new();
    survey(
        &f.residency.seed.namespaced::<Pod>(&f.residency.namespace),
        |pod: Pod| {
            if serves_api(&pod) {
                let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
                serving.extend(node.map(|node| (pod.name_any(), node)));
            }
        },
    )
    .await?;
    let nodes: Api<Node> = f.residency.seed.cluster_wide();
    let mut found = Vec::new();
    for (pod, node) in serving {
        // The zone stays unknown if the Node is gone or cannot be read.
        let node = nodes.get_opt(&node).await.ok().flatten();
        let zone = node.and_then(|node| labels.iter().find_map(|label| node.labels().get(label)).cloned());
        found.push((pod, zone));
    }
    Ok(found)
}

fn serves_api(pod: &Pod) -> bool {
    let label = |key: &str| pod.labels().get(key).map(String::as_str);
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let is_api = label("role") == Some("kube-apiserver");
    let is_etcd = label("app.kubernetes.io/component") == Some("etcd-statefulset");
    (is_api || is_etcd) && !matches!(phase, Some("Succeeded" | "Failed"))
}

/// The Seed that is this shoot, if the Seed hosts shoots. The gardenlet of the Seed has recorded the uid of
/// namespace kube-system, or the shoot is in the garden's own project and has the name of the Seed.
async fn find_hosting_seed(f: &Facts, uid: Option<&str>) -> Result<Option<String>> {
    let is_own = f.shoot.namespace().as_deref() == Some("garden");
    let is_it = |seed: &SeedObject| {
        let identity = seed
            .status
            .as_ref()
            .and_then(|status| status.cluster_identity.as_deref());
        (identity.is_some() && identity == uid) || (is_own && seed.name_any() == f.shoot.name_any())
    };
    let mut seeds = Vec::new();
    survey(&f.garden.cluster_wide::<SeedObject>(), |seed: SeedObject| {
        if is_it(&seed) {
            seeds.push(seed.name_any());
        }
    })
    .await?;
    for seed in seeds {
        let shoots: Api<ShootObject> = f.garden.all();
        for field in ["spec", "status"] {
            let hosted = ListParams::default()
                .fields(&format!("{field}.seedName={seed}"))
                .limit(1);
            let hosted = shoots.list(&hosted).await;
            let hosted = hosted.context(format_args!("could not list shoots of Seed {seed}"))?;
            if !hosted.items.is_empty() {
                return Ok(Some(seed));
            }
        }
    }
    Ok(None)
}

/// Pods whose volumes are bound to the zone, as namespace/name. These pods wait until the zone is back.
///
/// # Errors
/// The shoot's API does not answer.
pub(crate) async fn bound_pods(residency: &Residency, name: &str) -> Result<Vec<String>> {
    let shoot = residency.shoot_client().await?;
    let mut claims = BTreeSet::new();
    survey(&shoot.cluster_wide::<PersistentVolume>(), |volume| {
        claims.extend(zone_isolation::volumes::claim_in(volume, name));
    })
    .await?;
    let mut bound = Vec::new();
    if claims.is_empty() {
        return Ok(bound);
    }
    survey(&shoot.all::<Pod>(), |pod| {
        bound.extend(zone_isolation::volumes::in_need(&pod, &claims));
    })
    .await?;
    Ok(bound)
}

/// Reads a bounded number of objects within a bounded time, because users of the shoot can create any number.
async fn survey<K: Object + Resource, S: DeserializeOwned>(
    api: &Api<K>,
    mut see: impl FnMut(S),
) -> Result<()> {
    let (mut count, all) = (0, ListParams::default());
    let work = runtime::bounds::survey(api, &all, |object| {
        see(object);
        count += 1;
        if count < MAX_OBJECTS {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    let kind = K::plural(&());
    let done = tokio::time::timeout(READ_TIMEOUT, work).await;
    let done =
        done.map_err(|_| Error::transient(format!("{kind} were not listed within {READ_TIMEOUT:?}")))?;
    done.context(format_args!("could not list {kind}"))
}
