//! Nodes survive disturbed moves: processes are killed at random moments, or a rolling update of the machines
//! is under way (GEP-7 R7-03, I5).
//!
//! Needs the landscape `e2e` with the suite installed: `make e2e-all`.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::{Duration, Instant};

use kube::api::{Patch, PatchParams};
use repot_tests::{
    hunter::Hunter,
    landscape::Landscape,
    lifecycle::{self, MOVE_WITHIN, deleted, nothing_left},
    nodes::{Fleet, Instances, Taints, Web},
    proof,
};
use serde_json::json;

/// Bounds a rolling update of two machines in sequence.
const ROLLED_WITHIN: Duration = Duration::from_secs(400);
/// Kills per move.
const KILLS: usize = 4;

#[tokio::test]
async fn nodes_survive_the_way_there_and_back_whoever_is_killed() {
    let landscape = Landscape::open("e2e").await.unwrap();
    let shoot = lifecycle::created_with_workers(&landscape, "hunted")
        .await
        .unwrap();
    let client = shoot.client().await.unwrap();
    let id = proof::technical_id(&shoot).await.unwrap();
    let web = Web::deploy(&client).await.unwrap();
    web.answers(&client).await.unwrap();
    let instances = Instances::watch(&landscape, &id).await.unwrap();
    let before = Fleet::read(landscape.seed("seed-a").unwrap(), &id, &client)
        .await
        .unwrap();
    let mut hunter = Hunter::new().unwrap();
    for (from, to) in [("seed-a", "seed-b"), ("seed-b", "seed-a")] {
        let client = shoot.client().await.unwrap();
        let taints = Taints::watch(&client);
        let (counted, begin) = (web.counts(&client).await.unwrap(), Instant::now());
        shoot.set_seed(to).await.unwrap();
        hunter.kills(KILLS, &landscape, &shoot).await.unwrap();
        shoot.wait_until_on(to, MOVE_WITHIN).await.unwrap();
        let client = shoot.client().await.unwrap();
        let after = Fleet::read(landscape.seed(to).unwrap(), &id, &client)
            .await
            .unwrap();
        assert_eq!(before.differences(&after), Vec::<String>::new());
        let now = web.counts(&client).await.unwrap();
        println!(
            "{from} -> {to}: {counted:?} before, {now:?} after {:?}",
            begin.elapsed()
        );
        now.nothing_lost_since(counted, begin.elapsed()).unwrap();
        before.leases_are_renewed(&client).await.unwrap();
        assert_eq!(taints.collect(&client).await.unwrap(), Vec::<String>::new());
        nothing_left(&landscape, from, &id).await.unwrap();
    }
    assert_eq!(instances.ever_and_now().await.unwrap(), [2, 2], "instances");
    deleted(&landscape, &shoot).await.unwrap();
    Fleet::nothing_left(&landscape, &id).await.unwrap();
}

#[tokio::test]
async fn a_rolling_update_that_is_moved_in_the_middle_goes_on_where_it_was() {
    let landscape = Landscape::open("e2e").await.unwrap();
    let shoot = lifecycle::created_with_workers(&landscape, "rolled")
        .await
        .unwrap();
    let client = shoot.client().await.unwrap();
    let id = proof::technical_id(&shoot).await.unwrap();
    let web = Web::deploy(&client).await.unwrap();
    web.answers(&client).await.unwrap();
    let instances = Instances::watch(&landscape, &id).await.unwrap();
    let before = Fleet::read(landscape.seed("seed-a").unwrap(), &id, &client)
        .await
        .unwrap();
    let patch = json!({"spec": {"kubernetes": {"kubelet": {"maxPods": 60}}}});
    let params = PatchParams::default();
    shoot
        .api()
        .patch(&shoot.name, &params, &Patch::Merge(patch))
        .await
        .unwrap();
    before.joined_by_another(&client, ROLLED_WITHIN).await.unwrap();

    shoot.set_seed("seed-b").await.unwrap();
    shoot.wait_until_on("seed-b", ROLLED_WITHIN).await.unwrap();

    let client = shoot.client().await.unwrap();
    before.replaced(&client, ROLLED_WITHIN).await.unwrap();
    web.answers(&client).await.unwrap();
    nothing_left(&landscape, "seed-a", &id).await.unwrap();
    // Two original machines and two replacements: no machine was created twice, although the creation began
    // in either seed.
    let left = proof::until_nothing(ROLLED_WITHIN, || async {
        let [ever, now] = instances.ever_and_now().await?;
        Ok(if now == 2 {
            vec![]
        } else {
            vec![format!("{now} instances now, {ever} ever")]
        })
    })
    .await
    .unwrap();
    assert_eq!(left, Vec::<String>::new());
    assert_eq!(instances.ever_and_now().await.unwrap(), [4, 2], "instances");
    deleted(&landscape, &shoot).await.unwrap();
    Fleet::nothing_left(&landscape, &id).await.unwrap();
}
