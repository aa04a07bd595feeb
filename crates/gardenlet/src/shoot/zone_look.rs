//! Looks at the shoot and at its seed before a zone is cut off, and when it is asked what would move. Every
//! look is bounded, in time and in what it reads.

use std::{collections::BTreeSet, ops::ControlFlow, time::Duration};

use api::{
    extensions::Infrastructure,
    gardencore::{Seed as SeedObject, Shoot as ShootObject},
};
use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, Pod};
use kube::{Api, Resource, ResourceExt, api::ListParams};
use parts::{Facts, Stay, SubnetIsolation, Workers};
use placement::{Isolation, Operation, isolation};
use runtime::{Cluster, Error, Result, apply::Object, error::Explain};
use serde::de::DeserializeOwned;

use super::{
    record::Record,
    zone_judgement::{self, NodeSeen, ReportedZone, World},
    zone_volumes,
};

/// For the shoot's API to answer. Longer than its server takes to be started anew, much shorter than a flow:
/// a failover is urgent.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two tries.
const AGAIN: Duration = Duration::from_secs(1);
/// So many objects of a kind are looked at. What is beyond is not.
const OBJECTS: usize = 10_000;

/// The failover that is asked for is refused if it must not begin; what speaks against it otherwise is told.
/// One that has begun is not looked at: it goes on whatever has come about since.
///
/// # Errors
/// The garden or the seed could not be asked.
pub(super) async fn before(f: &mut Facts, labels: &[String], record: &Record<'_>) -> Result<()> {
    let Isolation::CutOff(zone) = &f.isolation else {
        return Ok(());
    };
    // A shoot that is just made has nothing to lose, and no Nodes.
    if f.operation != Operation::Reconcile || has_begun(f, zone).await? {
        return Ok(());
    }
    let world = world(f, labels).await?;
    let verdict = zone_judgement::judge(zone, world.name(&f.shoot, zone), &world);
    for sentence in &verdict.told {
        record.warn("ZoneIsolationUncertain", sentence).await;
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
    let worker = Workers::object(f).get().await?;
    let is_left = |worker: &api::extensions::Worker| worker.spec.isolated_zone_id.as_deref() == Some(zone);
    if worker.as_ref().is_some_and(is_left) {
        return Ok(true);
    }
    let closed = SubnetIsolation::object(f).get().await?;
    Ok(closed.is_some_and(|closed| closed.spec.isolated_zone_id == zone))
}

/// What counts for a failover, as it is now.
///
/// # Errors
/// The garden or the seed could not be asked.
pub(super) async fn world(f: &Facts, labels: &[String]) -> Result<World> {
    let sleeps = placement::is_to_sleep(&f.shoot) || placement::is_asleep(&f.shoot);
    let asked = if sleeps { None } else { Some(ask(f, labels).await) };
    let (nodes, uid) = match asked {
        None => (None, None),
        Some(Ok((nodes, uid))) => (Some(Ok(nodes)), uid),
        Some(Err(why)) => (Some(Err(why.to_string())), None),
    };
    Ok(World {
        nodes,
        control_plane: control_plane(f, labels).await?,
        zones: reported_zones(f).await?,
        hosts_as: hosts_as(f, uid.as_deref()).await?,
    })
}

/// The zones that the shoot's Infrastructure reports; empty before there is an Infrastructure.
async fn reported_zones(f: &Facts) -> Result<Vec<ReportedZone>> {
    let name = f.shoot.name_any();
    let api: Api<Infrastructure> = f.seed.namespaced(&f.namespace);
    let found = api.get_opt(&name).await;
    let found = found.context(format_args!("could not read Infrastructure {name}"))?;
    let status = found.and_then(|found| found.status);
    let status = status.and_then(|status| status.default.provider_status);
    Ok(ReportedZone::all(status.as_ref()))
}

/// The shoot's Nodes, and by what it is known as a Seed.
async fn ask(f: &Facts, labels: &[String]) -> Result<(Vec<NodeSeen>, Option<String>)> {
    let mut last = Error::transient("the shoot's API has not answered");
    let tries = async {
        loop {
            match ask_once(f, labels).await {
                Ok(seen) => return seen,
                Err(error) => last = error,
            }
            tokio::time::sleep(AGAIN).await;
        }
    };
    match tokio::time::timeout(PATIENCE, tries).await {
        Ok(seen) => Ok(seen),
        Err(_) => Err(last),
    }
}

async fn ask_once(f: &Facts, labels: &[String]) -> Result<(Vec<NodeSeen>, Option<String>)> {
    let shoot = f.shoot_client().await?;
    let mut seen = Vec::new();
    survey(&shoot.cluster_wide::<Node>(), |node| {
        seen.push(NodeSeen::from_node(&node, labels));
    })
    .await?;
    let system = shoot.cluster_wide::<Namespace>().get_opt("kube-system").await;
    let system = system.context("could not read namespace kube-system of the shoot")?;
    Ok((seen, system.and_then(|system| system.uid())))
}

/// Pods of etcd and of the API server, and where they run.
async fn control_plane(f: &Facts, labels: &[String]) -> Result<Vec<(String, Option<String>)>> {
    let mut vital = Vec::new();
    survey(&f.seed.namespaced::<Pod>(&f.namespace), |pod: Pod| {
        if is_vital(&pod) {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
            vital.extend(node.map(|node| (pod.name_any(), node)));
        }
    })
    .await?;
    let nodes: Api<Node> = f.seed.cluster_wide();
    let mut found = Vec::new();
    for (pod, node) in vital {
        // A Node that may not be read, or is gone, says nothing.
        let node = nodes.get_opt(&node).await.ok().flatten();
        let zone = node.and_then(|node| labels.iter().find_map(|label| node.labels().get(label)).cloned());
        found.push((pod, zone));
    }
    Ok(found)
}

fn is_vital(pod: &Pod) -> bool {
    let label = |key: &str| pod.labels().get(key).map(String::as_str);
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let is_api = label("role") == Some("kube-apiserver");
    let is_etcd = label("app.kubernetes.io/component") == Some("etcd-statefulset");
    (is_api || is_etcd) && !matches!(phase, Some("Succeeded" | "Failed"))
}

/// The Seed that the shoot is, if that hosts shoots: its gardenlet has recorded the uid of namespace
/// kube-system, or a shoot of the garden's own project has its name.
async fn hosts_as(f: &Facts, uid: Option<&str>) -> Result<Option<String>> {
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

/// Pods that are bound to the zone by their volumes, as namespace/name: they wait until it is back.
///
/// # Errors
/// The shoot's API does not answer.
pub(super) async fn bound_pods(stay: &Stay, name: &str) -> Result<Vec<String>> {
    let shoot = stay.shoot_client().await?;
    let mut claims = BTreeSet::new();
    survey(&shoot.cluster_wide::<PersistentVolume>(), |volume| {
        claims.extend(zone_volumes::claim_in(volume, name));
    })
    .await?;
    let mut bound = Vec::new();
    if claims.is_empty() {
        return Ok(bound);
    }
    survey(&shoot.all::<Pod>(), |pod| {
        bound.extend(zone_volumes::in_need(&pod, &claims));
    })
    .await?;
    Ok(bound)
}

/// Looks at some objects, for some time: users of the shoot make as many as they like.
async fn survey<K: Object + Resource, S: DeserializeOwned>(
    api: &Api<K>,
    mut see: impl FnMut(S),
) -> Result<()> {
    let (mut count, all) = (0, ListParams::default());
    let work = runtime::survey(api, &all, |object| {
        see(object);
        count += 1;
        if count < OBJECTS {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    let kind = K::plural(&());
    let done = tokio::time::timeout(PATIENCE, work).await;
    let done = done.map_err(|_| Error::transient(format!("{kind} were not listed within {PATIENCE:?}")))?;
    done.context(format_args!("could not list {kind}"))
}
