//! A restore reproduces all written data, to the last counter.

use crate::lab::{EtcdServer, Lab, Server, after_loss, binary, delete, eventually, op_put};
use ownership::LEFT_OUT_WITHIN_EPOCH;
use std::os::unix::process::CommandExt;

/// Writes like a Kubernetes API, and also unlike one: large values, many keys at once, deletions, binary
/// names.
async fn write_some(etcd: &EtcdServer, round: u8) {
    for n in 0..40 {
        etcd.put_key(&format!("/registry/configmaps/{n}"), vec![round; 100 + n])
            .await;
    }
    etcd.put_key("/registry/large", vec![round; 5 * 1024 * 1024 / 2])
        .await;
    let many: Vec<_> = (0..300)
        .map(|n| op_put(&format!("/registry/many/{round}/{n}"), vec![round], 0))
        .collect();
    // More operations than a transaction of etcd's default size holds.
    for part in <[_]>::chunks(&many, 100) {
        etcd.client.txn(part.to_vec()).await.unwrap();
    }
    etcd.client
        .txn(
            (0..100)
                .map(|n| delete(&format!("/registry/many/{round}/{n}")))
                .collect(),
        )
        .await
        .unwrap();
    etcd.delete("/registry/configmaps/7").await;
    etcd.put_key("/registry/\u{0}binary\u{ff}", vec![0, 255, 10])
        .await;
    etcd.put_key("/registry/empty", Vec::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_snapshot_and_its_deltas_restore_every_key_and_revision() {
    for packing in ["gzip", "zstd", "none"] {
        let lab = Lab::new();
        let etcd = EtcdServer::start(&lab.path("etcd")).await;
        write_some(&etcd, 1).await;
        let server = Server::start(&lab, "p", &etcd.endpoint, &["--compression-policy", packing]).await;
        write_some(&etcd, 2).await;
        let first = server.snapshot("/snapshot/delta").await;
        write_some(&etcd, 3).await;
        let second = server.snapshot("/snapshot/delta").await;
        assert_eq!(
            server.get("/snapshot/delta").await,
            (200, serde_json::Value::Null)
        );
        let (_, latest) = server.get("/snapshot/latest").await;
        assert_eq!(latest["deltaSnapshots"][0]["snapName"], first);
        assert_eq!(latest["deltaSnapshots"][1]["snapName"], second);
        assert!(
            server
                .text("/metrics")
                .await
                .1
                .contains("etcdbr_snapstore_latest_deltas_total 2")
        );
        let before = etcd.dump().await;
        etcd.stop();

        let ran = lab.initialize("p", &lab.path("volume/new.etcd"), &[]).await;
        assert!(ran.success, "{}", ran.errors);
        let restored = after_loss(&before, 1);
        assert_eq!(
            (&ran.json["result"], &ran.json["revision"]),
            (&"Restored".into(), &restored.1.into())
        );
        let etcd = EtcdServer::start(&lab.path("volume/new.etcd")).await;
        assert!(etcd.dump().await == restored, "{packing}");
        assert_eq!(
            std::fs::read_dir(lab.path("volume")).unwrap().count(),
            1,
            "work files are gone"
        );

        // No delta continues across the skipped revisions. Then the server continues where the store ends,
        // without a new full snapshot.
        drop(server);
        for _ in 0..2 {
            let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
            etcd.put_key("/after", "restore").await;
            server.snapshot("/snapshot/delta").await;
            assert_eq!(
                lab.objects("p").iter().filter(|o| o.starts_with("Full")).count(),
                2
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_changes_are_stored_before_the_period_ends() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    let server = Server::start(
        &lab,
        "p",
        &etcd.endpoint,
        &["--delta-snapshot-memory-limit=1000000"],
    )
    .await;
    for n in 0..12_u8 {
        etcd.put_key("/registry/large", vec![n; 500_000]).await;
    }
    eventually("deltas by size", async || {
        (lab.objects("p").len() > 4).then_some(())
    })
    .await;
    server.get("/snapshot/delta").await;
    let before = etcd.dump().await;
    etcd.stop();
    let ran = lab.initialize("p", &lab.path("volume/new.etcd"), &[]).await;
    assert!(ran.success, "{}", ran.errors);
    assert!(EtcdServer::start(&lab.path("volume/new.etcd")).await.dump().await == after_loss(&before, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_of_deltas_are_granted_again_and_their_keys_still_expire() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.client.grant(77, 3600).await.unwrap();
    etcd.client.txn(vec![op_put("/in-full", "x", 77)]).await.unwrap();
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    // Longer than a slow machine takes to write, to start, and to check; the end of the test awaits the
    // expiry of the lease.
    etcd.client.grant(78, 45).await.unwrap();
    etcd.client.txn(vec![op_put("/in-delta", "x", 78)]).await.unwrap();
    etcd.client
        .txn(vec![op_put("/in-delta-by-old-lease", "x", 77)])
        .await
        .unwrap();
    server.snapshot("/snapshot/delta").await;
    let before = etcd.dump().await;
    etcd.stop();
    assert!(
        lab.initialize("p", &lab.path("volume/new.etcd"), &[])
            .await
            .success
    );
    let etcd = EtcdServer::start(&lab.path("volume/new.etcd")).await;
    assert!(etcd.dump().await == after_loss(&before, 1));
    eventually("the lease expires", async || {
        (etcd.dump().await.0.len() == 2).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sound_data_are_kept_and_old_or_broken_ones_replaced() {
    let lab = Lab::new();
    let data = lab.path("volume/new.etcd");
    assert_eq!(lab.initialize("p", &data, &[]).await.json["result"], "Fresh");
    let refused = lab.initialize("p", &data, &["--require-snapshot"]).await;
    assert!(
        !refused.success && refused.errors.contains("SnapshotMissing: "),
        "{}",
        refused.errors
    );

    let etcd = EtcdServer::start(&data).await;
    etcd.put_key("/a", "1").await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    std::fs::create_dir_all(lab.path("old")).unwrap();
    etcd.put_key("/a", "2").await;
    server.snapshot("/snapshot/delta").await;
    let before = etcd.dump().await;
    etcd.stop();
    drop(server);
    assert_eq!(lab.initialize("p", &data, &[]).await.json["result"], "Kept");

    // Broken: the database is truncated.
    let database = data.join("member/snap/db");
    std::fs::OpenOptions::new()
        .write(true)
        .open(&database)
        .unwrap()
        .set_len(20_000)
        .unwrap();
    let ran = lab.initialize("p", &data, &[]).await;
    assert_eq!(ran.json["result"], "Restored", "{}", ran.errors);
    let etcd = EtcdServer::start(&data).await;
    assert!(etcd.dump().await == after_loss(&before, 1));
    etcd.stop();

    // Old: a volume from before the last snapshots.
    std::fs::remove_dir_all(&data).unwrap();
    EtcdServer::start(&data).await.stop();
    let ran = lab.initialize("p", &data, &[]).await;
    assert_eq!(ran.json["result"], "Restored", "{}", ran.errors);
    assert!(EtcdServer::start(&data).await.dump().await == after_loss(&before, 2));
}

/// A shoot that was moved: etcd starts from its backups, restarts without them, and is never empty.
#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_with_a_past_restarts_and_never_starts_empty() {
    const PAST: &[&str] = &["--require-snapshot"];
    let lab = Lab::new();
    let data = lab.path("volume/new.etcd");
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.put_key("/a", "1").await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    server.snapshot("/snapshot/full").await;
    etcd.stop();
    drop(server);
    let ran = lab.initialize("p", &data, PAST).await;
    assert_eq!(ran.json["result"], "Restored", "{}", ran.errors);

    let etcd = EtcdServer::start(&data).await;
    etcd.put_key("/a", "2").await;
    let before = etcd.dump().await;
    etcd.stop();
    std::fs::remove_dir_all(lab.object("p", "")).unwrap();
    let ran = lab.initialize("p", &data, PAST).await;
    assert_eq!(ran.json["result"], "Kept", "{}", ran.errors);
    let etcd = EtcdServer::start(&data).await;
    assert!(etcd.dump().await == before);
    etcd.stop();

    // The volume is lost while the bucket is empty.
    std::fs::remove_dir_all(&data).unwrap();
    let refused = lab.initialize("p", &data, PAST).await;
    assert!(
        !refused.success && refused.errors.contains("SnapshotMissing: "),
        "{}",
        refused.errors
    );
    assert!(!data.exists(), "an empty data directory would be taken for data");
}

#[tokio::test(flavor = "multi_thread")]
async fn sound_data_need_no_store() {
    let lab = Lab::new();
    let data = lab.path("volume/new.etcd");
    let etcd = EtcdServer::start(&data).await;
    etcd.put_key("/a", "1").await;
    etcd.stop();
    let ran = lab
        .initialize("p", &data, &["--store-endpoint-override=http://127.0.0.1:1"])
        .await;
    assert!(ran.success, "{}", ran.errors);
    assert_eq!(ran.json["result"], "Kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn history_that_etcd_compacted_away_is_replaced_by_a_full_snapshot() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    drop(Server::start(&lab, "p", &etcd.endpoint, &[]).await);
    for n in 0..10 {
        etcd.put_key("/a", n.to_string()).await;
    }
    // The newest change is a deletion, and compaction removes it: the file no longer shows its revision.
    let revision = etcd.delete("/a").await;
    etcd.compact(revision);
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    eventually("a second full snapshot", async || {
        (lab.objects("p").len() == 2).then_some(())
    })
    .await;
    eventually("it goes on", async || {
        (server.get("/snapshot/delta").await.0 == 200).then_some(())
    })
    .await;
    let before = etcd.dump().await;
    etcd.stop();
    let ran = lab.initialize("p", &lab.path("volume/new.etcd"), &[]).await;
    assert!(ran.success, "{}", ran.errors);
    assert!(EtcdServer::start(&lab.path("volume/new.etcd")).await.dump().await == after_loss(&before, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_initialize_that_is_killed_leaves_nothing_that_the_next_one_minds() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    write_some(&etcd, 1).await;
    server.snapshot("/snapshot/delta").await;
    let before = etcd.dump().await;
    etcd.stop();
    let data = lab.path("volume/new.etcd");
    for pause in [10, 60, 150, 300, 500, 800] {
        let mut process = binary("initialize", &lab.initialize_flags("p", &data, &[]));
        // Including its child processes, as when a container ends.
        let mut process = process.process_group(0).spawn().unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
        let group = format!("-{}", process.id());
        let killed = std::process::Command::new("kill")
            .args(["-9", "--", &group])
            .status();
        assert!(killed.unwrap().success());
        process.wait().unwrap();
        // Either not there yet, or whole.
        if data.exists() {
            assert_eq!(lab.initialize("p", &data, &[]).await.json["result"], "Kept");
        }
    }
    let ran = lab.initialize("p", &data, &[]).await;
    assert!(ran.success, "{}", ran.errors);
    let restored = EtcdServer::start(&data).await.dump().await;
    // A kill between the note and the rename counts as a loss.
    let count = (restored.1 - before.1) / LEFT_OUT_WITHIN_EPOCH;
    assert!(count >= 1 && restored == after_loss(&before, count));
    assert_eq!(
        std::fs::read_dir(lab.path("volume")).unwrap().count(),
        1,
        "work files are gone"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_on_old_data_takes_no_snapshot_not_even_a_final_one() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    for n in 0..5 {
        etcd.put_key("/a", n.to_string()).await;
    }
    drop(Server::start(&lab, "p", &etcd.endpoint, &[]).await);
    let objects = lab.objects("p");
    let young = EtcdServer::start(&lab.path("young")).await;
    let server = Server::spawn(&lab, "p", &young.endpoint, &[]).await;
    for path in ["/snapshot/full?final=true", "/snapshot/full", "/snapshot/delta"] {
        assert_ne!(server.get(path).await.0, 200, "{path}");
    }
    let (_, health) = server.get("/healthz").await;
    assert!(
        health["error"].as_str().unwrap().contains("runs on old data"),
        "{health}"
    );
    assert_eq!(lab.objects("p"), objects);
}
