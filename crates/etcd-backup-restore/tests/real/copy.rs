//! Copies are exact, may be repeated and interrupted, and wait for the source.

use crate::lab::{EtcdServer, Lab, Server, binary, eventually, noise};
use std::fs;
use std::process::Stdio;

async fn source(lab: &Lab) -> (EtcdServer, Server) {
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    let noise = noise(1, 2_000_000);
    for n in 0..8 {
        etcd.put(&format!("/large/{n}"), noise.clone()).await;
    }
    let server = Server::start(lab, "from", &etcd.endpoint, &["--compression-policy=none"]).await;
    for n in 0..5_u8 {
        etcd.put(&format!("/delta/{n}"), vec![n; 5000]).await;
        server.snapshot("/snapshot/delta").await;
    }
    (etcd, server)
}

fn assert_equal(lab: &Lab) {
    let objects = lab.objects("to");
    for name in &objects {
        assert!(
            fs::read(lab.object("from", name)).unwrap() == fs::read(lab.object("to", name)).unwrap(),
            "{name}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_is_copied_once_and_broken_targets_are_repaired() {
    let lab = Lab::new();
    let (_etcd, _server) = source(&lab).await;
    let ran = lab.copy("from", "to", &[]).await;
    assert!(ran.success, "{}", ran.errors);
    assert_eq!(ran.json["copied"].as_array().unwrap().len(), 6, "{}", ran.json);
    assert_eq!(lab.objects("to"), lab.objects("from"));
    assert_equal(&lab);
    let again = lab.copy("from", "to", &[]).await;
    assert_eq!(
        again.json["skipped"].as_array().unwrap().len(),
        6,
        "{}",
        again.json
    );

    // Of the same size and broken: found and copied again.
    let name = lab.objects("to").remove(0);
    let mut content = fs::read(lab.object("to", &name)).unwrap();
    content[4321] ^= 1;
    fs::write(lab.object("to", &name), content).unwrap();
    let repaired = lab.copy("from", "to", &[]).await;
    assert_eq!(
        repaired.json["copied"],
        serde_json::json!([name]),
        "{}",
        repaired.errors
    );
    assert_equal(&lab);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_copy_leaves_no_half_object_and_goes_on() {
    let lab = Lab::new();
    let (_etcd, _server) = source(&lab).await;
    for pause in [20, 60, 120, 250] {
        let mut process = binary("copy", &lab.copy_flags("from", "to", &[]))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
        process.kill().unwrap();
        process.wait().unwrap();
        assert_equal(&lab);
    }
    let ran = lab.copy("from", "to", &[]).await;
    assert!(ran.success, "{}", ran.errors);
    assert_eq!(lab.objects("to"), lab.objects("from"));
    assert_equal(&lab);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_source_object_never_appears_in_the_target() {
    let lab = Lab::new();
    let (_etcd, _server) = source(&lab).await;
    let name = lab.objects("from").remove(0);
    let path = lab.object("from", &name);
    let intact = fs::read(&path).unwrap();
    let mut content = intact.clone();
    content[9_999_999] ^= 1;
    fs::write(&path, content).unwrap();
    let ran = lab.copy("from", "to", &[]).await;
    assert!(
        !ran.success && ran.errors.contains("SnapshotCorrupt: "),
        "{}",
        ran.errors
    );
    assert_eq!(lab.objects("to"), Vec::<String>::new());
    fs::write(&path, intact).unwrap();
    assert!(lab.copy("from", "to", &[]).await.success);
    assert_equal(&lab);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_final_snapshot_is_waited_for_and_is_enough() {
    let lab = Lab::new();
    let (etcd, server) = source(&lab).await;
    let flags = [
        "--wait-for-final-snapshot",
        "--wait-for-final-snapshot-timeout=60s",
    ];
    let (ran, name) = tokio::join!(lab.copy("from", "to", &flags), async {
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        server.snapshot("/snapshot/full?final=true").await
    });
    assert!(ran.success, "{}", ran.errors);
    assert_eq!(
        (&ran.json["finalSnapshot"], &ran.json["waitTimedOut"]),
        (&true.into(), &false.into())
    );
    assert_ne!(name.strip_suffix(".final"), None, "{name}");
    assert_eq!(lab.objects("to"), std::slice::from_ref(&name));
    // It keeps its name, so a second copy knows it.
    let again = lab.copy("from", "to", &flags).await;
    assert_eq!(again.json["skipped"], serde_json::json!([name]), "{}", again.json);
    assert_eq!(again.json["copied"], serde_json::json!([]), "{}", again.json);
    let before = etcd.dump().await;
    etcd.stop();
    assert!(
        lab.initialize("to", &lab.path("volume/new.etcd"), &[])
            .await
            .success
    );
    assert!(EtcdServer::start(&lab.path("volume/new.etcd")).await.dump().await == before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_final_snapshot_that_never_comes_is_not_waited_for_longer_than_told() {
    let lab = Lab::new();
    let (_etcd, _server) = source(&lab).await;
    let flags = [
        "--wait-for-final-snapshot=true",
        "--wait-for-final-snapshot-timeout=5s",
    ];
    let ran = lab.copy("from", "to", &flags).await;
    assert!(ran.success, "{}", ran.errors);
    assert_eq!(
        (&ran.json["finalSnapshot"], &ran.json["waitTimedOut"]),
        (&false.into(), &true.into())
    );
    assert_eq!(lab.objects("to"), lab.objects("from"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_source_is_an_error_unless_allowed() {
    let lab = Lab::new();
    let ran = lab.copy("from", "to", &[]).await;
    assert!(
        !ran.success && ran.errors.contains("SnapshotMissing: "),
        "{}",
        ran.errors
    );
    assert!(lab.copy("from", "to", &["--allow-empty-source"]).await.success);
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_collection_keeps_the_newest_chains() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    let flags = ["--garbage-collection-period=1s", "--max-backups=2"];
    let server = Server::start(&lab, "from", &etcd.endpoint, &flags).await;
    let mut last = String::new();
    for n in 0..5 {
        etcd.put("/a", n.to_string()).await;
        last = server.snapshot("/snapshot/full").await;
    }
    // A delta may lie between them: what was written before the server has begun a new chain is stored at once.
    eventually("collection", async || {
        let objects = lab.objects("from");
        (objects.iter().filter(|o| o.starts_with("Full")).count() == 2).then_some(())
    })
    .await;
    assert!(lab.objects("from").contains(&last));
}
