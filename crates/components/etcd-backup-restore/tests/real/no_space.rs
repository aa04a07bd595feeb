//! Alarm NOSPACE: no restore carries the alarm where there is room, and the process reports and disarms the
//! alarm.

use crate::lab::{EtcdServer, Lab, Server, after_loss, eventually, program};
use etcd_backup_restore::{compression::Compression, full};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

const QUOTA: u64 = 16 << 20;

fn key(number: u8) -> String {
    format!("/fill/{number}")
}

/// Writes values until etcd has raised the alarm; returns the number of stored keys.
async fn fill(etcd: &EtcdServer) -> u8 {
    for number in 0..=u8::MAX {
        let filled = etcd
            .client
            .txn(vec![crate::lab::op_put(&key(number), vec![number; 1 << 20], 0)])
            .await;
        if let Err(refused) = filled {
            assert!(refused.to_string().contains("space exceeded"), "{refused}");
            assert!(etcd.client.space().await.unwrap().alarm);
            return number;
        }
    }
    panic!("the quota was never reached");
}

/// A full snapshot of an etcd that no process makes room for.
async fn take_full(lab: &Lab, prefix: &str, etcd: &EtcdServer) {
    let taken = full::take(&etcd.client, &lab.store(prefix), Compression::Gzip, false).await;
    taken.unwrap();
}

async fn refuses_writes(etcd: &EtcdServer) -> bool {
    let written = etcd.client.txn(vec![crate::lab::op_put("/after", "x", 0)]).await;
    written.is_err()
}

/// Case 2: the full snapshot carries the alarm, and no delta follows.
#[tokio::test(flavor = "multi_thread")]
async fn a_restore_disarms_the_alarm_where_the_database_leaves_room_and_keeps_the_alarm_elsewhere() {
    let lab = Lab::new();
    let etcd = EtcdServer::start_limited(&lab.path("etcd"), QUOTA).await;
    let stored = fill(&etcd).await;
    take_full(&lab, "full", &etcd).await;
    for number in 0..stored {
        etcd.delete(&key(number)).await;
    }
    take_full(&lab, "deleted", &etcd).await;
    // etcd compacts itself in the meantime, up to the newest revision, and the free pages stay.
    etcd.compact(etcd.client.revision().await.unwrap());
    take_full(&lab, "compacted", &etcd).await;
    let before = etcd.dump().await;
    etcd.stop();
    for (prefix, quota, refuses) in [
        // The values are deleted: the database shrinks below the quota.
        ("deleted", QUOTA, false),
        ("compacted", QUOTA, false),
        // The data alone reach the quota of the destination.
        ("full", QUOTA / 2, true),
        // The quota at the destination is larger, and the database stays as the database is.
        ("full", 4 * QUOTA, false),
    ] {
        let case = format!("{prefix} {quota}");
        assert_eq!(lab.objects(prefix).len(), 1, "{:?}", lab.objects(prefix));
        let volume = lab.path(&case).join("new.etcd");
        let flag = format!("--embedded-etcd-quota-bytes={quota}");
        let ran = lab.initialize(prefix, &volume, &[&flag]).await;
        assert_eq!(ran.json["result"], "Restored", "{case}: {}", ran.errors);
        let restored = EtcdServer::start_limited(&volume, quota).await;
        let space = restored.client.space().await.unwrap();
        assert_eq!((space.alarm, space.quota), (refuses, quota), "{case}");
        if prefix != "full" {
            assert_eq!(restored.dump().await, after_loss(&before, 1), "{case}");
        }
        assert_eq!(refuses_writes(&restored).await, refuses, "{case}");
    }
}

