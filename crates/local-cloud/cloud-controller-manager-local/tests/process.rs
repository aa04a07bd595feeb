//! The binary, and the hand-over of node IPAM between the binary and Kubernetes' own kube-controller-manager.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    clippy::large_futures
)]

mod world;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::Service,
    rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::json;
use testkit::{Server, eventually};
use tokio::process::Command;
use world::{CLUSTER, SOON, UNINITIALIZED, World, create, instance, is_tainted, range};

const BINARY: &str = env!("CARGO_BIN_EXE_cloud-controller-manager-local");
/// The lock that both managers share.
const SHARED: &str = "node-ipam-migration";
const MIGRATION: &str = "\
apiVersion: controllermanager.config.k8s.io/v1
kind: LeaderMigrationConfiguration
leaderName: node-ipam-migration
controllerLeaders:
- name: node-ipam-controller
  component: '*'
";
/// After the death of a holder, the lock stays held for the lease duration: short, so that the test need not
/// wait long. The renew deadline is long enough for a busy machine: a holder that misses the deadline ends,
/// and the test does not restart the holder.
const LOCKS: [&str; 3] = [
    "--leader-elect-lease-duration=20s",
    "--leader-elect-renew-deadline=16s",
    "--leader-elect-retry-period=1s",
];
const PODS: [&str; 2] = ["--allocate-node-cidrs", "--cluster-cidr=10.96.0.0/16"];

/// The user of this crate's process in the shoot.
const OURSELVES: &str = "cloud-controller-manager-local";

/// Gives the user of this crate's process the rights that the crate's documentation names.
async fn rights(world: &World) -> Result<()> {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let everywhere = json!({"metadata": {"name": OURSELVES}, "rules": [
        rule("", &["nodes"], &["get", "list", "watch", "patch", "delete"]),
        rule("", &["services"], &["get", "list", "watch", "patch"]),
        rule("", &["nodes/status", "services/status"], &["patch"]),
        rule("events.k8s.io", &["events"], &["create", "patch"]),
    ]});
    let locks = json!({"metadata": {"name": OURSELVES}, "rules": [
        rule("coordination.k8s.io", &["leases"], &["get", "watch", "create", "update"]),
    ]});
    let binding = |kind: &str| {
        json!({
            "metadata": {"name": OURSELVES},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": OURSELVES},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": OURSELVES}],
        })
    };
    let client = || world.shoot.clone();
    create::<ClusterRole>(&Api::all(client()), everywhere).await?;
    create::<ClusterRoleBinding>(&Api::all(client()), binding("ClusterRole")).await?;
    create::<Role>(&Api::namespaced(client(), "kube-system"), locks).await?;
    create::<RoleBinding>(&Api::namespaced(client(), "kube-system"), binding("Role")).await?;
    Ok(())
}

/// Starts this crate's process. `locks` is the timing of the locks; the default if empty.
fn ours(world: &World, folder: &Path, name: &str, locks: &[&str], more: &[&str]) -> Result<Server> {
    let kubeconfig = serde_json::to_vec(&world.plane.kubeconfig(OURSELVES, &[])?)?;
    std::fs::write(folder.join("ours.kubeconfig"), kubeconfig)?;
    let paths = [
        "--kubeconfig=ours.kubeconfig".to_owned(),
        format!("--cloud-credentials={}", world.folder().display()),
        format!("--cluster-name={CLUSTER}"),
        "--health-address=127.0.0.1:0".to_owned(),
    ];
    let args = paths
        .iter()
        .map(String::as_str)
        .chain(locks.iter().copied())
        .chain(more.iter().copied());
    Server::start(name, BINARY, folder, args, &[("RUST_LOG", "info")])
}

/// Starts a kube-controller-manager, as [`ours`].
fn theirs(world: &World, folder: &Path, name: &str, locks: &[&str]) -> Result<Server> {
    let kubeconfig = world.plane.admin_kubeconfig_file();
    let key = kubeconfig.with_file_name("service-account.key");
    let args = [
        &format!("--kubeconfig={}", kubeconfig.display()),
        // kube-controller-manager competes for the migration lock only once the controller of tokens runs.
        &format!("--service-account-private-key-file={}", key.display()),
        "--controllers=serviceaccount-token-controller,node-ipam-controller",
        "--secure-port=0",
        "--enable-leader-migration",
        "--leader-migration-config=migration.yaml",
    ];
    let args = args.into_iter().chain(locks.iter().copied()).chain(PODS);
    Server::start(name, "kube-controller-manager", folder, args, &[])
}

