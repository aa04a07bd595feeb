//! Nodes survive a move (GEP-7 R7-03, I4). Machines, Nodes and their pods are equal before and after. A
//! service inside the shoot answers all the time, and a controller inside the shoot continues the watch of
//! the shoot's API. The machines are managed from the destination seed.
//!
//! Needs the landscape `e2e` with the suite installed: `make e2e`.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::{Duration, Instant};

use kube::api::{Patch, PatchParams};
use repot_tests::{
    landscape::Landscape,
    lifecycle::{self, MOVE_WITHIN, deleted, nothing_left},
    nodes::{self, Controller, Fleet, Public, Taints, Web},
    proof,
};
use serde_json::json;

/// Bounds a rolling update of two machines in sequence.
const ROLLED_WITHIN: Duration = Duration::from_secs(400);

#[tokio::test]
async fn nodes_and_what_runs_on_them_do_not_notice_a_move() {
    let landscape = Landscape::open("e2e").await.unwrap();
    let shoot = lifecycle::created_with_workers(&landscape, "nodes")
        .await
        .unwrap();
    let client = shoot.client().await.unwrap();
    let id = proof::technical_id(&shoot).await.unwrap();
    let web = Web::deploy(&client).await.unwrap();
    web.answers(&client).await.unwrap();
    let controller = Controller::deploy(&client).await.unwrap();
    controller.hears_of(&client, "before").await.unwrap();
    let before = Fleet::read(landscape.seed("seed-a").unwrap(), &id, &client)
        .await
        .unwrap();
    assert_eq!(before.zones(), ["a", "b"], "one machine in each zone");
    let taints = Taints::watch(&client);
    let public = Public::ask(&client).await.unwrap();
    let (counted, begin) = (web.counts(&client).await.unwrap(), Instant::now());

    shoot.set_seed("seed-b").await.unwrap();
    shoot.wait_until_on("seed-b", MOVE_WITHIN).await.unwrap();

    let client = shoot.client().await.unwrap();
    let after = Fleet::read(landscape.seed("seed-b").unwrap(), &id, &client)
        .await
        .unwrap();
    let begin_again = Instant::now();
    controller.hears_of(&client, "after").await.unwrap();
    println!(
        "a controller in the shoot watches again after {:?}",
        begin_again.elapsed()
    );
    assert_eq!(before.differences(&after), Vec::<String>::new());
    let now = web.counts(&client).await.unwrap();
    println!(
        "seed-a -> seed-b with two nodes: {:?} before, {now:?} after {:?}",
        counted,
        begin.elapsed()
    );
    now.nothing_lost_since(counted, begin.elapsed()).unwrap();
    let address = public.address.clone();
    let answered = public.nothing_lost().await.unwrap();
    println!("from outside, by the load balancer at {address}: {answered} answers, none lost");
    web.answers(&client).await.unwrap();
    before.leases_are_renewed(&client).await.unwrap();
    let kubeconfig = tempfile::NamedTempFile::new().unwrap();
    shoot.write_kubeconfig(kubeconfig.path()).await.unwrap();
    web.logs_and_exec_work(&client, kubeconfig.path()).await.unwrap();
    web.a_new_pod_runs_on(&client, &before).await.unwrap();
    assert_eq!(taints.collect(&client).await.unwrap(), Vec::<String>::new());
    nothing_left(&landscape, "seed-a", &id).await.unwrap();

    // The destination manages the machines now: a changed kubelet configuration replaces the machines.
    let patch = json!([{"op": "add", "path": "/spec/provider/workers/0/kubernetes",
        "value": {"kubelet": {"maxPods": 60, "imageGCHighThresholdPercent": 100,
            "evictionHard": {"imageFSAvailable": "0%", "imageFSInodesFree": "0%", "nodeFSAvailable": "0%", "nodeFSInodesFree": "0%"}}}}]);
    let patch: json_patch::Patch = serde_json::from_value(patch).unwrap();
    shoot
        .api()
        .patch(&shoot.name, &PatchParams::default(), &Patch::Json::<()>(patch))
        .await
        .unwrap();
    before.replaced(&client, ROLLED_WITHIN).await.unwrap();
    web.answers(&client).await.unwrap();
    // Neither on the moved machines nor on the machines created since.
    assert_eq!(nodes::pulled(&client).await.unwrap(), Vec::<String>::new());
    deleted(&landscape, &shoot).await.unwrap();
    Fleet::nothing_left(&landscape, &id).await.unwrap();
}