/// The former values of a key count until they are compacted.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_snapshot_without_deltas_is_settled_for_a_smaller_quota_of_the_destination() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    for number in 0..20_u8 {
        etcd.put_key("/registry/large", vec![number; 1 << 20]).await;
    }
    drop(Server::start(&lab, "p", &etcd.endpoint, &[]).await);
    let before = etcd.dump().await;
    etcd.stop();
    assert_eq!(lab.objects("p").len(), 1);
    let volume = lab.path("volume/new.etcd");
    let flag = format!("--embedded-etcd-quota-bytes={QUOTA}");
    let ran = lab.initialize("p", &volume, &[&flag]).await;
    assert_eq!(ran.json["result"], "Restored", "{}", ran.errors);
    let restored = EtcdServer::start_limited(&volume, QUOTA).await;
    assert_eq!(restored.dump().await, after_loss(&before, 1));
    assert!(restored.client.space().await.unwrap().has_room());
    assert!(!refuses_writes(&restored).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alarm_without_room_is_reported_and_disarmed_once_the_quota_is_raised() {
    let lab = Lab::new();
    let data = lab.path("etcd");
    let etcd = EtcdServer::start_limited(&data, QUOTA).await;
    fill(&etcd).await;
    etcd.flush().await;
    etcd.stop();
    // The data alone reach this quota, also without the free pages that a slow disk leaves between them.
    let quota = QUOTA / 2;
    let etcd = EtcdServer::start_limited(&data, quota).await;
    assert!(refuses_writes(&etcd).await);
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    let health = eventually("the room is reported", async || {
        let health = server.get("/healthz").await.1;
        (!health["space"].is_null()).then_some(health)
    })
    .await;
    let space = &health["space"];
    assert_eq!(
        (&space["noSpace"], &space["quotaBytes"]),
        (&json!(true), &json!(quota)),
        "{health}"
    );
    let metrics = server.text("/metrics").await.1;
    for line in [
        "etcdbr_etcd_no_space 1".to_owned(),
        format!("etcdbr_etcd_quota_bytes {quota}"),
        format!("etcdbr_etcd_database_bytes {}", space["databaseBytes"]),
    ] {
        assert!(metrics.contains(&line), "{line} is not in\n{metrics}");
    }
    assert!(refuses_writes(&etcd).await, "the alarm was disarmed without room");
    // etcd-druid reads the alarm there, since the probes do not show the alarm.
    let get = async |path: &str| {
        let answer = reqwest::get(format!("{}/{path}", etcd.endpoint)).await.unwrap();
        (
            answer.status().as_u16(),
            answer.text().await.unwrap().trim().to_owned(),
        )
    };
    let health = (503, r#"{"health":"false","reason":"ALARM NOSPACE"}"#.to_owned());
    assert_eq!(get("health").await, health);
    assert_eq!(get("readyz").await.0, 200);
    drop(server);
    etcd.stop();

    let etcd = EtcdServer::start_limited(&data, 4 * QUOTA).await;
    assert!(refuses_writes(&etcd).await);
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    eventually("the alarm is disarmed", async || {
        (!refuses_writes(&etcd).await).then_some(())
    })
    .await;
    eventually("the room is reported", async || {
        let metrics = server.text("/metrics").await.1;
        metrics.contains("etcdbr_etcd_no_space 0").then_some(())
    })
    .await;
}

/// Writes values of a single key until etcd has raised the alarm: the data are small, and former values fill
/// the quota.
async fn fill_with_history(etcd: &EtcdServer) {
    write_until_refused(etcd).await;
    assert!(etcd.client.space().await.unwrap().alarm);
}

async fn write_until_refused(etcd: &EtcdServer) {
    for number in 0..=u8::MAX {
        let value = vec![number; 1 << 20];
        let filled = etcd.client.txn(vec![crate::lab::op_put("/one", value, 0)]).await;
        if let Err(refused) = filled {
            assert!(refused.to_string().contains("space exceeded"), "{refused}");
            return;
        }
    }
    panic!("the quota was never reached");
}

/// Values until a defragmentation leaves no room: a slow disk leaves free pages between the values.
async fn fill_without_free_pages(etcd: &EtcdServer) {
    loop {
        write_until_refused(etcd).await;
        etcd.client.defragment().await.unwrap();
        if !etcd.client.space().await.unwrap().has_room() {
            return;
        }
        etcd.client.disarm_no_space().await.unwrap();
    }
}

/// kube-apiserver cannot compact an etcd that refuses writes, since its compaction begins with a write.
#[tokio::test(flavor = "multi_thread")]
async fn former_values_make_room_for_a_running_etcd_and_the_chain_of_snapshots_goes_on() {
    let lab = Lab::new();
    let etcd = EtcdServer::start_limited(&lab.path("etcd"), QUOTA).await;
    fill_with_history(&etcd).await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    eventually("there is room", async || {
        (!refuses_writes(&etcd).await).then_some(())
    })
    .await;
    let relief = eventually("the attempt is reported", async || {
        let health = server.get("/healthz").await.1;
        let space = &health["space"];
        (space["noSpace"] == json!(false)).then(|| space["relief"].clone())
    })
    .await;
    assert_eq!(relief["result"], "Disarmed", "{relief}");
    let space = etcd.client.space().await.unwrap();
    assert!(space.has_room() && space.can_be_freed(), "{space:?}");
    let metrics = server.text("/metrics").await.1;
    let line = "etcdbr_etcd_room_made_total{result=\"Disarmed\"} 1";
    assert!(metrics.contains(line), "{metrics}");

    server.snapshot("/snapshot/delta").await;
    let before = etcd.dump().await;
    let full = |objects: &[String]| objects.iter().filter(|name| name.starts_with("Full")).count();
    let objects = lab.objects("p");
    assert!(full(&objects) == 1 && objects.len() > 1, "{objects:?}");
    etcd.stop();
    let ran = lab.initialize("p", &lab.path("volume/new.etcd"), &[]).await;
    assert!(ran.success, "{}", ran.errors);
    let restored = EtcdServer::start(&lab.path("volume/new.etcd")).await;
    assert_eq!(restored.dump().await, after_loss(&before, 1));
}

/// Changes that no snapshot has would be lost with the volume, and no delta could follow.
#[tokio::test(flavor = "multi_thread")]
async fn changes_that_the_store_lacks_are_not_compacted_and_the_remedy_is_reported() {
    let lab = Lab::new();
    let etcd = EtcdServer::start_limited(&lab.path("etcd"), QUOTA).await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    let saved = etcd.client.revision().await.unwrap();
    std::fs::write(lab.credentials().join("secretAccessKey"), "refused").unwrap();
    fill_without_free_pages(&etcd).await;
    let relief = eventually("no room is left", async || {
        let relief = server.get("/healthz").await.1["space"]["relief"].clone();
        (relief["result"] == "NoRoom").then_some(relief)
    })
    .await;
    let message = relief["message"].as_str().unwrap();
    assert!(
        message.contains("Delete objects, or raise the quota"),
        "{message}"
    );
    assert!(refuses_writes(&etcd).await, "the alarm was disarmed without room");
    assert!(
        !etcd.has_compacted(saved + 1).await,
        "the next delta has lost its changes"
    );
}

/// An etcd without backups has no process beside it: a start of the pod makes room.
#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_without_backups_is_settled_when_the_etcd_starts_again() {
    let lab = Lab::new();
    let data = lab.path("volume/new.etcd");
    let quota = |bytes: u64| format!("--embedded-etcd-quota-bytes={bytes}");
    for epoch in [1, 2] {
        assert!(lab.prepare(&data, epoch, &[&quota(QUOTA)]).await.success);
        let etcd = EtcdServer::start_limited(&data, QUOTA).await;
        let stored = fill(&etcd).await;
        etcd.flush().await;
        etcd.stop();
        // The data alone reach this quota.
        assert!(lab.prepare(&data, epoch, &[&quota(QUOTA / 2)]).await.success);
        let etcd = EtcdServer::start_limited(&data, QUOTA).await;
        assert!(refuses_writes(&etcd).await, "the alarm was disarmed without room");
        for number in 0..stored {
            etcd.delete(&key(number)).await;
        }
        etcd.flush().await;
        etcd.stop();
        for _ in 0..2 {
            let prepared = lab.prepare(&data, epoch, &[&quota(QUOTA)]).await;
            assert!(prepared.success, "{}", prepared.errors);
        }
        let etcd = EtcdServer::start_limited(&data, QUOTA).await;
        assert!(!refuses_writes(&etcd).await, "epoch {epoch}");
    }
}

/// A program that records its arguments and runs etcd. While `refused` exists, etcd ends at once on the data
/// directory in place, as where the disk is full, and starts in work directories.
struct RecordedEtcd {
    flag: String,
    arguments: PathBuf,
    refused: PathBuf,
}

impl RecordedEtcd {
    fn new(lab: &Lab) -> Self {
        let [text, script, arguments, refused] =
            ["etcd.text", "etcd.sh", "arguments", "refused"].map(|name| lab.path(name));
        let content = format!(
            "#!/bin/sh\necho \"$*\" >> {}\ncase \"$*\" in *.restoring*) ;; *) [ ! -e {} ] || exit 1 ;; esac\n\
             exec {} \"$@\"\n",
            arguments.display(),
            refused.display(),
            program("etcd").display()
        );
        std::fs::write(&text, content).unwrap();
        // A file that this process has written may be busy when the file is run.
        let mut install = Command::new("install");
        install.arg("-m755").args([&text, &script]);
        assert!(install.status().unwrap().success());
        Self {
            flag: format!("--etcd-path={}", script.display()),
            arguments,
            refused,
        }
    }

    /// Of each start so far: whether in a work directory, and whether without fsync.
    fn starts(&self) -> Vec<(bool, bool)> {
        let arguments = std::fs::read_to_string(&self.arguments).unwrap();
        let is_work = |line: &str| line.contains(".restoring");
        arguments
            .lines()
            .map(|line| (is_work(line), line.contains("--unsafe-no-fsync")))
            .collect()
    }
}

/// Data of an etcd without backups, with alarm NOSPACE raised.
async fn full_of_epoch_1(lab: &Lab, data: &Path, etcd: &RecordedEtcd) {
    let quota = format!("--embedded-etcd-quota-bytes={QUOTA}");
    let prepared = lab.prepare(data, 1, &[&quota, &etcd.flag]).await;
    assert!(prepared.success, "{}", prepared.errors);
    let etcd = EtcdServer::start_limited(data, QUOTA).await;
    fill(&etcd).await;
    etcd.flush().await;
    etcd.stop();
}

/// The data directory in place may be the only copy of the shoot's objects: a seed without a bucket.
#[tokio::test(flavor = "multi_thread")]
async fn the_data_directory_in_place_is_changed_with_fsync_and_a_work_directory_without() {
    let lab = Lab::new();
    let data = lab.path("volume/new.etcd");
    let etcd = RecordedEtcd::new(&lab);
    full_of_epoch_1(&lab, &data, &etcd).await;
    let quota = format!("--embedded-etcd-quota-bytes={QUOTA}");
    let prepared = lab.prepare(&data, 2, &[&quota, &etcd.flag]).await;
    assert_eq!(prepared.json["result"], "Advanced", "{}", prepared.errors);
    // The empty directory was created beside the data; room was made and the log was applied in place.
    assert_eq!(etcd.starts(), [(true, true), (false, false), (false, false)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn data_that_cannot_be_settled_or_advanced_keep_no_etcd_with_events_from_its_start() {
    let lab = Lab::new();
    let data = lab.path("volume/new.etcd");
    let etcd = RecordedEtcd::new(&lab);
    full_of_epoch_1(&lab, &data, &etcd).await;
    let quota = format!("--embedded-etcd-quota-bytes={QUOTA}");
    let flags = [quota.as_str(), etcd.flag.as_str()];
    let disposable = [flags.as_slice(), &["--disposable-data"]].concat();
    std::fs::write(&etcd.refused, "").unwrap();

    // etcd could not make room: the data stay unchanged.
    let kept = lab.prepare(&data, 1, &disposable).await;
    assert_eq!(kept.json, json!({"result": "Kept"}), "{}", kept.errors);
    // Objects of a shoot are never removed.
    let refused = lab.prepare(&data, 2, &flags).await;
    assert!(
        !refused.success && refused.errors.contains("Tool: "),
        "{}",
        refused.errors
    );
    let full = EtcdServer::start_limited(&data, QUOTA).await;
    let (stored, reached) = full.dump().await;
    assert!(!stored.is_empty() && refuses_writes(&full).await);
    full.stop();

    let fresh = lab.prepare(&data, 2, &disposable).await;
    assert_eq!(fresh.json["result"], "Fresh", "{}", fresh.errors);
    let empty = EtcdServer::start_limited(&data, QUOTA).await;
    let (stored, begun) = empty.dump().await;
    assert!(stored.is_empty() && begun > reached, "{begun} {reached}");
    assert!(!refuses_writes(&empty).await);
    empty.stop();
    let kept = lab.prepare(&data, 2, &disposable).await;
    assert_eq!(kept.json, json!({"result": "Kept"}), "{}", kept.errors);
}
