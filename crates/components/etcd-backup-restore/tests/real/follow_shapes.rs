//! Generated histories at a follower. The oracle is a learner of the source, which etcd itself fills.

use crate::lab::{EtcdServer, Follower, Lab, Learner};
use etcd_backup_restore::etcd::messages;
use generated_histories::{Random, SourceTxn, generate, request_of, shrink};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

#[path = "../../src/follow/generated_histories.rs"]
mod generated_histories;

/// Transactions of a history.
const LENGTH: u64 = 800;
const HISTORIES: u64 = 3;

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

#[tokio::test(flavor = "multi_thread")]
async fn a_generated_history_arrives_as_at_a_learner() {
    for seed in 1..=HISTORIES {
        let txns = generate(&mut Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d)), LENGTH);
        let Some(fault) = difference(&txns).await else {
            continue;
        };
        let fails = |fewer: &[SourceTxn]| {
            let differs = block_in_place(|| Handle::current().block_on(difference(fewer)));
            differs.is_some()
        };
        panic!("{fault}\nseed {seed}, shrunk to {:?}", shrink(txns, fails));
    }
}
