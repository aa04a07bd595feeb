//! Leader migration on real clusters (KEP-2436, RK-20 to RK-25): node IPAM of a shoot moves from the
//! kube-controller-manager to the cloud-controller-manager and back. Nodes are created all the time. Each
//! Node gets exactly one range, from the manager that holds the lock.
//!
//! Needs the landscape `e2e` with the suite installed: `make e2e`.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use api::{
    gardencore::Shoot,
    meta::{LastOperationState, LastOperationType},
};
use k8s_openapi::api::{apps::v1::Deployment, coordination::v1::Lease, rbac::v1::Role};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use repot_tests::{
    availability::{Manager, Probe},
    is_every_scenario,
    landscape::Landscape,
    lifecycle::{created, deleted, start_gardenlet, stop_gardenlet},
    managers::{self, TO_CLOUD, Walk},
    proof,
    shoot::UserShoot,
    skew::{self, ControlPlaneNodes, LOCK, Release},
};
use serde_json::{Value, json};

/// Bounds a whole hand-over: three processes start in sequence, and two locks expire. Three times the time on
/// two cores beside a second test, 48.3 s (docs/understand/testing.md), because a third test runs beside.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(150);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_ipam_moves_there_and_back_while_nodes_come() -> Result<()> {
    let landscape = Landscape::open("e2e").await?;
    let seed = landscape.seed("seed-a")?;
    let shoot = created(&landscape, "leads").await?;
    let probe = Probe::start(&landscape, &shoot, LOCK).await?;
    probe.served_by(Manager::Kubernetes, "at home").await?;

    by_the_shoot(seed, &shoot, &probe).await?;
    if is_every_scenario() {
        beside_each_other(seed, &shoot, &probe).await?;
    }

    let book = probe.stop().await?;
    let faults = book.faults();
    ensure!(faults.is_empty(), "{faults:#?}");
    println!(
        "{} Nodes and {} Services: each got what it needs, once; {} attempts to register failed",
        book.nodes.len(),
        book.services.len(),
        book.refusals.len()
    );
    deleted(&landscape, &shoot).await
}

/// Two releases at work at the same time, in the place of the Deployments.
async fn beside_each_other(seed: &Client, shoot: &UserShoot, probe: &Probe) -> Result<()> {
    let (client, namespace) = (shoot.client().await?, proof::technical_id(shoot).await?);
    stop_gardenlet(seed).await?;
    let skewed = async {
        let mut nodes = skew::take_over(seed, &namespace, &client).await?;
        with_two_releases(&mut nodes, probe).await
    };
    let skewed = skewed.await;
    let given_back = skew::give_back(seed, &namespace, &client).await;
    start_gardenlet(seed).await?;
    skewed?;
    given_back?;
    reconciled(shoot, json!({"purpose": "evaluation"})).await?;
    probe
        .served_by(Manager::Cloud, "with the Deployments again")
        .await
}

/// By a single edit of the Shoot: there, back, and there again (RK-20 to RK-24).
async fn by_the_shoot(seed: &Client, shoot: &UserShoot, probe: &Probe) -> Result<()> {
    let namespace = proof::technical_id(shoot).await?;
    let walk = Walk::start(seed, &namespace).await?;
    let to_cloud = json!([{"name": "node-ipam-controller", "component": managers::CLOUD}]);
    let mut back = TO_CLOUD;
    back.reverse();
    let ways = [
        (
            "to the cloud-controller-manager",
            to_cloud.clone(),
            TO_CLOUD,
            Manager::Cloud,
        ),
        ("back", Value::Null, back, Manager::Kubernetes),
        ("there again", to_cloud, TO_CLOUD, Manager::Cloud),
    ];
    let ways_at_all = if is_every_scenario() { 3 } else { 2 };
    for (name, leaders, way, wanted) in ways.into_iter().take(ways_at_all) {
        let begin = Instant::now();
        reconciled(shoot, json!({"kubernetes": {"controllerLeaders": leaders}})).await?;
        let end = Instant::now();
        let steps = walk.until(way[way.len() - 1]).await?;
        ensure!(steps == way, "{name}: the managers were told {steps:?}");
        without_traces(seed, &namespace, &shoot.client().await?).await?;
        probe.served_by(wanted, name).await?;
        println!(
            "{name}: {:.1} s; {}",
            (end - begin).as_secs_f64(),
            probe.book().waits(begin, Instant::now())
        );
    }
    Ok(())
}

/// Release by release, node by node, with both releases at work all the time (RK-21, RK-22, RK-25), and back.
async fn with_two_releases(nodes: &mut ControlPlaneNodes, probe: &Probe) -> Result<()> {
    nodes.start(Release::N).await?;
    probe
        .served_by(Manager::Kubernetes, "three nodes of release N")
        .await?;
    for (name, release, from, to) in [
        ("N to N+1", Release::Next, Manager::Kubernetes, Manager::Cloud),
        ("N+1 to N", Release::N, Manager::Cloud, Manager::Kubernetes),
    ] {
        let begin = Instant::now();
        let mut givers = BTreeSet::new();
        for node in nodes.leader_last(from).await? {
            nodes.roll(node, release).await?;
            givers = probe.served(&format!("{name}, node {node}")).await?;
            let holder = nodes.holder(LOCK).await?;
            println!("{name}, node {node}: the lock is held by {holder}, ranges are of {givers:?}");
        }
        ensure!(
            givers == BTreeSet::from([Some(to)]),
            "{name}: at the end ranges are of {givers:?}"
        );
        let end = Instant::now();
        println!(
            "{name}: {:.1} s; {}",
            (end - begin).as_secs_f64(),
            probe.book().waits(begin, end)
        );
    }
    Ok(())
}

/// Changes the Shoot's spec as a user does, and waits until that is carried out.
async fn reconciled(shoot: &UserShoot, spec: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"spec": spec}));
    let changed = shoot
        .api()
        .patch(&shoot.name, &PatchParams::default(), &patch)
        .await?;
    let generation = changed.metadata.generation;
    let done = |shoot: &Shoot| {
        shoot.status.as_ref().is_some_and(|status| {
            let last = status.last_operation.as_ref();
            status.observed_generation == generation
                && last.is_some_and(|last| {
                    last.type_ == LastOperationType::Reconcile && last.state == LastOperationState::Succeeded
                })
        })
    };
    shoot
        .wait(&format!("{spec} is carried out"), HANDED_OVER_WITHIN, done)
        .await?;
    Ok(())
}

/// RK-23, RK-26: after the migration, only the place of the controller has changed.
async fn without_traces(seed: &Client, namespace: &str, shoot: &Client) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(seed.clone(), namespace);
    for name in [managers::KUBERNETES, managers::CLOUD] {
        let flags = managers::flags(&deployments.get(name).await?);
        ensure!(
            !flags.iter().any(|flag| flag.contains("leader-migration")),
            "{name} has {flags:?}"
        );
    }
    let leases: Api<Lease> = Api::namespaced(shoot.clone(), "kube-system");
    ensure!(
        leases.get_opt(LOCK).await?.is_none(),
        "the migration lock is left"
    );
    let roles: Api<Role> = Api::namespaced(shoot.clone(), "kube-system");
    ensure!(
        roles.get_opt(LOCK).await?.is_none(),
        "the right to the migration lock is left"
    );
    Ok(())
}
