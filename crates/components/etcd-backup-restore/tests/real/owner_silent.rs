//! Witnesses that are silent or give unusable answers: a single such witness fences no seed, two suspend the
//! owner.

use crate::lab::{EPOCH, PATIENT_VALIDITY, REQUESTS, Stay, VALIDITY, Writer, eventually, now};
use etcd_backup_restore::owner::Marker;
use std::time::{Duration, Instant};

/// Between the beginning of a silence and the check that must extend the permit: two checks and more.
const SILENT_FOR: Duration = Duration::from_secs(6);

/// Waits until a check that began well within the silence has extended the permit, and sees no end of service
/// meanwhile. Each further check does the same, so that the permit does not end by that silence.
async fn goes_on(stay: &Stay, writer: &Writer, when: &str) {
    let (begun, before) = (Instant::now(), stay.starts());
    eventually(when, async || {
        assert!(stay.is_ready().await, "{when}: {}", stay.ownership().await);
        let asked = Instant::now();
        let left = stay.ownership().await["validForMilliseconds"].as_u64().unwrap();
        // A permit is valid for V from when its check began.
        (asked + Duration::from_millis(left) >= begun + SILENT_FOR + PATIENT_VALIDITY).then_some(())
    })
    .await;
    writer.goes_on().await;
    assert_eq!(stay.starts(), before, "{when}: etcd was told to end");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_silent_witness_fences_nobody_whatever_the_record_says_that_is_no_record() {
    let mut stay = Stay::patient().await;
    let writer = Writer::start(stay.gate.clone());
    let epoch = EPOCH.to_string();
    stay.zone.write(&["seed-a", "seed-b"], &[&epoch]).await;
    goes_on(&stay, &writer, "several values").await;
    stay.zone.write(&["\"seed-b\""], &[&epoch]).await;
    goes_on(&stay, &writer, "a value with quotes").await;
    stay.zone.server.stop();
    goes_on(&stay, &writer, "no name server").await;
    stay.zone.server.resume().await.unwrap();
    stay.zone.owned_by("seed-a", EPOCH).await;
    stay.lab.s3.stop();
    goes_on(&stay, &writer, "no bucket").await;
}

/// R17-47..49.
#[tokio::test(flavor = "multi_thread")]
async fn without_both_witnesses_the_gate_is_shut_without_a_seal_and_opens_again() {
    let mut stay = Stay::begin().await;
    let writer = Writer::start(stay.gate.clone());
    writer.goes_on().await;
    let before = stay.starts();
    stay.zone.server.stop();
    stay.lab.s3.stop();
    let silent = now();
    stay.is_fenced("Suspended").await;
    let [sent, released] = writer.settled().await.last().unwrap().since(silent);
    assert!(
        sent <= VALIDITY && released <= VALIDITY + REQUESTS,
        "{sent:?} {released:?}"
    );
    stay.has_started_since(before, "etcd was started again").await;
    let before = stay.starts();
    let (status, refused) = stay.server().post("/snapshot/full?final=true").await;
    assert_eq!(
        (status, &refused["code"]),
        (503, &"not-permitted".into()),
        "{refused}"
    );
    // A restart does not open the gate.
    stay.start().await;
    stay.is_fenced("Waiting").await;
    // A single witness is enough to come back (R17-48).
    stay.zone.server.resume().await.unwrap();
    stay.zone.owned_by("seed-a", EPOCH).await;
    stay.serves().await;
    assert_eq!(stay.starts(), before, "nobody has told etcd to end");
    writer.goes_on().await;
    assert_eq!(Marker::beside(&stay.volume).seal_reason(EPOCH).unwrap(), None);

    // Silent again; this time the answer that ends the silence is a loss (R17-49).
    let before = stay.starts();
    stay.zone.server.stop();
    stay.is_fenced("Suspended").await;
    let acknowledged = writer.settled().await;
    // Otherwise the process would hear in between that it still owns the shoot.
    stay.server().stop().await;
    stay.lab.s3.resume();
    assert_eq!(
        stay.finals(),
        Vec::<String>::new(),
        "no final snapshot without a loss"
    );
    stay.held("Owned", EPOCH - 1).await;
    stay.zone.server.resume().await.unwrap();
    stay.zone.owned_by("seed-b", EPOCH + 1).await;
    stay.server().signal("-CONT");
    stay.is_fenced("Sealed").await;
    stay.held("Owned", EPOCH).await;
    eventually("the final snapshot is proven", async || {
        (stay.server().get("/snapshot/latest").await.1["finished"] == true).then_some(())
    })
    .await;
    assert_eq!(stay.finals().len(), 1);
    assert_eq!(writer.acknowledged().len(), acknowledged.len());
    eventually(
        "etcd was told at each end of service, and after the final snapshot",
        async || (stay.starts() >= before + 2).then_some(()),
    )
    .await;
}

/// The process ends as before: acknowledged changes are stored first.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_told_to_stop_stores_all_that_was_acknowledged() {
    let mut stay = Stay::begin().await;
    let writer = Writer::start(stay.gate.clone());
    writer.goes_on().await;
    eventually("snapshots are taken", async || {
        (stay.server().get("/healthz").await.1["snapshotter"] == "Active").then_some(())
    })
    .await;
    assert_eq!(stay.take_server().terminate().await, Some(0));
    let revision = stay.etcd.revision().await.unwrap();
    let stored = stay.store().list().await.unwrap();
    let reached = stored
        .iter()
        .map(|snapshot| snapshot.last_revision)
        .max()
        .unwrap();
    assert_eq!(reached, revision);
    assert!(!writer.acknowledged().is_empty());
}
