//! A lost shoot: fenced in time, sealed for ever, and its final snapshot holds all acknowledged changes.

use crate::lab::{
    Acknowledged, EPOCH, EtcdServer, Gate, REQUESTS, S3Server, Stay, VALIDITY, Writer, eventually, now,
    op_put,
};
use etcd_backup_restore::owner::Marker;
use serde_json::json;
use std::time::{Duration, SystemTime};

/// The destination counts on this: no write is sent after V and acknowledged, and no acknowledgement leaves
/// the gate after V + H.
pub(super) fn was_fenced_in_time(acknowledged: &[Acknowledged], changed: SystemTime) {
    for write in acknowledged {
        let [sent, released] = write.since(changed);
        assert!(
            sent <= VALIDITY && released <= VALIDITY + REQUESTS,
            "{} was sent {sent:?} and acknowledged {released:?} after the change",
            write.key
        );
    }
}

/// R17-40, R17-41, R17-43, R17-49: no write of any client passes, and no restart takes that back.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_shoot_is_fenced_in_time_and_its_final_snapshot_holds_all_that_was_acknowledged() {
    fences_a_lost_shoot(Stay::begin().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_for_http2_fences_a_lost_shoot_in_time() {
    fences_a_lost_shoot(Stay::with_http2().await).await;
}

async fn fences_a_lost_shoot(mut stay: Stay) {
    let writer = Writer::start(stay.gate.clone());
    writer.goes_on().await;
    let said = stay.ownership().await;
    let settings = (&said["silence"], &said["leastFenceMilliseconds"]);
    assert_eq!(
        (&said["answer"], settings),
        (&json!("Owned"), (&json!("Deactivate"), &json!(15_026)))
    );
    let before = stay.starts();
    stay.zone.owned_by("seed-b", EPOCH + 1).await;
    let changed = now();
    stay.is_fenced("Sealed").await;
    let acknowledged = writer.settled().await;
    was_fenced_in_time(&acknowledged, changed);
    stay.hands_over(&acknowledged).await;
    assert_eq!(writer.acknowledged().len(), acknowledged.len());
    assert_eq!(stay.ownership().await["answer"], "Sealed");
    assert_eq!(stay.server().text("/healthz").await.0, 200);
    stay.has_started_since(before, "etcd was started again").await;

    // A repeated request returns the same final snapshot, and a resume is refused.
    let finals = stay.finals();
    assert_eq!(
        stay.server().snapshot("/snapshot/full?final=true").await,
        finals[0]
    );
    for path in ["/snapshot/resume", "/snapshot/full", "/snapshot/delta"] {
        let (status, refused) = stay.server().post(path).await;
        assert_eq!(
            (status, &refused["code"]),
            (409, &"finished".into()),
            "{path}: {refused}"
        );
    }

    // A restart, with an etcd that still changes (leases end), and a record that names this seed again.
    stay.zone.owned_by("seed-a", EPOCH).await;
    stay.held("Owned", EPOCH).await;
    // etcd runs since its restart.
    eventually("etcd takes a write by itself", async || {
        stay.etcd.txn(vec![op_put("/late", "x", 0)]).await.ok()
    })
    .await;
    let before = stay.starts();
    stay.start().await;
    stay.is_fenced("Sealed").await;
    eventually("the final snapshot is found", async || {
        (stay.server().get("/healthz").await.1["finished"] == true).then_some(())
    })
    .await;
    assert_eq!(stay.finals(), finals);
    stay.has_started_since(before, "etcd was told again").await;

    // Nor does the volume open in that epoch.
    assert_eq!(stay.take_server().terminate().await, Some(0));
    stay.end_of_etcd().await;
    let epoch = format!("--ownership-epoch={EPOCH}");
    let refused = stay.lab.initialize("p", &stay.volume, &[&epoch]).await;
    assert!(
        !refused.success && refused.errors.contains("was sealed"),
        "{}",
        refused.errors
    );
    let kept = stay
        .lab
        .initialize("p", &stay.volume, &[&epoch, "--behind-gate"])
        .await;
    assert_eq!(kept.json["result"], "Kept", "{}", kept.errors);
    std::fs::remove_dir_all(&stay.volume).unwrap();
    let gone = stay
        .lab
        .initialize("p", &stay.volume, &[&epoch, "--behind-gate"])
        .await;
    assert!(
        !gone.success && gone.errors.contains("was sealed"),
        "{}",
        gone.errors
    );
}

/// R17-44, R17-46.
#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_is_gone_delays_no_fence_and_gets_the_final_snapshot_when_it_is_back() {
    let mut stay = Stay::begin().await;
    let writer = Writer::start(stay.gate.clone());
    writer.goes_on().await;
    stay.lab.s3.stop();
    let before = stay.starts();
    stay.zone.owned_by("seed-b", EPOCH + 1).await;
    let changed = now();
    stay.is_fenced("Sealed").await;
    let acknowledged = writer.acknowledged();
    was_fenced_in_time(&acknowledged, changed);
    let marker = Marker::beside(&stay.volume);
    eventually("the seal is on the volume", async || {
        marker.seal_reason(EPOCH).unwrap()
    })
    .await;
    stay.has_started_since(before, "etcd was told although nothing is saved")
        .await;
    // The process is restarted before the bucket comes back.
    stay.start().await;
    stay.is_fenced("Sealed").await;
    assert_eq!(stay.server().get("/snapshot/latest").await.1["finished"], false);
    stay.lab.s3.resume();
    stay.hands_over(&acknowledged).await;
}