/// Creates Nodes and waits until each Node has a distinct range; earlier Nodes keep their ranges.
async fn grow(world: &World, before: &mut BTreeMap<String, String>, prefix: &str) -> Result<()> {
    for i in 0..4 {
        world.node(&format!("{prefix}-{i}"), json!({})).await?;
    }
    let now: BTreeMap<_, _> = eventually("all ranges", SOON, || async {
        let nodes = world.nodes().list(&ListParams::default()).await?;
        let ranges: BTreeMap<_, _> = nodes
            .iter()
            .filter_map(|node| Some((node.name_any(), range(node)?)))
            .collect();
        ensure!(
            ranges.len() == nodes.items.len(),
            "{prefix}: {} of {}",
            ranges.len(),
            nodes.items.len()
        );
        anyhow::Ok(ranges)
    })
    .await?;
    ensure!(now.len() == before.len() + 4, "{now:?}");
    for (name, range) in before.iter() {
        ensure!(
            now.get(name) == Some(range),
            "{prefix}: {name} had {range}, and now {:?}",
            now.get(name)
        );
    }
    let different: BTreeSet<_> = now.values().collect();
    ensure!(
        different.len() == now.len(),
        "{prefix}: two nodes have the same range: {now:?}"
    );
    *before = now;
    Ok(())
}

/// The holder of a lock of the shoot; empty without a holder.
async fn holder(world: &World, lock: &str) -> Result<String> {
    let leases: Api<Lease> = Api::namespaced(world.shoot.clone(), "kube-system");
    let lease = leases.get_opt(lock).await?;
    Ok(lease
        .and_then(|lease| lease.spec?.holder_identity)
        .unwrap_or_default())
}

async fn held_by_another(world: &World, lock: &str, than: &str) -> Result<String> {
    eventually("another holder", SOON, || async {
        let now = holder(world, lock).await?;
        ensure!(!now.is_empty() && now != than, "{lock} is held by {now:?}");
        anyhow::Ok(now)
    })
    .await
}

/// Sends SIGTERM to a process, as the kubelet does, and waits for the end.
async fn terminate(mut server: Server) -> Result<()> {
    let done = Command::new("kill")
        .args(["-TERM", &server.id().to_string()])
        .status()
        .await?;
    ensure!(done.success(), "kill: {done}");
    eventually("the process ends", SOON, || {
        let alive = server.check_alive().is_ok();
        async move {
            ensure!(!alive, "it runs");
            anyhow::Ok(())
        }
    })
    .await
}

async fn the_other_controllers_run_too(world: &World) -> Result<()> {
    let taints = json!({"taints": [{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}]});
    world
        .list(&[("new", instance("i-1", "10.180.1.1", "running"))])
        .await?;
    world.node("new", taints).await?;
    let node = world
        .until("new", "the node is described", |node| {
            !is_tainted(node, UNINITIALIZED) && range(node).is_some()
        })
        .await?;
    ensure!(
        node.spec.context("no spec")?.provider_id.as_deref() == Some("local:///zone-a/i-1"),
        "no id"
    );
    world.event("Node", "new", "Synced").await?;
    world
        .list(&[("new", instance("i-1", "10.180.1.1", "stopped"))])
        .await?;
    world
        .until("new", "the node is marked", |node| {
            is_tainted(node, "node.cloudprovider.kubernetes.io/shutdown")
        })
        .await?;
    world.list(&[]).await?;
    eventually("the node is removed", SOON, || async {
        let left = world.nodes().get_opt("new").await?;
        ensure!(left.is_none(), "{left:?}");
        anyhow::Ok(())
    })
    .await?;

    let services: Api<Service> = Api::namespaced(world.shoot.clone(), "default");
    let balanced =
        json!({"metadata": {"name": "s"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 443}]}});
    create(&services, balanced).await?;
    world.event("Service", "s", "EnsuredLoadBalancer").await?;
    services.delete("s", &DeleteParams::default()).await?;
    eventually("the service is gone", SOON, || async {
        let left = services.get_opt("s").await?;
        ensure!(left.is_none(), "{left:?}");
        anyhow::Ok(())
    })
    .await
}

