//! A follower: its etcd has the history of the source, whatever clients write and whichever process stops.

use crate::http2_gate::SecureEtcd;
use crate::lab::{EtcdServer, Follower, Lab, Server, delete, eventually, noise, op_put, set_tls_provider};
use etcd_backup_restore::etcd::messages as m;
use futures::StreamExt;

/// A lease that stays, and a lease that ends.
const LEASES: [i64; 2] = [0x1234_5678, 77];

fn op_put_bytes(key: &[u8], value: Vec<u8>, lease: i64) -> m::RequestOp {
    let request = m::PutRequest {
        key: key.to_vec().into(),
        value: value.into(),
        lease,
    };
    m::RequestOp {
        operation: Some(m::Change::Put(request)),
    }
}

fn nested(operation: m::RequestOp) -> m::RequestOp {
    let txn = m::TxnRequest {
        success: vec![operation],
        ..m::TxnRequest::default()
    };
    m::RequestOp {
        operation: Some(m::Change::Txn(txn)),
    }
}

/// The operations of a transaction: keys of any bytes, empty and large values, several keys in a revision.
/// Keys are deleted and created again, and a revision puts and deletes a key.
fn operations(number: usize) -> Vec<m::RequestOp> {
    let key = format!("/registry/leases/{}", number % 40);
    match number % 12 {
        0 => vec![delete(&key)],
        1 => vec![op_put_bytes(&[0], noise(number as u64 + 1, 9), 0)],
        2 => vec![op_put_bytes(&[0xff, 0, 0xc3, 0x28], Vec::new(), 0)],
        3 => vec![op_put("/short", "lived", 0)],
        4 => vec![delete("/short")],
        5 => (0..7)
            .map(|part| op_put(&format!("{key}/{part}"), vec![0; 400], 0))
            .collect(),
        6 => (0..7).map(|part| delete(&format!("{key}/{part}"))).collect(),
        7 => vec![nested(op_put("/moment", "x", 0)), nested(delete("/moment"))],
        8 => vec![
            nested(op_put(&key, "x", 0)),
            nested(delete(&key)),
            nested(op_put(&format!("{key}/b"), "x", LEASES[0])),
        ],
        9 => vec![op_put(&key, "leased", LEASES[number % 2])],
        10 if number.is_multiple_of(5) => vec![op_put(&key, vec![7; 300_000], 0)],
        _ => vec![op_put(&key, vec![0; 400], 0)],
    }
}

async fn grant_leases(etcd: &EtcdServer) {
    etcd.client.grant(LEASES[0], 3600).await.unwrap();
    etcd.client.grant(LEASES[1], 599).await.unwrap();
}

/// Writes from many clients; returns the last revision.
async fn write(etcd: &EtcdServer, numbers: std::ops::Range<usize>) -> i64 {
    let changes =
        futures::stream::iter(numbers).map(async |number| etcd.client.txn(operations(number)).await.unwrap());
    let revisions: Vec<_> = changes.buffer_unordered(64).collect().await;
    revisions.into_iter().max().unwrap()
}

pub async fn pair(lab: &Lab) -> [EtcdServer; 2] {
    let start = async |name: &str| EtcdServer::start(&lab.path(name)).await;
    [start("source").await, start("local").await]
}

