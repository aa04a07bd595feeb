//! A process that is stopped in the middle, and woken when the shoot is another's.

use crate::lab::{EPOCH, Stay, VALIDITY, eventually, op_put};
use etcd_backup_restore::etcd::EtcdConfig;
use permit::Permit;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_was_stopped_and_woken_lets_no_byte_through() {
    lets_no_byte_through(Stay::begin().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_for_http2_that_was_stopped_and_woken_lets_no_byte_through() {
    lets_no_byte_through(Stay::with_http2().await).await;
}

async fn lets_no_byte_through(stay: Stay) {
    let config = EtcdConfig::plain(
        stay.gate.clone(),
        Duration::from_secs(120),
        Permit::sole("a test"),
    );
    let client = config.connect().await.unwrap();
    client.txn(vec![op_put("/before", "x", 0)]).await.unwrap();
    // A further connection, whose answer is in transfer when the process is stopped.
    let watcher = config.connect().await.unwrap();
    let mut watch = watcher.watch(1).await.unwrap();
    watch.next().await.unwrap();

    stay.server().stop().await;
    let mut writing = tokio::task::JoinSet::new();
    writing.spawn(async move { client.txn(vec![op_put("/late", "x", 0)]).await });
    stay.zone.owned_by("seed-b", EPOCH + 1).await;
    stay.held("Owned", EPOCH - 1).await;
    // The bytes for the watcher wait in the gate too.
    let revision = stay.etcd.txn(vec![op_put("/inside", "x", 0)]).await.unwrap();
    tokio::time::sleep(VALIDITY + Duration::from_secs(1)).await;
    stay.server().signal("-CONT");

    let written = writing.join_next().await.unwrap().unwrap();
    assert!(
        written.is_err(),
        "it was acknowledged after the validity: {written:?}"
    );
    // Bytes that were sent before the stop may still arrive.
    while let Ok(answer) = watch.next().await {
        let newest = answer.events.iter().filter_map(|event| event.kv.as_ref());
        assert!(newest.map(|kv| kv.mod_revision).all(|seen| seen < revision));
    }
    stay.is_fenced("Sealed").await;
    let keys = eventually("etcd is back", async || stay.etcd.page(b"", 1000).await.ok())
        .await
        .0;
    assert!(keys.iter().any(|kv| kv.key == "/inside"));
    assert!(
        keys.iter().all(|kv| kv.key != "/late"),
        "it reached etcd after the validity"
    );
}
