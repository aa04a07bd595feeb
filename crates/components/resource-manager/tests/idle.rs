//! Memory of an idle resource-manager with many shoots: a single process for a seed (decision 14).
//!
//! All shoots share a single API server. A proxy in this test's process ([`testkit::Front`]) makes each
//! namespace a separate cluster. The measured process has a connection for each shoot as in a seed, with a
//! separate path. A list or a watch of all namespaces of a shoot returns only that shoot's objects.
//!
//! `cargo test -p resource-manager --test idle -- --ignored --nocapture` gives the figures of
//! docs/understand/bench.md. `REPOT_IDLE_SHOOTS` and `REPOT_IDLE_KINDS` set different numbers. The test takes
//! some minutes, so the default test run skips the test.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result, ensure};
use api::{Target, crds_of, meta::ConditionStatus, resources::ManagedResource};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use serde_json::{Value, json};
use testkit::{ControlPlane, Front, Idle, Server, apply, size};

/// Default number of shoots.
const SHOOTS: usize = 250;
/// Memory of the process without shoots, in KiB.
const BASE: u64 = 5 * 1024;
/// Maximum additional memory of a shoot in KiB: a client with a connection, and a watch for each of its
/// kinds.
const EACH: u64 = 155;
/// Far longer than an idle machine takes.
const SETTLED_WITHIN: Duration = Duration::from_secs(900);
/// Default number of kinds of each ManagedResource; at most four.
const KINDS: usize = 4;
/// The plural names in paths.
const IN_NAMESPACES: [&str; KINDS] = ["configmaps", "secrets", "serviceaccounts", "deployments"];
/// Files and connections of the process itself.
const OTHERS: usize = 40;

#[ignore = "a measurement of some minutes"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_manager_idles_in_little_memory() -> Result<()> {
    let shoots = size("REPOT_IDLE_SHOOTS", SHOOTS)?;
    let kinds = size("REPOT_IDLE_KINDS", KINDS)?;
    let plane = ControlPlane::start("idle").await?;
    let client = plane.admin();
    testkit::apply_crds(&client, &crds_of(Target::Seed)).await?;
    namespace(&client, "garden").await?;
    let front = Front::start(&plane, "resource-manager", &["system:masters"], &IN_NAMESPACES).await?;
    stream::iter(0..shoots)
        .map(|number| shoot(&client, number, kinds, &front))
        .buffer_unordered(8)
        .try_collect::<Vec<()>>()
        .await?;

    testkit::free_lock(&client, "garden", "resource-manager").await?;
    let folder = tempfile::tempdir()?;
    let kubeconfig = plane.admin_kubeconfig_file().display().to_string();
    let arguments = [
        "--health-address=127.0.0.1:0",
        "--leader-elect-resource-namespace=garden",
        // The test measures memory, so a busy machine must not cost the lock.
        "--leader-elect-lease-duration=90s",
        "--leader-elect-renew-deadline=60s",
    ];
    let program = env!("CARGO_BIN_EXE_resource-manager");
    let environment = [("KUBECONFIG", kubeconfig.as_str())];
    let mut manager = Server::start(
        "resource-manager",
        program,
        folder.path(),
        arguments,
        &environment,
    )?;
    let settled = testkit::timeout(SETTLED_WITHIN, settled(Api::all(client), shoots)).await;
    manager.check_alive()?;
    settled
        .with_context(|| format!("not all are applied within {SETTLED_WITHIN:?}"))
        .flatten()
        .with_context(|| manager.log_tail())?;
    // A single connection for each shoot: other connections are closed after an idle time.
    let most = shoots + OTHERS;
    testkit::eventually("connections that nobody uses are closed", SETTLED_WITHIN, || {
        let open = manager.open_files();
        std::future::ready(match open {
            Ok(open) if open <= most => Ok(()),
            other => Err(format!("{other:?} are open")),
        })
    })
    .await?;
    let idle = Idle::measure(&manager).await?;
    idle.tell(
        "resource-manager",
        &format!("{shoots} shoots, {kinds} kinds each"),
    );
    let most = BASE + EACH * u64::try_from(shoots)?;
    ensure!(idle.own < most, "{} KiB are more than {most} KiB", idle.own);
    Ok(())
}

/// A shoot whose API server is the shoot's namespace in the seed, with a ManagedResource of four kinds, like
/// kube-proxy.
async fn shoot(client: &Client, number: usize, kinds: usize, front: &Front) -> Result<()> {
    let name = format!("shoot--dev--s{number}");
    let way = serde_json::to_string(&front.kubeconfig(&name)?)?;
    namespace(client, &name).await?;
    let labels = json!({"app": "proxy"});
    let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "proxy", "image": "proxy:1"}]}});
    let meta = json!({"name": "proxy", "namespace": name});
    let objects = [
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"k": "v".repeat(1000)}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"k": "v"}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod}}),
    ];
    let text: Vec<String> = objects.iter().take(kinds).map(Value::to_string).collect();
    let secret = |secret: &str, key: &str, text: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret, "namespace": name}, "stringData": {key: text}});
    apply(client, secret("resource-manager", "kubeconfig", &way)).await?;
    apply(client, secret("core", "objects.yaml", &text.join("\n---\n"))).await?;
    let resource = json!({"apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
        "metadata": {"name": "core", "namespace": name}, "spec": {"secretRefs": [{"name": "core"}]}});
    apply(client, resource).await.map(drop)
}

async fn namespace(client: &Client, name: &str) -> Result<()> {
    apply(
        client,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
    )
    .await
    .map(drop)
}

/// Waits until all ManagedResources are applied and healthy; the health comes from the watches of applied
/// objects.
async fn settled(resources: Api<ManagedResource>, count: usize) -> Result<()> {
    let mut changes = watcher(resources, watcher::Config::default())
        .default_backoff()
        .applied_objects()
        .boxed();
    let mut done = BTreeSet::new();
    while done.len() < count {
        let resource = changes.try_next().await?.context("the watch ended")?;
        let conditions = resource.status.iter().flat_map(|status| &status.conditions);
        let holds = conditions.filter(|condition| condition.status == ConditionStatus::True);
        if holds
            .filter(|condition| ["ResourcesApplied", "ResourcesHealthy"].contains(&condition.type_.as_str()))
            .count()
            == 2
        {
            done.insert(resource.namespace());
        }
    }
    Ok(())
}
