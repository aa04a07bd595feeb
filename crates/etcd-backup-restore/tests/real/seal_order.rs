//! The seal is on the volume before the final snapshot, and a process reads the seal before opening the gate.

use crate::lab::{EPOCH, Stay, Writer, eventually};
use etcd_backup_restore::owner::Marker;
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
    assert_eq!(marker.seals(EPOCH).unwrap(), None);
    fs::remove_dir(obstacle).unwrap();
    eventually("the final snapshot is taken", async || {
        (stay.finals().len() == 1).then_some(())
    })
    .await;
    assert!(marker.seals(EPOCH).unwrap().is_some());
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
