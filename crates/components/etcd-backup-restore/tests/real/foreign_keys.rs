//! Keys that a user wrote into the bucket, and that are not paths of the library, block no operation.

use crate::lab::{EtcdServer, KeyBucket, Lab, Server};

/// An empty segment, dot segments, control characters, a folder of the console.
const FOREIGN: [&str; 8] = [
    "p/v2//Full-00000000-00009999-1700000000",
    "p/v2/./Full-00000000-00009999-1700000000",
    "p/v2/../x",
    "p/v2/a\u{1}b",
    "p/v2/ + %2F&<x>",
    "p/v2/",
    "p/epochs//2/x",
    "p/epochs/2//Full-00000000-00009999-1700000000",
];

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_a_user_do_not_stop_snapshots_copies_and_restores() {
    let lab = Lab::new();
    let bucket = KeyBucket::start(&lab).await;
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.put_key("/a", "1").await;
    for key in FOREIGN {
        bucket.put_key(key, "x").await;
    }
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    etcd.put_key("/a", "2").await;
    server.snapshot("/snapshot/delta").await;
    let last = server.snapshot("/snapshot/full?final=true").await;
    drop(server);
    let before = etcd.dump().await;
    etcd.stop();

    let copied = lab.copy("p", "q", &["--ownership-epoch=2"]).await;
    assert!(copied.success, "{}", copied.errors);
    assert!(
        copied
            .errors
            .contains("the folder holds objects that are not snapshots"),
        "the foreign objects are reported: {}",
        copied.errors
    );
    for (prefix, epoch) in [("p", "1"), ("q", "2")] {
        let data = lab.path(&format!("volume-{prefix}/new.etcd"));
        let epoch = format!("--ownership-epoch={epoch}");
        let ran = lab.initialize(prefix, &data, &[&epoch]).await;
        assert!(ran.success, "{prefix}: {}", ran.errors);
        let restored = EtcdServer::start(&data).await;
        // Revisions of a new epoch are above all former revisions.
        assert!(restored.dump().await.0 == before.0, "{prefix}");
        restored.stop();
    }
    let names = names(&lab, "p").await;
    assert!(names.contains(&last), "{names:?}");
}

/// An object that looks like the newest snapshot must not be skipped: an older chain would lose writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_in_the_folder_that_looks_like_a_snapshot_is_never_skipped() {
    let lab = Lab::new();
    let bucket = KeyBucket::start(&lab).await;
    bucket
        .put_key("p/v2/Full-00000000-00000007-1700000000", "x")
        .await;
    assert_eq!(names(&lab, "p").await.len(), 1);
    bucket
        .put_key("p/v2/Full-00000000-00009999-1700000000\u{1}", "x")
        .await;
    let data = lab.path("volume/new.etcd");
    let ran = lab.initialize("p", &data, &[]).await;
    assert!(
        !ran.success
            && ran
                .errors
                .contains("SnapshotUnparsable: Full-00000000-00009999-1700000000\\\\u{1} looks"),
        "{}",
        ran.errors
    );
    let source = lab.store("p").leaving_aside();
    assert_eq!(source.everything().await.unwrap().len(), 1);
    assert_eq!(source.left_aside(), ["Full-00000000-00009999-1700000000\u{1}"]);
}

async fn names(lab: &Lab, prefix: &str) -> Vec<String> {
    let found = lab.store(prefix).everything().await.unwrap();
    found.iter().map(ToString::to_string).collect()
}
