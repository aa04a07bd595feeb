//! Copies are exact, may be repeated and interrupted, and wait for the source.

use crate::lab::{EtcdServer, Lab, Server, after_loss, binary, eventually, free_port, noise};
use etcd_backup_restore::seal_note::SealNote;
use std::fs;
use std::process::Stdio;

async fn source(lab: &Lab) -> (EtcdServer, Server) {
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    let noise = noise(1, 2_000_000);
    for n in 0..8 {
        etcd.put_key(&format!("/large/{n}"), noise.clone()).await;
    }
    let server = Server::start(lab, "from", &etcd.endpoint, &["--compression-policy=none"]).await;
    for n in 0..5_u8 {
        etcd.put_key(&format!("/delta/{n}"), vec![n; 5000]).await;
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

/// R17-28: if the final snapshot exists, no other object is copied.
#[tokio::test(flavor = "multi_thread")]
async fn the_final_snapshot_is_waited_for_and_is_enough() {
    let lab = Lab::new();
    let (etcd, server) = source(&lab).await;
    let flags = [
        "--wait-for-final-snapshot",
        "--wait-for-final-snapshot-timeout=60s",
    ];
    let (ran, name) = tokio::join!(lab.copy("from", "to", &flags), async {
        // After the first listing and before the second listing.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        server.snapshot("/snapshot/full?final=true").await
    });
    assert!(ran.success, "{}", ran.errors);
    assert_eq!(
        (&ran.json["finalSnapshot"], &ran.json["waitTimedOut"]),
        (&true.into(), &false.into())
    );
    assert_ne!(name.strip_suffix(".final"), None, "{name}");
    let copied = ran.json["copied"].as_array().unwrap();
    assert_eq!(copied.last().and_then(|last| last.as_str()), Some(name.as_str()));
    assert!(lab.objects("to").contains(&name));
    // The object keeps its name, so a second copy finds it and copies no other object.
    let again = lab.copy("from", "to", &flags).await;
    assert_eq!(again.json["skipped"], serde_json::json!([name]), "{}", again.json);
    assert_eq!(again.json["copied"], serde_json::json!([]), "{}", again.json);
    // If the final snapshot exists from the start, the copy transfers only the final snapshot.
    let enough = lab.copy("from", "alone", &flags).await;
    assert_eq!(
        enough.json["copied"],
        serde_json::json!([name]),
        "{}",
        enough.json
    );
    let before = etcd.dump().await;
    etcd.stop();
    assert!(
        lab.initialize("alone", &lab.path("volume/new.etcd"), &[])
            .await
            .success
    );
    assert!(EtcdServer::start(&lab.path("volume/new.etcd")).await.dump().await == after_loss(&before, 1));
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

/// R17-26, R17-27: a waiting copy has transferred the objects that exist by then, and does not miss late
/// objects.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_is_copied_while_the_final_snapshot_is_waited_for() {
    let lab = Lab::new();
    let (etcd, server) = source(&lab).await;
    let early = lab.objects("from");
    let flags = [
        "--wait-for-final-snapshot",
        "--wait-for-final-snapshot-timeout=60s",
    ];
    let (ran, late) = tokio::join!(lab.copy("from", "to", &flags), async {
        copied_ahead(&lab, &early).await;
        etcd.put_key("late", "a change").await;
        server.snapshot("/snapshot/delta").await
    });
    assert!(ran.success, "{}", ran.errors);
    assert_eq!(ran.json["waitTimedOut"], true, "{}", ran.json);
    assert!(!early.contains(&late), "{late}");
    assert_eq!(lab.objects("to"), lab.objects("from"));
    assert_eq!(
        ran.json["skipped"],
        serde_json::json!([]),
        "nothing is read twice"
    );
    assert_eq!(ran.json["copied"].as_array().unwrap().len(), early.len() + 1);
}

/// etcd-druid asks for this while the copy runs, and the Shoot reports the bytes.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_copy_reports_the_bytes_that_it_has_brought() {
    let lab = Lab::new();
    let (_etcd, server) = source(&lab).await;
    let all = lab.objects("from");
    let sizes = all
        .iter()
        .map(|name| fs::metadata(lab.object("from", name)).unwrap().len());
    let bytes: u64 = sizes.sum();
    let address = format!("127.0.0.1:{}", free_port());
    let listens = format!("--listen-address={address}");
    let flags = [
        "--wait-for-final-snapshot",
        "--wait-for-final-snapshot-timeout=60s",
        &listens,
    ];
    let (ran, reported) = tokio::join!(lab.copy("from", "to", &flags), async {
        let whole = serde_json::json!({"copiedBytes": bytes, "totalBytes": bytes});
        let asked = || async {
            let answer = reqwest::get(format!("http://{address}/progress")).await;
            let answer = answer.map_err(|error| error.to_string())?;
            let answer = answer.text().await.map_err(|error| error.to_string())?;
            let answer: serde_json::Value =
                serde_json::from_str(&answer).map_err(|error| error.to_string())?;
            if answer == whole {
                Ok(())
            } else {
                Err(format!("{answer}, not {whole}"))
            }
        };
        let limit = std::time::Duration::from_secs(45);
        let reported = testkit::eventually("the whole copy is reported", limit, asked).await;
        // The copy need not wait longer.
        server.snapshot("/snapshot/full?final=true").await;
        reported
    });
    reported.unwrap();
    assert!(ran.success, "{}", ran.errors);
}

async fn copied_ahead(lab: &Lab, early: &[String]) {
    let ahead = || async {
        if lab.objects("to") == early {
            Ok(())
        } else {
            Err("not yet")
        }
    };
    let limit = std::time::Duration::from_secs(45);
    testkit::eventually("a copy of what is there", limit, ahead)
        .await
        .unwrap();
}

/// R17-27: once the final snapshot exists, the objects that were copied ahead are unneeded.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_copied_ahead_of_the_final_snapshot_is_collected() {
    let lab = Lab::new();
    let (etcd, server) = source(&lab).await;
    let early = lab.objects("from");
    let flags = [
        "--ownership-epoch=2",
        "--wait-for-final-snapshot",
        "--wait-for-final-snapshot-timeout=60s",
    ];
    let (ran, end) = tokio::join!(lab.copy("from", "to", &flags), async {
        copied_ahead(&lab, &early).await;
        let revision = etcd.put_key("late", "a change").await;
        let end = server.snapshot("/snapshot/full?final=true").await;
        let (epoch, beat) = (1, 0);
        let note = SealNote {
            epoch,
            revision,
            beat,
        };
        note.write(&lab.store("from")).await.unwrap();
        end
    });
    assert_eq!(ran.json["finalSnapshot"], true, "{}", ran.errors);
    let volume = lab.path("volume/new.etcd");
    let ran = lab.initialize("to", &volume, &["--ownership-epoch=2"]).await;
    assert!(ran.success, "{}", ran.errors);
    let restored = EtcdServer::start(&volume).await;
    let flags = [
        "--ownership-epoch=2",
        "--garbage-collection-period=1s",
        "--max-backups=1",
    ];
    let server = Server::start(&lab, "to", &restored.endpoint, &flags).await;
    restored.put_key("/later", "in epoch 2").await;
    server.snapshot("/snapshot/full").await;
    eventually("collection", async || {
        let left = lab.objects("to");
        (!early.iter().any(|name| left.contains(name))).then_some(())
    })
    .await;
    assert!(lab.objects("to").contains(&end), "a final snapshot stays");
    let now = restored.dump().await;
    let other = lab.path("other/new.etcd");
    let ran = lab.initialize("to", &other, &["--ownership-epoch=2"]).await;
    assert!(ran.success, "{}", ran.errors);
    assert!(EtcdServer::start(&other).await.dump().await == after_loss(&now, 1));
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
        etcd.put_key("/a", n.to_string()).await;
        last = server.snapshot("/snapshot/full").await;
    }
    // A delta may lie between them: changes from before the server began a new chain are stored at once.
    eventually("collection", async || {
        let objects = lab.objects("from");
        (objects.iter().filter(|o| o.starts_with("Full")).count() == 2).then_some(())
    })
    .await;
    assert!(lab.objects("from").contains(&last));
}
