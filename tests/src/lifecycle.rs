//! A Shoot from the first manifest to the end, for the end-to-end tests: creation, disturbances and deletion.

use std::{
    net::Ipv4Addr,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use api::gardencore::Seed;
use k8s_openapi::api::{apps::v1::Deployment, coordination::v1::Lease, core::v1::Pod};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    runtime::wait::conditions,
};
use serde_json::json;
use testkit::WaitBound;

use crate::{dns, landscape::Landscape, manifests, proof, shoot::UserShoot, watched};

/// Namespace of the project in `tests/landscape/manifests`.
pub const PROJECT: &str = "garden-dev";
/// Bounds a whole move with room for a slow machine; the figures that count are printed.
pub const MOVE_WITHIN: Duration = Duration::from_secs(300);
/// Bounds background work (deletion of volumes, garbage and backups), and the end or election of a gardenlet,
/// including the expiry of a lock. Five times the duration on two cores.
pub const COLLECTED_WITHIN: Duration = Duration::from_secs(120);
const GARDENLET: &str = "gardenlet";
const NAMESPACE_OF_GARDENLET: &str = "garden";
const PODS_OF_GARDENLET: &str = "app.kubernetes.io/name=gardenlet";

/// A Shoot that was made on seed-a.
pub async fn created(landscape: &Landscape, name: &str) -> Result<UserShoot> {
    manifests::apply_project(landscape).await?;
    manifests::apply_shoot(landscape, name).await?;
    let shoot = UserShoot::new(landscape, PROJECT, name);
    shoot.wait_until_on("seed-a", MOVE_WITHIN).await?;
    Ok(shoot)
}

/// A Shoot with machines that was made on seed-a.
pub async fn created_with_workers(landscape: &Landscape, name: &str) -> Result<UserShoot> {
    manifests::apply_project(landscape).await?;
    manifests::apply_shoot_with_workers(landscape, name).await?;
    let shoot = UserShoot::new(landscape, PROJECT, name);
    shoot.wait_until_on("seed-a", MOVE_WITHIN).await?;
    Ok(shoot)
}

/// A Shoot with a machine in each of three zones that was made on seed-a.
pub async fn created_in_three_zones(landscape: &Landscape, name: &str) -> Result<UserShoot> {
    manifests::apply_project(landscape).await?;
    manifests::apply_shoot_in_three_zones(landscape, name).await?;
    let shoot = UserShoot::new(landscape, PROJECT, name);
    shoot.wait_until_on("seed-a", MOVE_WITHIN).await?;
    Ok(shoot)
}

/// Deletes the Shoot, and fails if seeds, DNS or the object store have leftovers.
pub async fn deleted(landscape: &Landscape, shoot: &UserShoot) -> Result<()> {
    let (id, backups) = (proof::technical_id(shoot).await?, backup_name(shoot).await?);
    let host = shoot.host().await?;
    shoot.delete().await?;
    watched::until(&shoot.api(), &shoot.name, MOVE_WITHIN, |shoot: Option<&_>| {
        shoot.is_none()
    })
    .await
    .context("the Shoot is not deleted in time")?;
    for seed in landscape.seeds.keys() {
        nothing_left(landscape, seed, &id).await?;
    }
    let addresses = dns::addresses(landscape.dns, &host).await?;
    ensure!(
        addresses == Vec::<Ipv4Addr>::new(),
        "DNS still knows {host}: {addresses:?}"
    );
    let store = landscape.variable("S3_DATA")?.to_owned();
    let left = proof::until_nothing(COLLECTED_WITHIN, || async {
        Ok(snapshots(store.as_ref(), &backups))
    })
    .await?;
    ensure!(left.is_empty(), "left in the object store: {left:?}");
    Ok(())
}

/// Fails if a seed still has objects of a control plane after a while (I6).
pub async fn nothing_left(landscape: &Landscape, seed: &str, technical_id: &str) -> Result<()> {
    nothing_left_within(COLLECTED_WITHIN, landscape, seed, technical_id).await
}

/// As [`nothing_left`], with this time limit.
pub async fn nothing_left_within(
    limit: Duration,
    landscape: &Landscape,
    seed: &str,
    technical_id: &str,
) -> Result<()> {
    let client = landscape.seed(seed)?;
    let left = proof::until_nothing(limit, || proof::left_behind(client, technical_id)).await?;
    ensure!(left.is_empty(), "left on {seed}: {left:?}");
    Ok(())
}

