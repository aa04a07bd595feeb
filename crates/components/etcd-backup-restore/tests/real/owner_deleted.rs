//! An owner record that a stranger deletes: etcd serves on by the bucket's confirmation, and the operator's
//! remedy keeps all data (docs/operate/dead-seed.md, "A new epoch for the same seed").

use crate::lab::{Acknowledged, EPOCH, EtcdServer, Stay, VALIDITY, Writer, eventually};
use etcd_backup_restore::owner::Marker;
use serde_json::json;
use std::time::{Duration, Instant};

/// Writes are acknowledged repeatedly for longer than the validity of each earlier permit.
async fn serves_for(stay: &Stay, writer: &Writer, time: Duration, when: &str) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        writer.goes_on().await;
        let ownership = stay.ownership().await;
        assert_ne!(ownership["state"], "Sealed", "{when}: {ownership}");
    }
    stay.serves().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_record_ends_no_service_and_a_new_epoch_keeps_all_data() {
    let mut stay = Stay::begin().await;
    let writer = Writer::start(stay.gate.clone());
    writer.goes_on().await;
    stay.zone.write(&[], &[&EPOCH.to_string()]).await;
    serves_for(&stay, &writer, 3 * VALIDITY + Duration::from_secs(1), "deleted").await;

    // After the record is written back, the record alone is enough.
    stay.zone.owned_by("seed-a", EPOCH).await;
    stay.lab.s3.stop();
    serves_for(&stay, &writer, VALIDITY + Duration::from_secs(1), "written back").await;
    stay.lab.s3.resume();
    assert_eq!(Marker::beside(&stay.volume).seal_reason(EPOCH).unwrap(), None);
    assert!(stay.finals().is_empty());

    // `renew-ownership`: the same seed, the next epoch, the same store.
    stay.zone.write(&[], &[&EPOCH.to_string()]).await;
    writer.goes_on().await;
    let acknowledged = writer.acknowledged();
    drop(writer);
    stay.comes_back().await;
    stay.serves().await;
    let all = EtcdServer::keys(&stay.gate).await;
    for Acknowledged { key, .. } in &acknowledged {
        assert!(all.contains(key.as_bytes()), "{key} is lost");
    }
    stay.server().snapshot("/snapshot/full").await;
    assert_eq!(stay.holding().await["epoch"], EPOCH + 1);
}

/// R17-50: after phase Sealing the deletion ends the epoch, and the bucket need not answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_goes_after_phase_sealing_ends_the_epoch() {
    let mut stay = Stay::begin().await;
    let writer = Writer::start(stay.gate.clone());
    writer.goes_on().await;
    let other = json!({"epoch": EPOCH + 1});
    let (status, refused) = stay.server().post_json("/ownership/sealing", &other).await;
    assert_eq!(
        (status, &refused["code"]),
        (409, &json!("other-epoch")),
        "{refused}"
    );
    // The record exists: no epoch ends.
    stay.passes_sealing().await;
    writer.goes_on().await;
    stay.lab.s3.stop();
    stay.zone.write(&[], &[&EPOCH.to_string()]).await;
    stay.is_fenced("Sealed").await;
    let acknowledged = writer.settled().await;
    stay.lab.s3.resume();
    stay.hands_over(&acknowledged).await;
}

/// The gardenlet repeats its report, because a restarted process has forgotten the report.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_started_again_seals_after_the_next_report() {
    let mut stay = Stay::begin().await;
    stay.passes_sealing().await;
    stay.start().await;
    stay.serves().await;
    stay.zone.write(&[], &[&EPOCH.to_string()]).await;
    // A permit of a check that began after the deletion.
    let deleted = Instant::now();
    eventually("the bucket's word extends the permit", async || {
        let asked = Instant::now();
        let ownership = stay.ownership().await;
        assert_ne!(ownership["state"], "Sealed", "{ownership}");
        let left = ownership["validForMilliseconds"].as_u64().unwrap();
        (asked + Duration::from_millis(left) > deleted + VALIDITY).then_some(())
    })
    .await;
    stay.passes_sealing().await;
    stay.is_fenced("Sealed").await;
}
