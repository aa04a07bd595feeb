//! Generated histories at a follower. The oracle is a learner of the source, which etcd itself fills.

mod actions;
mod followed_source;

use crate::lab::{EtcdServer, Follower, Lab, Learner};
use actions::{Action, generate_actions};
use etcd_backup_restore::etcd::messages;
use followed_source::FollowedSource;
use generated_histories::{Random, SourceTxn, generate, request_of, shrink};
use std::fmt::Debug;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

#[path = "../../../src/follow/generated_histories.rs"]
mod generated_histories;

/// Transactions of a history.
const LENGTH: u64 = 800;
const HISTORIES: u64 = 3;

/// The numbers of a generated history.
fn random(seed: u64) -> Random {
    Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d))
}

/// Fails where a follower differs from the learner, with the parts of the history that the fault needs.
async fn assert_no_difference<T: Clone + Debug>(
    seed: u64,
    history: Vec<T>,
    difference: impl AsyncFn(&[T]) -> Option<String>,
) {
    // The output of a test that fails in a different place has the seed, too.
    println!("history {seed}");
    let Some(fault) = difference(history.as_slice()).await else {
        return;
    };
    let fails = |fewer: &[T]| {
        let differs = block_in_place(|| Handle::current().block_on(difference(fewer)));
        differs.is_some()
    };
    panic!("{fault}\nseed {seed}, shrunk to {:?}", shrink(history, fails));
}

/// Writes a history, and compares the follower with the learner. Returns the difference.
async fn difference(txns: &[SourceTxn]) -> Option<String> {
    let lab = Lab::new();
    let (source, learner) = Learner::start(&lab).await;
    let local = EtcdServer::start(&lab.path("local")).await;
    for lease in [1, 2] {
        source.client.grant(lease, 3600).await.unwrap();
    }
    for (number, txn) in txns.iter().enumerate() {
        source.client.txn_request(request_of(txn, number)).await.unwrap();
    }
    let revision = source.client.revision().await.unwrap();
    let until = format!("--until-revision={revision}");
    let ran = Follower::run(&lab, "p", &source, &local, &[&until]).await;
    if !ran.success {
        return Some(ran.errors);
    }
    let here = local.client.history_hash(revision).await.unwrap();
    let there = Some(learner.history_hash(revision).await);
    (here != there).then(|| format!("the follower has {here:?}, and the learner has {there:?}"))
}

/// Performs the actions of a history, and compares the follower with the learner. Returns the difference.
async fn difference_after(actions: &[Action]) -> Option<String> {
    let lab = Lab::new();
    let mut followed = Box::pin(FollowedSource::start(&lab)).await;
    for action in actions {
        if let Some(fault) = Box::pin(followed.perform(action)).await {
            return Some(fault);
        }
    }
    Box::pin(followed.difference()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generated_history_arrives_as_at_a_learner() {
    for seed in 1..=HISTORIES {
        let txns = generate(&mut random(seed), LENGTH);
        assert_no_difference(seed, txns, difference).await;
    }
}

/// `REPOT_FOLLOW_HISTORIES` sets the number of histories.
#[tokio::test(flavor = "multi_thread")]
async fn a_generated_history_with_kills_and_compactions_arrives_as_at_a_learner() {
    let histories = testkit::size("REPOT_FOLLOW_HISTORIES", 2).unwrap();
    for seed in 1..=u64::try_from(histories).unwrap() {
        let actions = generate_actions(&mut random(seed));
        assert_no_difference(seed, actions, difference_after).await;
    }
}
