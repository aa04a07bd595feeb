//! Witnesses that are silent or say what nobody can use: one of them fences nobody, both suspend.

use crate::lab::{EPOCH, Stay, VALIDITY, Writer, eventually};
use etcd_backup_restore::owner::Marker;
use std::time::{Duration, Instant};

/// For longer than the validity. A machine that stands still ends a permit, too; what fences wrongly does so each time.
async fn goes_on(stay: &Stay, writer: &Writer, when: &str) {
    for _ in 0..4 {
        if stays_ready(stay, writer).await {
            return;
        }
        println!("{when}: {}", stay.ownership().await);
        stay.serves().await;
    }
    panic!("{when}: it does not go on");
}

async fn stays_ready(stay: &Stay, writer: &Writer) -> bool {
    let (begun, before) = (Instant::now(), stay.starts());
    while begun.elapsed() < VALIDITY + Duration::from_secs(3) {
        if !stay.is_ready().await {
            return false;
        }
        writer.goes_on().await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    stay.starts() == before
}

#[tokio::test(flavor = "multi_thread")]
async fn one_silent_witness_fences_nobody_whatever_the_record_says_that_is_no_record() {
    let mut stay = Stay::begin().await;
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
    let silent = Instant::now();
    stay.is_fenced("Suspended").await;
    let last = writer.acknowledged().last().unwrap().1;
    assert!(last.saturating_duration_since(silent) <= VALIDITY);
    stay.has_started_since(before, "etcd was started again").await;
    let before = stay.starts();
    let (status, refused) = stay.server().post("/snapshot/full?final=true").await;
    assert_eq!(
        (status, &refused["code"]),
        (503, &"not-permitted".into()),
        "{refused}"
    );
    // A restart does not open it.
    stay.start().await;
    stay.is_fenced("Waiting").await;
    // One witness is enough to come back (R17-48).
    stay.zone.server.resume().await.unwrap();
    stay.zone.owned_by("seed-a", EPOCH).await;
    stay.serves().await;
    assert_eq!(stay.starts(), before, "nobody has told etcd to end");
    writer.goes_on().await;
    assert_eq!(Marker::beside(&stay.volume).seals(EPOCH).unwrap(), None);

    // Silent again; what comes back then is a loss (R17-49).
    let before = stay.starts();
    stay.zone.server.stop();
    stay.is_fenced("Suspended").await;
    let acknowledged = writer.settled().await;
    // Or it would hear in between that all is as before.
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

/// The process ends as before: what clients were promised is stored first.
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
