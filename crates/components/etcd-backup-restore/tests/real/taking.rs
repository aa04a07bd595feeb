//! Conditions under which snapshots are taken, and are not taken too often.

use crate::lab::{EtcdServer, Lab, RefusingS3, Server, eventually, run};
use axum::http::{Method, StatusCode};
use std::fs;

#[tokio::test(flavor = "multi_thread")]
async fn what_was_collected_is_stored_when_the_process_is_told_to_stop() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.put_key("/a", "1").await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &["--delta-snapshot-period=24h"]).await;
    // Directly after the start the store may be behind, and catches up at once.
    server.get("/snapshot/delta").await;
    let before = lab.objects("p");
    let revision = etcd.put_key("/a", "2").await;
    assert_eq!(server.terminate().await, Some(0));
    let stored: Vec<_> = lab
        .objects("p")
        .into_iter()
        .filter(|o| !before.contains(o))
        .collect();
    assert_eq!(stored.len(), 1, "{stored:?}");
    assert!(
        stored[0].starts_with(&format!("Incr-{revision:08}-{revision:08}-")),
        "{stored:?}"
    );
    // etcd is stopped at the same time: the changes collected before count.
    let server = Server::start(&lab, "p", &etcd.endpoint, &["--delta-snapshot-period=24h"]).await;
    etcd.put_key("/a", "3").await;
    eventually("the change is collected", async || {
        let (_, metrics) = server.text("/metrics").await;
        metrics
            .contains("etcdbr_snapshot_required{kind=\"Incr\"} 1")
            .then_some(())
    })
    .await;
    let before = lab.objects("p").len();
    etcd.stop();
    assert_eq!(server.terminate().await, Some(0));
    assert_eq!(lab.objects("p").len(), before + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_goes_although_no_full_snapshot_is_ever_due() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.put_key("/a", "1").await;
    let folder = lab.object("p", "");
    fs::create_dir_all(&folder).unwrap();
    // Of a schedule that fired each second of the past.
    for n in 1..=5 {
        fs::write(folder.join(format!("Full-00000000-00000001-{n}.gz")), "x").unwrap();
    }
    let flags = [
        "--garbage-collection-period=1s",
        "--max-backups=2",
        "--delta-snapshot-period=0",
    ];
    let _server = Server::start(&lab, "p", &etcd.endpoint, &flags).await;
    eventually("the oldest are gone", async || {
        (lab.objects("p").len() == 2).then_some(())
    })
    .await;
}

/// The retention of a bucket refuses the deletion of single objects.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_deletion_does_not_end_the_collection_of_garbage() {
    let lab = Lab::new();
    let s3 = RefusingS3::start(&lab).await;
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.put_key("/a", "1").await;
    let folder = lab.object("p", "");
    fs::create_dir_all(&folder).unwrap();
    let name = |n: u8| format!("Full-00000000-00000001-{n}.gz");
    for n in 1..=6 {
        fs::write(folder.join(name(n)), "x").unwrap();
    }
    let forbidden = (StatusCode::FORBIDDEN, "AccessDenied");
    for n in [1, 3] {
        s3.refuse(Method::DELETE, &name(n), forbidden, usize::MAX);
    }
    let flags = [
        "--garbage-collection-period=1s",
        "--max-backups=2",
        "--delta-snapshot-period=0",
    ];
    let server = Server::start(&lab, "p", &etcd.endpoint, &flags).await;
    eventually("all others are gone, and collections go on", async || {
        let left = lab.objects("p");
        let is_done = left.len() == 4 && left.contains(&name(1)) && left.contains(&name(3));
        (is_done && s3.refused() >= 4).then_some(())
    })
    .await;
    let (_, metrics) = server.text("/metrics").await;
    let refused = metrics.lines().find_map(|line| {
        let count = line.strip_prefix("etcdbr_snapshot_gc_refused_total{kind=\"Full\"} ")?;
        count.parse::<usize>().ok()
    });
    assert!(refused.unwrap_or_default() >= 4, "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_cannot_be_read_stops_everybody_and_is_named() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.put_key("/a", "1").await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    let stranger = "Full-00000000-00000099-1518427675.Z";
    fs::write(lab.object("p", stranger), "x").unwrap();
    let (status, refused) = server.get("/snapshot/full").await;
    assert_eq!(
        (status, &refused["code"]),
        (500, &"snapshot-unparsable".into()),
        "{refused}"
    );
    assert!(refused["error"].as_str().unwrap().contains(stranger), "{refused}");
    let copied = lab.copy("p", "to", &[]).await;
    assert!(
        !copied.success && copied.errors.contains(stranger),
        "{}",
        copied.errors
    );
    assert_eq!(lab.objects("to"), Vec::<String>::new());
    let restored = lab.initialize("p", &lab.path("volume/new.etcd"), &[]).await;
    assert!(
        !restored.success && restored.errors.contains(stranger),
        "{}",
        restored.errors
    );
    assert!(!lab.path("volume/new.etcd").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_of_nothing_is_refused_at_the_start() {
    let lab = Lab::new();
    for flag in ["--full-snapshot-window=0s", "--garbage-collection-period=0s"] {
        let mut flags = lab.store_flags("", "p");
        flags.push(flag.to_owned());
        let ran = run("server", &flags).await;
        assert!(!ran.success);
        assert!(ran.errors.contains("write a duration from"), "{}", ran.errors);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_line_of_the_log_is_json_with_the_epoch_and_the_operation() {
    let lab = Lab::new();
    // The source is empty, which is an error.
    let flags = ["--ownership-epoch=3"];
    let to = "shoot--dev--one--0841c87f-8db9/etcd-main";
    let ran = lab.copy("from", to, &flags).await;
    let lines: Vec<serde_json::Value> = ran
        .errors
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}")))
        .collect();
    assert!(!lines.is_empty(), "{ran:?}");
    for line in lines {
        assert_eq!(line["epoch"], 3, "{line}");
        assert_eq!(line["operationID"], "0841c87f-8db9-3", "{line}");
        assert!(
            line["timestamp"].is_string() && line["level"].is_string(),
            "{line}"
        );
    }
}