/// Writes the file of leader migration into a folder, and returns the flags of a manager that shares node
/// IPAM by this file.
fn migrating(folder: &Path) -> Result<Vec<&'static str>> {
    std::fs::write(folder.join("migration.yaml"), MIGRATION)?;
    let flags = [
        "--enable-leader-migration",
        "--leader-migration-config=migration.yaml",
    ];
    Ok([&PODS[..], &flags].concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_ipam_is_handed_over_and_back() -> Result<()> {
    let world = World::start().await?;
    let folder = tempfile::tempdir()?;
    let migrating = migrating(folder.path())?;
    let mut ranges = BTreeMap::new();
    rights(&world).await?;

    // kube-controller-manager alone.
    let kcm = theirs(&world, folder.path(), "kcm-1", &LOCKS)?;
    grow(&world, &mut ranges, "theirs").await?;
    let first = held_by_another(&world, SHARED, "").await?;
    // This crate's process starts too and waits: kube-controller-manager holds the lock.
    let mut ccm = ours(&world, folder.path(), "ccm-1", &LOCKS, &migrating)?;
    held_by_another(&world, "cloud-controller-manager-local", "").await?;
    grow(&world, &mut ranges, "still-theirs").await?;
    ensure!(
        holder(&world, SHARED).await? == first,
        "the lock was taken from its holder"
    );
    // kube-controller-manager dies; the lock expires.
    drop(kcm);
    let second = held_by_another(&world, SHARED, &first).await;
    ccm.check_alive()?;
    let second = second?;
    grow(&world, &mut ranges, "ours").await?;
    // And back: a kube-controller-manager waits, this crate's process ends and releases the lock.
    let kcm = theirs(&world, folder.path(), "kcm-2", &LOCKS)?;
    terminate(ccm).await?;
    let third = held_by_another(&world, SHARED, &second).await?;
    ensure!(third != first, "the first holder is dead");
    grow(&world, &mut ranges, "theirs-again").await?;
    drop(kcm);

    // Finally, migration is switched off, and this crate's process runs node IPAM under the main lock
    // (RK-23).
    let mut ccm = ours(&world, folder.path(), "ccm-2", &LOCKS, &PODS)?;
    grow(&world, &mut ranges, "ours-for-good").await?;
    ccm.check_alive()?;

    the_other_controllers_run_too(&world).await?;
    terminate(ccm).await?;
    ensure!(
        holder(&world, "cloud-controller-manager-local").await?.is_empty(),
        "the main lock is not given back"
    );
    Ok(())
}

/// Stops the holder of the migration lock as the kubelet does. Returns the time until a Node has a range from
/// the waiting manager.
async fn gap(world: &World, holder_of_lock: Server, node: &str) -> Result<Duration> {
    let begin = Instant::now();
    terminate(holder_of_lock).await?;
    // Created only now: otherwise the ending manager could assign the range.
    world.node(node, json!({})).await?;
    world
        .until(node, "the node has a range", |node| range(node).is_some())
        .await?;
    Ok(begin.elapsed())
}

/// Waits until a process of this crate has logged the holder of a lock.
async fn waits_for(process: &Server, holder: &str) -> Result<()> {
    eventually("a process that waits", SOON, || async {
        let log = std::fs::read_to_string(process.log())?;
        ensure!(log.contains(holder), "it has not seen {holder}: {log}");
        anyhow::Ok(())
    })
    .await
}

/// The default timing. First two kube-controller-managers, then two processes of this crate: the first works,
/// the second waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_clean_stop_nobody_waits_for_a_lock_of_ours() -> Result<()> {
    let world = World::start().await?;
    let folder = tempfile::tempdir()?;
    let migrating = migrating(folder.path())?;
    rights(&world).await?;

    let works = theirs(&world, folder.path(), "kcm-1", &[])?;
    let first = held_by_another(&world, SHARED, "").await?;
    let waits = theirs(&world, folder.path(), "kcm-2", &[])?;
    let theirs = gap(&world, works, "theirs").await?;
    drop(waits);

    let second = holder(&world, SHARED).await?;
    ensure!(second != first, "the lock was not handed over");
    // Waiting for expiry would take the lease duration (15 s), less a pause between renewals.
    let is_short = |gap: Duration| gap < Duration::from_secs(12) && gap < theirs;
    let mut works = ours(&world, folder.path(), "ccm-1", &[], &migrating)?;
    let mut last = held_by_another(&world, SHARED, &second).await?;
    let mut best = Duration::MAX;
    // A stall only adds time, or lets the lock expire: a single short wait proves that a lock is released.
    for turn in 2..=4 {
        let waits = ours(&world, folder.path(), &format!("ccm-{turn}"), &[], &migrating)?;
        // Both locks of a process name the same holder.
        waits_for(&waits, &last).await?;
        best = best.min(gap(&world, works, &format!("ours-{turn}")).await?);
        if is_short(best) {
            break;
        }
        last = held_by_another(&world, SHARED, &last).await?;
        works = waits;
    }
    println!(
        "a Node waited {best:.1?} for its range after a clean stop of ours, {theirs:.1?} after one of theirs"
    );
    ensure!(is_short(best), "{best:.1?}, and theirs {theirs:.1?}");
    Ok(())
}

