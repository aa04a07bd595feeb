//! Restored deltas reproduce the original history, etcd continues on it, and the database has free space.
//!
//! `CHANGES=60000 cargo test -p etcd-backup-restore --test real deltas -- --nocapture` restores more changes
//! and prints the duration. The duration is not asserted: it depends on the load of the machine.

use crate::lab::{EtcdServer, Lab, Server, after_loss, delete, op_put};
use futures::StreamExt;
use std::time::Instant;

/// Single changes that overwrite and delete each other, some revisions with several keys, and large values.
async fn write_changes(etcd: &EtcdServer, numbers: std::ops::Range<usize>) {
    let changes = futures::stream::iter(numbers).map(async |n| {
        let key = format!("/registry/leases/{}", n % 50);
        let operations = match n % 10 {
            3 => vec![op_put("/registry/short", "lived", 0)],
            4 => vec![delete("/registry/short")],
            0 => vec![delete(&key)],
            7 => (0..5)
                .map(|m| op_put(&format!("{key}/{m}"), vec![0; 400], 0))
                .collect(),
            _ if n % 500 == 1 => vec![op_put(&key, vec![7; 300_000], 0)],
            _ => vec![op_put(&key, vec![0; 400], 0)],
        };
        etcd.client.txn(operations).await.unwrap();
    });
    changes.buffer_unordered(64).collect::<Vec<()>>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_with_deltas_comes_to_the_very_history_that_was_and_etcd_goes_on_with_it() {
    let count = std::env::var("CHANGES").map_or(6_000, |count| count.parse().unwrap());
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    // The database to which deltas are added: etcd's initial database, or a tree of several levels.
    for (prefix, before) in [("empty", 0), ("grown", count)] {
        write_changes(&etcd, 0..before).await;
        let server = Server::start(&lab, prefix, &etcd.endpoint, &[]).await;
        for part in 0..3 {
            write_changes(&etcd, part * count / 3..(part + 1) * count / 3).await;
            server.snapshot("/snapshot/delta").await;
        }
        let (wanted, hash) = (etcd.dump().await, etcd.history());
        drop(server);
        // A planned move: every change is in the chain, so no revisions are skipped.
        let moved = format!("moved-{prefix}");
        let end = format!("--required-revision={}", wanted.1);
        let copied = lab.copy(prefix, &moved, &["--ownership-epoch=2", &end]).await;
        assert!(copied.success, "{}", copied.errors);
        let volume = lab.path(prefix).join("new.etcd");
        let begun = Instant::now();
        let ran = lab.initialize(&moved, &volume, &["--ownership-epoch=2"]).await;
        println!(
            "{prefix}: {count} changes in {:?}, {} KiB",
            begun.elapsed(),
            ran.peak
        );
        assert_eq!(ran.json["result"], "Restored", "{}", ran.errors);
        assert!(
            ran.json["snapshots"].as_array().unwrap().len() > 3,
            "{:?}",
            ran.json
        );
        let restored = EtcdServer::start(&volume).await;
        assert!(restored.dump().await == wanted, "{prefix}");
        assert_eq!(restored.history(), hash, "{prefix}");
        // etcd reads the restored data and continues to write: its own tool finds the result sound.
        write_changes(&restored, 0..1_000).await;
        restored.compact(wanted.1 + 500);
        restored.client.defragment().await.unwrap();
        write_changes(&restored, 0..1_000).await;
        let wanted = restored.dump().await;
        restored.stop();
        let ran = lab.initialize(&moved, &volume, &["--ownership-epoch=2"]).await;
        assert_eq!(ran.json["result"], "Kept", "{}", ran.errors);
        assert!(
            EtcdServer::start(&volume).await.dump().await == wanted,
            "{prefix}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn overwritten_values_do_not_fill_the_quota_of_the_etcd_that_follows() {
    const QUOTA: u64 = 16 << 20;
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    for n in 0..100_u8 {
        etcd.put_key("/registry/large", vec![n; 1 << 20]).await;
    }
    // The newest change is a deletion: compaction removes every trace of it.
    etcd.put_key("/registry/short", "lived").await;
    etcd.delete("/registry/short").await;
    server.snapshot("/snapshot/delta").await;
    let before = etcd.dump().await;
    etcd.stop();
    let volume = lab.path("volume/new.etcd");
    let flag = format!("--embedded-etcd-quota-bytes={QUOTA}");
    let ran = lab.initialize("p", &volume, &[&flag]).await;
    assert_eq!(ran.json["result"], "Restored", "{}", ran.errors);
    let size = std::fs::metadata(volume.join("member/snap/db")).unwrap().len();
    assert!(size < QUOTA, "{size}");
    assert!(EtcdServer::start(&volume).await.dump().await == after_loss(&before, 1));
}
