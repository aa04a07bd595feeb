//! A volume that is lost within an ownership epoch: no revision stands for two changes, and the loss is
//! reported.

use crate::lab::{EtcdServer, Lab, Server, after_loss};

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_lost_within_an_epoch_gives_no_revision_twice_and_the_loss_is_reported() {
    let lab = Lab::new();
    let first = EtcdServer::start(&lab.path("first/new.etcd")).await;
    let server = Server::start(&lab, "p", &first.endpoint, &[]).await;
    first.put_key("/kept", "in a snapshot").await;
    server.snapshot("/snapshot/delta").await;
    drop(server);
    let saved = first.dump().await;
    let mut lost = first.put_key("/kept", "in none").await;
    first.stop();
    // The second volume is lost before any snapshot was taken.
    for losses in [1, 2] {
        let volume = lab.path(&format!("volume-{losses}/new.etcd"));
        let ran = lab.initialize("p", &volume, &[]).await;
        let report = &ran.json["volumeLoss"];
        let goes_on = after_loss(&saved, losses);
        assert_eq!(report["epoch"], 1, "{ran:?}");
        assert_eq!(
            (&report["lastRevision"], &report["revision"]),
            (&saved.1.into(), &goes_on.1.into()),
            "{ran:?}"
        );
        assert!(
            report["saved"].is_string() && report["restored"].is_string(),
            "{ran:?}"
        );
        let etcd = EtcdServer::start(&volume).await;
        assert!(etcd.dump().await == goes_on);
        assert!(etcd.has_compacted(lost).await);
        let next = etcd.put_key("/kept", "again in none").await;
        assert!(next > lost);
        lost = next;
        etcd.stop();
        // A restart loses no data.
        let kept = lab.initialize("p", &volume, &[]).await;
        assert!(
            kept.json["result"] == "Kept" && kept.json["volumeLoss"].is_null(),
            "{kept:?}"
        );
    }
}

/// The chain of the first epoch is complete, and shows no sign of the changes that the second epoch has
/// acknowledged since.
#[tokio::test(flavor = "multi_thread")]
async fn a_volume_lost_before_the_first_snapshot_of_an_epoch_is_a_loss_and_the_begin_is_none() {
    let lab = Lab::new();
    let source = EtcdServer::start(&lab.path("source/new.etcd")).await;
    let server = Server::start(&lab, "a", &source.endpoint, &[]).await;
    source.put_key("/kept", "at a").await;
    server.snapshot("/snapshot/full?final=true").await;
    let saved = source.dump().await;
    let end = format!("--required-revision={}", saved.1);
    let copied = lab.copy("a", "b", &["--ownership-epoch=2", &end]).await;
    assert!(copied.success, "{}", copied.errors);

    let volume = lab.path("b/new.etcd");
    let begun = lab.initialize("b", &volume, &["--ownership-epoch=2"]).await;
    assert_eq!(begun.json["revision"], saved.1, "{begun:?}");
    assert!(begun.json["volumeLoss"].is_null(), "{begun:?}");
    let etcd = EtcdServer::start(&volume).await;
    let lost = etcd.put_key("/kept", "at b, in no snapshot").await;
    etcd.stop();
    std::fs::remove_dir_all(&volume).unwrap();
    let again = lab.initialize("b", &volume, &["--ownership-epoch=2"]).await;
    assert_eq!(again.json["volumeLoss"]["epoch"], 2, "{again:?}");
    let restored = EtcdServer::start(&volume).await;
    assert!(restored.dump().await == after_loss(&saved, 1));
    assert!(restored.put_key("/kept", "at b").await > lost);
}

/// A cancelled move: the volume continues in the next epoch of the same store, and is lost before the first
/// snapshot.
#[tokio::test(flavor = "multi_thread")]
async fn a_kept_volume_that_is_lost_before_the_first_snapshot_of_its_epoch_is_a_loss() {
    let lab = Lab::new();
    let volume = lab.path("volume/new.etcd");
    let etcd = EtcdServer::start(&volume).await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    etcd.put_key("/kept", "x").await;
    server.snapshot("/snapshot/full?final=true").await;
    drop(server);
    etcd.stop();
    let holding = serde_json::json!({"epoch": 2, "seed": "a", "state": "Owned", "origin": 1});
    lab.hold("p", holding);
    let kept = lab.initialize("p", &volume, &["--ownership-epoch=2"]).await;
    assert_eq!(kept.json["result"], "Kept", "{kept:?}");
    std::fs::remove_dir_all(&volume).unwrap();
    let again = lab.initialize("p", &volume, &["--ownership-epoch=2"]).await;
    assert_eq!(again.json["volumeLoss"]["epoch"], 2, "{again:?}");
}
