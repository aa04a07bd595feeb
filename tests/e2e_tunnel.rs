//! Nodes that no seed can reach (lessons.md, gardener#15442): the API server reaches kubelets only by the
//! tunnel, before and after a move. The agents are the same pods with the same keys.
//!
//! Needs the landscape `e2e` without routes from seeds to machines, and the suite installed with the tunnel:
//! `make e2e-all`. There the gate in front of etcd forwards HTTP/2, so that this move also shows the gate.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Node, Pod, Secret},
};
use kube::{Api, Client, ResourceExt, api::ListParams, core::Request};
use repot_tests::{
    landscape::Landscape,
    lifecycle::{self, MOVE_WITHIN, deleted, nothing_left},
    nodes::{Fleet, Taints, Web},
    proof,
    shoot::UserShoot,
};

/// Longer than agents take to find an edge that has moved: the TTL of the name, and the agents' longest pause
/// between two attempts.
const CONNECTED_WITHIN: Duration = Duration::from_secs(120);
const AGENT: &str = "tunnel-agent";
const NAMESPACE: &str = "kube-system";

#[tokio::test]
async fn nodes_that_no_seed_reaches_survive_a_move() {
    let landscape = Landscape::open("e2e").await.unwrap();
    let shoot = lifecycle::created_with_workers(&landscape, "stranded")
        .await
        .unwrap();
    let client = shoot.client().await.unwrap();
    let id = proof::technical_id(&shoot).await.unwrap();
    has_wanted_gate(landscape.seed("seed-a").unwrap(), &id)
        .await
        .unwrap();
    let web = Web::deploy(&client).await.unwrap();
    reached(&shoot, &client, &web).await.unwrap();
    web.answers(&client).await.unwrap();
    let keys = keys(&client).await.unwrap();
    let before = Fleet::read(landscape.seed("seed-a").unwrap(), &id, &client)
        .await
        .unwrap();
    let taints = Taints::watch(&client);
    let (counted, begin) = (web.counts(&client).await.unwrap(), Instant::now());

    shoot.set_seed("seed-b").await.unwrap();
    shoot.wait_until_on("seed-b", MOVE_WITHIN).await.unwrap();
    has_wanted_gate(landscape.seed("seed-b").unwrap(), &id)
        .await
        .unwrap();

    let client = shoot.client().await.unwrap();
    reached(&shoot, &client, &web).await.unwrap();
    let now = web.counts(&client).await.unwrap();
    println!(
        "seed-a -> seed-b by the tunnel: {counted:?} before, {now:?} after {:?}",
        begin.elapsed()
    );
    now.nothing_lost_since(counted, begin.elapsed()).unwrap();
    let after = Fleet::read(landscape.seed("seed-b").unwrap(), &id, &client)
        .await
        .unwrap();
    assert_eq!(before.differences(&after), Vec::<String>::new());
    assert_eq!(self::keys(&client).await.unwrap(), keys, "the agents' keys");
    before.leases_are_renewed(&client).await.unwrap();
    assert_eq!(taints.collect(&client).await.unwrap(), Vec::<String>::new());
    nothing_left(&landscape, "seed-a", &id).await.unwrap();
    deleted(&landscape, &shoot).await.unwrap();
    Fleet::nothing_left(&landscape, &id).await.unwrap();
}

/// The gate in front of etcd-main forwards HTTP/2 where `REPOT_GATE_HTTP2` asks for this gate, and bytes
/// elsewhere.
async fn has_wanted_gate(seed: &Client, technical_id: &str) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(seed.clone(), technical_id);
    let etcd = pods.get("etcd-main-0").await?;
    let containers = etcd.spec.map(|spec| spec.containers).unwrap_or_default();
    let mut args = containers
        .iter()
        .flat_map(|container| container.args.iter().flatten());
    let has_http2 = args.any(|arg| arg == "--gate-protocol=HTTP2");
    let wanted = std::env::var_os("REPOT_GATE_HTTP2").is_some();
    ensure!(
        has_http2 == wanted,
        "HTTP/2 at the gate: {has_http2}, wanted: {wanted}"
    );
    Ok(())
}

/// Both agents are connected, and the API server reaches kubelets and pods: logs, exec, and the API server's
/// proxy to a node.
async fn reached(user: &UserShoot, shoot: &Client, web: &Web) -> Result<()> {
    let begin = Instant::now();
    let kubeconfig = tempfile::NamedTempFile::new()?;
    user.write_kubeconfig(kubeconfig.path()).await?;
    let missing = proof::until_nothing(CONNECTED_WITHIN, || async {
        let agents: Api<Deployment> = Api::namespaced(shoot.clone(), NAMESPACE);
        let ready = agents.get_opt(AGENT).await?.and_then(|agents| agents.status);
        let ready = ready.and_then(|status| status.ready_replicas).unwrap_or_default();
        let works = web.logs_and_exec_work(shoot, kubeconfig.path()).await;
        let works = works.err().map(|error| format!("{error:#}"));
        let agents = (ready < 2).then(|| format!("{ready} agents are ready"));
        Ok(agents.into_iter().chain(works).collect())
    })
    .await?;
    ensure!(
        missing.is_empty(),
        "not so within {CONNECTED_WITHIN:?}: {missing:?}"
    );
    println!("kubelets are reached by the tunnel after {:?}", begin.elapsed());
    for node in Api::<Node>::all(shoot.clone())
        .list(&ListParams::default())
        .await?
    {
        let request = Request::new("/api/v1/nodes");
        let request = request.get_subresource("proxy/healthz", &node.name_any())?;
        let said = shoot.request_text(request).await?;
        ensure!(said == "ok", "kubelet of {} says {said:?}", node.name_any());
    }
    Ok(())
}

/// The keys of the agents in the shoot.
async fn keys(shoot: &Client) -> Result<Secret> {
    let secrets: Api<Secret> = Api::namespaced(shoot.clone(), NAMESPACE);
    let found = secrets.get(AGENT).await?;
    Ok(Secret {
        metadata: kube::core::ObjectMeta {
            uid: found.metadata.uid,
            ..kube::core::ObjectMeta::default()
        },
        data: found.data,
        ..Secret::default()
    })
}
