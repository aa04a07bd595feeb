//! A shoot hibernates, moves during hibernation, and wakes up in the destination (R17-54). Meanwhile no
//! process of the shoot runs, in any seed or cloud, and all data are present after the wake-up.
//!
//! Needs the landscape `e2e` with the suite installed: `make e2e-all`.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use api::{constants::condition::OWNER_CHECKS_COMPLETE, machine::Machine};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::{Api, Client, ResourceExt, api::ListParams};
use repot_tests::{
    landscape::Landscape,
    lifecycle::{self, MOVE_WITHIN, deleted, nothing_left},
    nodes::{Fleet, Web},
    proof,
    shoot::UserShoot,
};

/// Longer than the drain and end of two machines followed by the end of a control plane; or the same for a
/// start.
const SETTLED_WITHIN: Duration = Duration::from_secs(400);

#[tokio::test]
async fn a_shoot_sleeps_moves_in_its_sleep_and_wakes() {
    let landscape = Landscape::open("e2e").await.unwrap();
    let shoot = lifecycle::created_with_workers(&landscape, "sleeper")
        .await
        .unwrap();
    let (seed_a, seed_b) = (
        landscape.seed("seed-a").unwrap(),
        landscape.seed("seed-b").unwrap(),
    );
    let id = proof::technical_id(&shoot).await.unwrap();
    let client = shoot.client().await.unwrap();
    let web = Web::deploy(&client).await.unwrap();
    web.answers(&client).await.unwrap();
    proof::write_data(&client, 50).await.unwrap();
    let kept = proof::read(&shoot, seed_a).await.unwrap();
    let nodes = Fleet::read(seed_a, &id, &client).await.unwrap();

    let begin = Instant::now();
    shoot.set_hibernation(true).await.unwrap();
    sleeps(&shoot, true).await.unwrap();
    println!("it sleeps after {:?}", begin.elapsed());
    nothing_runs(&landscape, seed_a, &id).await.unwrap();
    shoot
        .wait("its conditions tell that it sleeps", SETTLED_WITHIN, |shoot| {
            let mut conditions = shoot.status.iter().flat_map(|status| &status.conditions);
            // The condition on owner checks matters also during hibernation: a takeover of the shoot needs
            // the condition.
            conditions.all(|condition| {
                condition.type_ == OWNER_CHECKS_COMPLETE
                    || condition.message == "Shoot cluster has been hibernated."
            })
        })
        .await
        .unwrap();

    let begin = Instant::now();
    shoot.set_seed("seed-b").await.unwrap();
    shoot.wait_until_on("seed-b", MOVE_WITHIN).await.unwrap();
    println!("it is on seed-b after {:?}", begin.elapsed());
    assert!(shoot.get().await.unwrap().status.unwrap().hibernated);
    nothing_runs(&landscape, seed_b, &id).await.unwrap();
    api_was_never_woken(seed_b, &id).await.unwrap();
    nothing_left(&landscape, "seed-a", &id).await.unwrap();

    let begin = Instant::now();
    shoot.set_hibernation(false).await.unwrap();
    sleeps(&shoot, false).await.unwrap();
    println!("it is awake after {:?}", begin.elapsed());
    let after = proof::read(&shoot, seed_b).await.unwrap();
    assert_eq!(kept.differences(&after), Vec::<String>::new());
    let client = shoot.client().await.unwrap();
    proof::stores_events(&client).await.unwrap();
    // New machines in the same pools, and the workload runs again.
    nodes.replaced(&client, SETTLED_WITHIN).await.unwrap();
    web.answers(&client).await.unwrap();

    // The shoot is hibernated again and deleted during hibernation: the outside resources are deleted
    // regardless.
    shoot.set_hibernation(true).await.unwrap();
    sleeps(&shoot, true).await.unwrap();
    deleted(&landscape, &shoot).await.unwrap();
    Fleet::nothing_left(&landscape, &id).await.unwrap();
}

/// Waits until all of the shoot is hibernated, or awake, and no operation is under way.
async fn sleeps(shoot: &UserShoot, asleep: bool) -> Result<()> {
    let what = if asleep { "it sleeps" } else { "it is awake" };
    shoot
        .wait(what, SETTLED_WITHIN, |shoot| {
            let Some(status) = &shoot.status else { return false };
            let succeeded = status
                .last_operation
                .as_ref()
                .is_some_and(|last| last.state.to_string() == "Succeeded");
            status.hibernated == asleep
                && succeeded
                && status.observed_generation == shoot.metadata.generation
        })
        .await
        .map(drop)
}

/// Checks for no pod of the control plane, no machine, and no resource in the cloud.
async fn nothing_runs(landscape: &Landscape, seed: &Client, id: &str) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(seed.clone(), id);
    let running = ListParams::default().fields("status.phase!=Succeeded");
    let pods: Vec<_> = pods
        .list(&running)
        .await?
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    ensure!(pods.is_empty(), "these run in its sleep: {pods:?}");
    let machines: Api<Machine> = Api::namespaced(seed.clone(), id);
    let machines = machines.list(&ListParams::default()).await?.items.len();
    ensure!(machines == 0, "{machines} machines are left in its sleep");
    Fleet::nothing_left(landscape, id).await
}

/// The Deployment was created with 0 replicas and not changed since.
async fn api_was_never_woken(seed: &Client, id: &str) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(seed.clone(), id);
    let api = deployments.get("kube-apiserver").await?;
    let replicas = api.spec.and_then(|spec| spec.replicas);
    let generation = api.metadata.generation.context("it has no generation")?;
    ensure!(
        (replicas, generation) == (Some(0), 1),
        "kube-apiserver was woken: {replicas:?} pods are wanted in generation {generation}"
    );
    Ok(())
}
