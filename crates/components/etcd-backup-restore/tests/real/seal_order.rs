//! The seal is on the volume before the final snapshot, and a process reads the seal before opening the gate.

use crate::lab::{EPOCH, Stay, Writer, eventually};
use etcd_backup_restore::owner::Marker;
use serde_json::{Value, json};
use std::fs;

/// A restart between a final snapshot and the seal would let clients write changes that no destination has.
#[tokio::test(flavor = "multi_thread")]
pub async fn the_final_snapshot_waits_for_a_seal_that_no_restart_takes_back() {
    let mut stay = Stay::begin().await;
    let writer = Writer::start(stay.gate.clone());
    writer.goes_on().await;
    let marker = Marker::beside(&stay.volume);
    // The file that becomes the seal cannot be written.
    let obstacle = marker.path().with_extension("sealed.new");
    fs::create_dir(&obstacle).unwrap();
    stay.zone.owned_by("seed-b", EPOCH + 1).await;
    stay.is_fenced("Sealed").await;
    eventually("the seal that cannot be written is reported", async || {
        assert!(
            stay.finals().is_empty(),
            "the final snapshot was taken before the seal"
        );
        let health = stay.server().get("/healthz").await.1;
        health["error"].as_str()?.contains(".sealed").then_some(())
    })
    .await;
    assert_eq!(marker.seal_reason(EPOCH).unwrap(), None);
    fs::remove_dir(obstacle).unwrap();
    eventually("the final snapshot is taken", async || {
        (stay.finals().len() == 1).then_some(())
    })
    .await;
    assert!(marker.seal_reason(EPOCH).unwrap().is_some());
    assert_eq!(stay.holding().await["state"], "Sealed");

    // Both witnesses say that the seed has the shoot.
    stay.zone.owned_by("seed-a", EPOCH).await;
    stay.held("Owned", EPOCH).await;
    stay.start().await;
    eventually("the process has read the seal", async || {
        let ownership = stay.ownership().await;
        assert_ne!(ownership["state"], "Serving", "{ownership}");
        (ownership["state"] == "Sealed").then_some(())
    })
    .await;
    stay.is_fenced("Sealed").await;
}

/// Leases expired before the proof of the final snapshot, and the note of the seal is gone when the process
/// starts again. The source seed compares the end of the snapshot with the end of etcd, and would wait for
/// ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_final_snapshot_counts_without_the_note_of_the_seal() {
    let mut stay = Stay::begin().await;
    let writer = Writer::start(stay.gate.clone());
    writer.goes_on().await;
    stay.zone.owned_by("seed-b", EPOCH + 1).await;
    stay.is_fenced("Sealed").await;
    eventually("the final snapshot is proven", async || {
        let (_, latest) = stay.server().get("/snapshot/latest").await;
        (latest["finished"] == true).then_some(())
    })
    .await;
    let store = stay.store();
    let content = store.note("finished.json").await.unwrap().unwrap();
    let mut record: Value = serde_json::from_slice(&content).unwrap();
    let end = record["lastRevision"].as_i64().unwrap();
    record["etcdRevision"] = json!(end + 1);
    let content = serde_json::to_vec(&record).unwrap();
    store.put_note("finished.json", content).await.unwrap();
    store.delete_note("sealed.json").await.unwrap();
    stay.start().await;
    let snapshot = eventually("the process has read the proof", async || {
        let (_, latest) = stay.server().get("/snapshot/latest").await;
        (latest["finished"] == true).then(|| latest["fullSnapshot"].clone())
    })
    .await;
    assert_eq!(snapshot["etcdRevision"], end + 1, "{snapshot}");
    assert_eq!(snapshot["sealedRevision"], end, "{snapshot}");
    assert_eq!(stay.finals().len(), 1);
}