/// Runs the binary to the end.
async fn output(folder: &Path, args: &[&str]) -> Result<(bool, String)> {
    let run = Command::new(BINARY)
        .args(args)
        .current_dir(folder)
        .kill_on_drop(true)
        .output();
    let output = testkit::timeout(SOON, run).await.context("it does not end")??;
    let text = [output.stdout, output.stderr].concat();
    Ok((
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    ))
}

#[tokio::test]
async fn locks_are_printed_and_wrong_flags_are_refused() -> Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("migration.yaml"), MIGRATION)?;
    let migrating = [
        "--enable-leader-migration",
        "--leader-migration-config=migration.yaml",
    ];
    for (flags, locks) in [
        (&[][..], ["main", "main", "main", "disabled"]),
        (&PODS[..], ["main", "main", "main", "main"]),
        (
            &["--enable-leader-migration", PODS[0], PODS[1]][..],
            ["main", "migrated", "migrated", "unowned"],
        ),
        (
            &[migrating[0], migrating[1], PODS[0], PODS[1]][..],
            ["main", "main", "main", "migrated"],
        ),
        (
            &["--controllers=*,-service"][..],
            ["main", "main", "disabled", "disabled"],
        ),
    ] {
        let (good, text) = output(folder.path(), &[&["--print-leader-migration"], flags].concat()).await?;
        let names = [
            "cloud-node-controller",
            "cloud-node-lifecycle-controller",
            "service-lb-controller",
            "node-ipam-controller",
        ];
        let expected: Vec<_> = names
            .iter()
            .zip(locks)
            .map(|(name, lock)| format!("{name} {lock}"))
            .collect();
        let lines: Vec<_> = text
            .lines()
            .filter(|line| !line.starts_with("warning: "))
            .collect();
        ensure!(good && lines == expected, "{flags:?}: {text}");
    }
    let needed = ["--kubeconfig=k", "--cluster-name=c", "--cloud-credentials=d"];
    for (flags, part) in [
        (
            &["--leader-migration-config=migration.yaml"][..],
            "--enable-leader-migration",
        ),
        (
            &[
                "--enable-leader-migration",
                "--leader-migration-config=missing.yaml",
            ][..],
            "missing.yaml",
        ),
        (&["--allocate-node-cidrs"][..], "--cluster-cidr"),
        (&["--controllers=rout"][..], "there is no controller"),
    ] {
        let (good, text) = output(folder.path(), &[&needed[..], flags].concat()).await?;
        ensure!(!good && text.contains(part), "{flags:?}: {text}");
    }
    Ok(())
}