/// Containers of a control plane with how often each was started again, ordered.
pub async fn containers(seed: &Client, technical_id: &str) -> Result<Vec<(String, String, i32)>> {
    let pods = Api::<Pod>::namespaced(seed.clone(), technical_id);
    Ok(starts(pods.list(&ListParams::default()).await?))
}

/// Each container of these pods, with the number of restarts.
pub fn starts(pods: impl IntoIterator<Item = Pod>) -> Vec<(String, String, i32)> {
    let mut found = Vec::new();
    for pod in pods {
        let name = pod.name_any();
        let states = pod.status.and_then(|status| status.container_statuses);
        for state in states.unwrap_or_default() {
            found.push((name.clone(), state.name, state.restart_count));
        }
    }
    found.sort();
    found
}

/// Name of a shoot's BackupEntry and of the folder in a bucket. A former shoot of the same name had a
/// different name.
pub async fn backup_name(shoot: &UserShoot) -> Result<String> {
    let status = shoot.get().await?.status.context("the Shoot has no status yet")?;
    Ok(format!("{}--{}", status.technical_id, status.uid))
}

/// The bucket of a seed.
///
/// # Errors
/// The garden does not answer.
pub async fn bucket_name(garden: &Client, seed: &str) -> Result<String> {
    let seed = Api::<Seed>::all(garden.clone()).get(seed).await?;
    seed.uid().context("a seed without a uid")
}

/// Snapshot objects of a shoot in the folder of the object store, ordered by bucket and age.
#[must_use]
pub fn snapshots(folder: &Path, backup_name: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<String> = entries
        .flatten()
        .map(|entry| entry.path())
        .flat_map(|path| {
            if path.is_dir() {
                snapshots(&path, backup_name)
            } else {
                vec![path.display().to_string()]
            }
        })
        .filter(|path| path.contains(backup_name) && (path.contains("/Full-") || path.contains("/Incr-")))
        .collect();
    found.sort();
    found
}

/// Names of a shoot's snapshot objects in the bucket of a seed.
///
/// # Errors
/// The garden does not name the bucket.
pub async fn snapshots_of(landscape: &Landscape, shoot: &UserShoot, seed: &str) -> Result<Vec<String>> {
    let found = snapshot_files(landscape, shoot, seed).await?;
    Ok(found.iter().filter_map(|path| name_of(path)).collect())
}

async fn snapshot_files(landscape: &Landscape, shoot: &UserShoot, seed: &str) -> Result<Vec<String>> {
    let bucket = bucket_name(&landscape.garden, seed).await?;
    let folder = Path::new(landscape.variable("S3_DATA")?).join(bucket);
    Ok(snapshots(&folder, &backup_name(shoot).await?))
}

fn name_of(path: &str) -> Option<String> {
    Some(Path::new(path).file_name()?.to_str()?.to_owned())
}