/// Compares keys with all counters, and etcd's own hash over the whole history.
pub async fn assert_equal(source: &EtcdServer, local: &EtcdServer) {
    assert!(source.dump().await == local.dump().await);
    assert_eq!(source.history(), local.history());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_has_the_very_history_of_its_source() {
    let lab = Lab::new();
    let [source, local] = pair(&lab).await;
    grant_leases(&source).await;
    write(&source, 0..600).await;
    let follower = Follower::start(&lab, "p", &source.endpoint, &local, &[]);
    let revision = write(&source, 600..3000).await;
    let status = follower.reaches(revision).await;
    assert_eq!(status["phase"], "Following", "{status}");
    assert_eq!(status["digest"].as_str().unwrap().len(), 64, "{status}");
    assert_equal(&source, &local).await;
    // A compaction while changes arrive.
    let compacted = revision - 100;
    source.compact(compacted);
    let revision = write(&source, 3000..4000).await;
    follower.reaches(revision).await;
    follower.compacts(compacted).await;
    assert_equal(&source, &local).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_ends_at_the_source_alone() {
    let lab = Lab::new();
    let [source, local] = pair(&lab).await;
    grant_leases(&source).await;
    let follower = Follower::start(&lab, "p", &source.endpoint, &local, &[]);
    for (key, lease) in [
        ("/long", LEASES[0]),
        ("/short", LEASES[1]),
        ("/short/b", LEASES[1]),
    ] {
        source.client.txn(vec![op_put(key, "x", lease)]).await.unwrap();
    }
    follower.reaches(source.client.revision().await.unwrap()).await;
    assert_eq!(local.client.granted_ttl(LEASES[0]).await.unwrap(), Some(3600));
    // A follower that stops for minutes must not lose the key.
    assert_eq!(local.client.granted_ttl(LEASES[1]).await.unwrap(), Some(600));
    assert_equal(&source, &local).await;
    // Both keys are deleted in a single revision.
    source.client.revoke(LEASES[1]).await.unwrap();
    follower.reaches(source.client.revision().await.unwrap()).await;
    assert_equal(&source, &local).await;
    eventually("the empty lease is revoked", async || {
        (local.client.leases().await.unwrap() == [LEASES[0]]).then_some(())
    })
    .await;
    // The number of a former lease can be granted again.
    source.client.grant(LEASES[1], 900).await.unwrap();
    source
        .client
        .txn(vec![op_put("/again", "x", LEASES[1])])
        .await
        .unwrap();
    follower.reaches(source.client.revision().await.unwrap()).await;
    assert_equal(&source, &local).await;
    // A client of the source may be about to use a lease that has no key.
    source.client.grant(99, 3600).await.unwrap();
    eventually("the lease without a key is granted", async || {
        local.client.granted_ttl(99).await.unwrap()
    })
    .await;
    // A lease that ends by its time.
    source.client.grant(5, 15).await.unwrap();
    let before = source.client.txn(vec![op_put("/ends", "x", 5)]).await.unwrap();
    eventually("the lease ends", async || {
        (source.client.revision().await.unwrap() > before).then_some(())
    })
    .await;
    follower.reaches(before + 1).await;
    assert_equal(&source, &local).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_catches_up_from_deltas_after_a_compaction() {
    let lab = Lab::new();
    let [source, local] = pair(&lab).await;
    grant_leases(&source).await;
    let server = Server::start(&lab, "p", &source.endpoint, &[]).await;
    for part in 0..3 {
        write(&source, part * 500..(part + 1) * 500).await;
        server.snapshot("/snapshot/delta").await;
    }
    let stored = source.client.revision().await.unwrap();
    source.compact(stored - 10);
    let revision = write(&source, 1500..1800).await;
    let until = format!("--until-revision={revision}");
    // Near enough for a watch, which the compaction refuses.
    let ran = Follower::run(&lab, "p", &source, &local, &[&until]).await;
    assert!(ran.success, "{}", ran.errors);
    assert_eq!(ran.json["revision"], revision, "{}", ran.errors);
    assert!(ran.errors.contains("going on from its deltas"), "{}", ran.errors);
    local.client.compact(stored - 10).await.unwrap();
    assert_equal(&source, &local).await;
    // Too far for a watch.
    let other = EtcdServer::start(&lab.path("other")).await;
    let more = [&*until, "--max-watched-revisions=400"];
    let ran = Follower::run(&lab, "p", &source, &other, &more).await;
    assert!(ran.success, "{}", ran.errors);
    assert!(!ran.errors.contains("going on from its deltas"), "{}", ran.errors);
    other.client.compact(stored - 10).await.unwrap();
    assert_equal(&source, &other).await;
    // No delta continues the local etcd.
    let late = EtcdServer::start(&lab.path("late")).await;
    let first = lab
        .objects("p")
        .into_iter()
        .find(|name| name.starts_with("Incr-"))
        .unwrap();
    std::fs::remove_file(lab.object("p", &first)).unwrap();
    let ran = Follower::run(&lab, "p", &source, &late, &[&until, "--delta-timeout=1s"]).await;
    assert!(!ran.success, "{}", ran.json);
    assert!(
        ran.errors.contains("SnapshotMissing: the source is at revision"),
        "{}",
        ran.errors
    );
    assert_eq!(late.client.revision().await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_are_killed_leave_no_difference() {
    let lab = Lab::new();
    let [source, mut local] = pair(&lab).await;
    grant_leases(&source).await;
    let mut revision = 0;
    for round in 0..4 {
        let follower = Follower::start(&lab, "p", &source.endpoint, &local, &[]);
        let (written, ()) = tokio::join!(write(&source, round * 800..(round + 1) * 800), async {
            let reached = revision + 50;
            follower.reaches(reached).await;
            // The process is killed amidst its transactions.
            drop(follower);
        });
        revision = written;
        if round == 2 {
            local.stop();
            local = EtcdServer::start(&lab.path("local")).await;
        }
    }
    let until = format!("--until-revision={revision}");
    let ran = Follower::run(&lab, "p", &source, &local, &[&until]).await;
    assert!(ran.success, "{}", ran.errors);
    assert_equal(&source, &local).await;
    // A follower that has nothing to do ends at once; a follower that is beyond the end refuses.
    let ran = Follower::run(&lab, "p", &source, &local, &[&until]).await;
    assert_eq!(
        (ran.success, &ran.json["digest"]),
        (true, &serde_json::Value::Null)
    );
    let ran = Follower::run(&lab, "p", &source, &local, &["--until-revision=2"]).await;
    assert!(ran.errors.contains("beyond --until-revision=2"), "{}", ran.errors);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_of_a_different_client_ends_the_follower() {
    let lab = Lab::new();
    let [source, local] = pair(&lab).await;
    grant_leases(&source).await;
    let revision = write(&source, 100..108).await;
    local.put_key("/foreign", "x").await;
    let until = format!("--until-revision={revision}");
    let ran = Follower::run(&lab, "p", &source, &local, &[&until]).await;
    assert!(!ran.success, "{}", ran.json);
    assert!(ran.errors.contains("EtcdDiverged: "), "{}", ran.errors);
    // The local etcd is ahead of the source.
    let [ahead, behind] = [local, EtcdServer::start(&lab.path("behind")).await];
    let ran = Follower::run(&lab, "p", &behind, &ahead, &[]).await;
    assert!(
        ran.errors.contains("EtcdDiverged: the source is at revision"),
        "{}",
        ran.errors
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_reads_through_the_gate_of_the_source() {
    set_tls_provider();
    let lab = Lab::new();
    let secure = SecureEtcd::start(&lab).await;
    let (config, _running) = secure.serve_gate().await;
    let local = EtcdServer::start(&lab.path("local")).await;
    grant_leases(&secure.etcd).await;
    let flag = |name: &str, path: &Option<std::path::PathBuf>| {
        format!("--source-{name}={}", path.as_ref().unwrap().display())
    };
    let flags = [
        flag("cacert", &config.cacert),
        flag("cert", &config.cert),
        flag("key", &config.key),
    ];
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    let follower = Follower::start(&lab, "p", &config.endpoints[0], &local, &flags);
    let revision = write(&secure.etcd, 0..1000).await;
    follower.reaches(revision).await;
    assert!(secure.etcd.dump().await == local.dump().await);
    for line in [
        format!("etcdbr_follow_revision {revision}\n"),
        "etcdbr_follow_lag_revisions 0\n".to_owned(),
        "etcdbr_follow_up 1\n".to_owned(),
    ] {
        eventually(&line, async || {
            let metrics = follower.text("/metrics").await?;
            metrics.contains(&line).then_some(())
        })
        .await;
    }
}

/// The peak of memory in MiB of a follower that reads as many values of 1 MiB from a delta, and then from a
/// watch.
async fn peak(values: u64, buffered: usize) -> u64 {
    let lab = Lab::new();
    let [source, local] = pair(&lab).await;
    let server = Server::start(&lab, "p", &source.endpoint, &["--compression-policy=zstd"]).await;
    let value = |number| noise(number + 1, 1 << 20);
    for number in 0..values {
        source.put_key(&format!("/value/{number}"), value(number)).await;
    }
    server.snapshot("/snapshot/delta").await;
    drop(server);
    let buffered = format!("--max-buffered-bytes={buffered}");
    let more = ["--max-watched-revisions=1", buffered.as_str()];
    let follower = Follower::start(&lab, "p", &source.endpoint, &local, &more);
    follower.reaches(source.client.revision().await.unwrap()).await;
    for number in 0..values {
        source
            .put_key(&format!("/value/{number}"), value(number + 1))
            .await;
    }
    follower.reaches(source.client.revision().await.unwrap()).await;
    follower.peak() / 1024
}

/// A comparison with less data would measure how far the follower was behind: buffers of a follower that
/// keeps up stay empty.
#[tokio::test(flavor = "multi_thread")]
async fn the_buffers_of_a_follower_bound_its_memory() {
    let (small, default) = (peak(200, 4 << 20).await, peak(200, 16 << 20).await);
    println!("follow: 400 MiB of values take {small} MiB with buffers of 4 MiB, {default} MiB with 16 MiB");
    assert!(small <= 80, "{small} MiB");
    assert!(default <= 128, "{default} MiB");
}