/// Leases of a large etcd expire while its final snapshot is stored. A write past the gate stands for such
/// a change.
#[tokio::test(flavor = "multi_thread")]
async fn a_final_snapshot_after_the_seal_does_not_wait_for_leases_that_expire() {
    let mut stay = Stay::begin().await;
    let store = Gate::before(&stay.lab.s3.endpoint).await;
    S3Server::write_credentials_of(&store.endpoint, &stay.lab.credentials());
    stay.start().await;
    stay.serves().await;
    let writer = Writer::start(stay.gate.clone());
    writer.goes_on().await;
    eventually("the chain of the epoch begins", async || {
        let (_, latest) = stay.server().get("/snapshot/latest").await;
        latest["fullSnapshot"]["lastRevision"].as_i64()
    })
    .await;
    store.hold("PUT /bucket/p/v2/Full");
    stay.zone.owned_by("seed-b", EPOCH + 1).await;
    stay.is_fenced("Sealed").await;
    store.something_is_held().await;
    eventually("etcd creates a revision", async || {
        stay.etcd.txn(vec![op_put("/expired", "1", 0)]).await.ok()
    })
    .await;
    store.release();
    stay.hands_over(&writer.acknowledged()).await;
    let latest = stay.server().get("/snapshot/latest").await.1;
    let full = &latest["fullSnapshot"];
    let revision = |key: &str| full[key].as_i64().unwrap();
    assert!(revision("etcdRevision") > revision("lastRevision"), "{latest}");
    assert!(revision("lastRevision") >= revision("sealedRevision"), "{latest}");
}

/// No change is lost with a kubelet that does not restart etcd.
#[tokio::test(flavor = "multi_thread")]
async fn the_final_snapshot_needs_nobody_who_starts_etcd_again() {
    let mut stay = Stay::begin().await;
    let writer = Writer::start(stay.gate.clone());
    writer.goes_on().await;
    stay.kubelet_stands_still();
    stay.zone.owned_by("seed-b", EPOCH + 1).await;
    stay.is_fenced("Sealed").await;
    stay.hands_over(&writer.acknowledged()).await;
    stay.etcd_has_ended().await;
}

/// R17-50: a planned move deletes the record.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_record_brings_the_final_snapshot_and_a_later_claim_in_the_bucket_stays() {
    let stay = Stay::begin().await;
    stay.etcd.txn(vec![op_put("/a", "1", 0)]).await.unwrap();
    // The claimant was faster than the seal.
    stay.held("Claimed", EPOCH + 1).await;
    stay.passes_sealing().await;
    stay.zone.write(&[], &[&EPOCH.to_string()]).await;
    stay.is_fenced("Sealed").await;
    eventually("the final snapshot is proven", async || {
        (stay.server().get("/snapshot/latest").await.1["finished"] == true).then_some(())
    })
    .await;
    // Changes of etcd itself after the seal (ended leases) are no loss of a client.
    let latest = stay.server().get("/snapshot/latest").await.1;
    let sealed = latest["sealedRevision"].as_i64().unwrap();
    assert_eq!(
        Some(sealed),
        latest["fullSnapshot"]["lastRevision"].as_i64(),
        "{latest}"
    );
    assert_eq!(stay.finals().len(), 1);
    let holding = stay.holding().await;
    assert_eq!(
        (&holding["state"], &holding["epoch"]),
        (&"Claimed".into(), &(EPOCH + 1).into())
    );
}

/// A move is cancelled when its epoch was sealed and its final snapshot was not taken: the next epoch begins
/// with all acknowledged changes, and is backed up.
#[tokio::test(flavor = "multi_thread")]
async fn a_shoot_that_stays_after_all_has_everything_in_its_next_epoch() {
    let mut stay = Stay::begin().await;
    let writer = Writer::start(stay.gate.clone());
    writer.goes_on().await;
    stay.lab.s3.stop();
    stay.passes_sealing().await;
    stay.zone.write(&[], &[&EPOCH.to_string()]).await;
    stay.is_fenced("Sealed").await;
    let acknowledged = writer.acknowledged();
    drop(writer);
    drop(stay.take_server());
    stay.lab.s3.resume();
    assert!(stay.finals().is_empty());
    stay.comes_back().await;
    stay.serves().await;
    let all = EtcdServer::keys(&stay.gate).await;
    for Acknowledged { key, .. } in &acknowledged {
        assert!(all.contains(key.as_bytes()), "{key} is lost");
    }
    stay.server().snapshot("/snapshot/full").await;
    assert_eq!(stay.ownership().await["answer"], "Owned");
    assert_eq!(stay.holding().await["epoch"], EPOCH + 1);
}

/// The figure of docs/understand/etcd-backup-restore.md:
/// `cargo test -p etcd-backup-restore --test real -- --ignored --nocapture records_change`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement of some minutes"]
async fn from_the_records_change_to_the_last_acknowledged_write() {
    let mut measured = Vec::new();
    for _ in 0..20 {
        let stay = Stay::with(&[]).await;
        let writer = Writer::start(stay.gate.clone());
        writer.goes_on().await;
        // Anywhere between two checks.
        tokio::time::sleep(Duration::from_millis(200 * measured.len() as u64)).await;
        stay.zone.owned_by("seed-b", EPOCH + 1).await;
        let changed = now();
        stay.is_fenced("Sealed").await;
        let [_, last] = writer.acknowledged().last().unwrap().since(changed);
        measured.push(last);
    }
    measured.sort();
    println!(
        "median {:?}, p95 {:?}, longest {:?}",
        measured[10], measured[18], measured[19]
    );
    assert!(measured[19] <= Duration::from_secs(12));
}