/// Removes the final snapshot of a move from the bucket of the source, at the moment of the hand-over.
/// Returns the names of the removed objects.
///
/// # Errors
/// The shoot is not handed over in time, or the snapshot cannot be removed.
pub async fn lose_final_snapshot(
    landscape: &Landscape,
    shoot: &UserShoot,
    (from, to): (&str, &str),
) -> Result<Vec<String>> {
    let bound = WaitBound::new(format!("the Shoot is handed over to {to}"), MOVE_WITHIN);
    let begun = Instant::now();
    loop {
        let status = shoot.get().await?.status.unwrap_or_default();
        if status.seed_name.as_deref() == Some(to) {
            bound.report(begun.elapsed());
            break;
        }
        ensure!(
            begun.elapsed() < MOVE_WITHIN,
            "the shoot was not handed over to {to}"
        );
        // The copy begins some seconds after the hand-over.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // An earlier final snapshot is the origin of the source's epoch. Names within a bucket are ordered by
    // revision.
    let files = snapshot_files(landscape, shoot, from).await?;
    let last = files
        .iter()
        .rfind(|path| path.rsplit('.').next() == Some("final"));
    let path = last.with_context(|| format!("{from} has no final snapshot among {files:?}"))?;
    std::fs::remove_file(path).with_context(|| path.clone())?;
    Ok(name_of(path).into_iter().collect())
}

/// Waits until the bucket has all present writes, and the shoot's API answers. A starting backup process
/// immediately uploads all data that the store does not have, so the process beside etcd is killed.
///
/// # Errors
/// No snapshot in time, or no API.
pub async fn backed_up(landscape: &Landscape, shoot: &UserShoot, seed: &str) -> Result<()> {
    let (namespace, backups) = (proof::technical_id(shoot).await?, backup_name(shoot).await?);
    let store = landscape.variable("S3_DATA")?.to_owned();
    let stored = snapshots(store.as_ref(), &backups);
    let client = landscape.seed(seed)?;
    kill(client, &namespace, "app.kubernetes.io/component=etcd-statefulset").await?;
    let bound = WaitBound::new("a snapshot is stored", COLLECTED_WITHIN);
    let begun = Instant::now();
    while snapshots(store.as_ref(), &backups) == stored {
        ensure!(
            begun.elapsed() < COLLECTED_WITHIN,
            "no snapshot more than {stored:?}"
        );
        // A folder of the object store cannot be watched.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    bound.report(begun.elapsed());
    proof::until_nothing(COLLECTED_WITHIN, || async {
        proof::read(shoot, client).await?;
        Ok(Vec::new())
    })
    .await
    .context("the shoot's API does not answer again")?;
    Ok(())
}

/// Kills the gardenlet of every seed without grace period, and returns when the successors are elected. The
/// successors must wait for the expiry of the locks.
pub async fn kill_gardenlets(landscape: &Landscape) -> Result<()> {
    for client in landscape.seeds.values() {
        kill_gardenlet(client).await?;
    }
    for client in landscape.seeds.values() {
        elected(client).await?;
    }
    Ok(())
}

/// Kills the gardenlet of a seed without grace period, and does not wait.
pub async fn kill_gardenlet(seed: &Client) -> Result<()> {
    kill(seed, NAMESPACE_OF_GARDENLET, PODS_OF_GARDENLET).await
}

/// Kills the pods of a process, if any, without grace period, and does not wait.
pub async fn kill(seed: &Client, namespace: &str, labels: &str) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(seed.clone(), namespace);
    for pod in pods.list(&ListParams::default().labels(labels)).await? {
        let without_a_word = DeleteParams::default().grace_period(0);
        match pods.delete(&pod.name_any(), &without_a_word).await {
            // The pod ended before the deletion.
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            other => drop(other?),
        }
    }
    Ok(())
}

/// Waits until a gardenlet with an existing pod holds the lock.
async fn elected(seed: &Client) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(seed.clone(), NAMESPACE_OF_GARDENLET);
    let bound = WaitBound::new("a gardenlet is elected", COLLECTED_WITHIN);
    let begun = Instant::now();
    loop {
        let lease = leases.get(GARDENLET).await?;
        let holder = lease
            .spec
            .and_then(|spec| spec.holder_identity)
            .unwrap_or_default();
        let lives = |pod: &Pod| holder.starts_with(&format!("{}_", pod.name_any()));
        if gardenlet_pods(seed).await?.iter().any(lives) {
            bound.report(begun.elapsed());
            return Ok(());
        }
        ensure!(
            begun.elapsed() < COLLECTED_WITHIN,
            "no gardenlet is elected; the lock is held by {holder:?}"
        );
        // The condition depends on the pods and the lock, so no single watch covers the condition.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Stops the gardenlet of a seed until [`start_gardenlet`]; returns when the process is gone.
pub async fn stop_gardenlet(seed: &Client) -> Result<()> {
    scale_gardenlet(seed, 0).await?;
    let pods: Api<Pod> = Api::namespaced(seed.clone(), NAMESPACE_OF_GARDENLET);
    for pod in gardenlet_pods(seed).await? {
        let (name, uid) = (pod.name_any(), pod.uid().unwrap_or_default());
        watched::until(&pods, &name, COLLECTED_WITHIN, conditions::is_deleted(&uid))
            .await
            .context("the gardenlet does not stop")?;
    }
    Ok(())
}

/// Starts the gardenlet again.
pub async fn start_gardenlet(seed: &Client) -> Result<()> {
    scale_gardenlet(seed, 1).await
}

async fn scale_gardenlet(seed: &Client, replicas: u32) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(seed.clone(), NAMESPACE_OF_GARDENLET);
    let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    deployments
        .patch_scale(GARDENLET, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

async fn gardenlet_pods(seed: &Client) -> Result<Vec<Pod>> {
    let pods: Api<Pod> = Api::namespaced(seed.clone(), NAMESPACE_OF_GARDENLET);
    let labelled = ListParams::default().labels(PODS_OF_GARDENLET);
    Ok(pods.list(&labelled).await?.items)
}
