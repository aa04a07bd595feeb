//! A follower beside faults: a different begin, a different source, leases that begin during a check, and a
//! local etcd that refuses revisions.

use crate::follow::{assert_equal, pair};
use crate::lab::{EtcdServer, Follower, Lab, Ran, Server, eventually, noise, op_put, run};
use futures::StreamExt;

fn assert_history_differs(ran: &Ran) {
    assert!(!ran.success, "{}", ran.json);
    assert!(
        ran.errors.contains("EtcdDiverged: the history of the local etcd"),
        "{}",
        ran.errors
    );
}

/// A lease that ended at the local etcd while no follower renewed the lease makes such a begin.
#[tokio::test(flavor = "multi_thread")]
async fn a_begin_that_differs_is_noticed_when_deltas_are_read_first() {
    let lab = Lab::new();
    let [source, local] = pair(&lab).await;
    let server = Server::start(&lab, "p", &source.endpoint, &[]).await;
    for etcd in [&source, &local] {
        etcd.put_key("/equal", "x").await;
    }
    source.put_key("/cold", "x").await;
    local.put_key("/foreign", "x").await;
    let mut revision = 0;
    for number in 0..20 {
        revision = source.put_key(&format!("/hot/{number}"), "x").await;
    }
    server.snapshot("/snapshot/delta").await;
    let until = format!("--until-revision={revision}");
    let more = [&*until, "--max-watched-revisions=1"];
    let ran = Follower::run(&lab, "p", &source, &local, &more).await;
    assert_history_differs(&ran);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_has_nothing_to_do_compares_the_history() {
    let lab = Lab::new();
    let [source, local] = pair(&lab).await;
    for etcd in [&source, &local] {
        etcd.put_key("/equal", "x").await;
    }
    local.put_key("/foreign", "x").await;
    let revision = source.put_key("/own", "x").await;
    let until = format!("--until-revision={revision}");
    let ran = Follower::run(&lab, "p", &source, &local, &[&until]).await;
    assert_history_differs(&ran);
}

/// A volume that was put back, or an endpoint of a different etcd, makes such a source.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_returns_with_a_different_history_ends_the_follower() {
    let lab = Lab::new();
    let [first, local] = pair(&lab).await;
    let second = EtcdServer::start(&lab.path("second")).await;
    for number in 0..5 {
        for (etcd, value) in [(&first, "x"), (&second, "y")] {
            etcd.put_key(&format!("/key/{number}"), value).await;
        }
    }
    let reached = first.client.revision().await.unwrap();
    let mut revision = reached;
    for number in 0..5 {
        revision = second.put_key(&format!("/later/{number}"), "x").await;
    }
    // The follower uses the first endpoint that answers.
    let more = [
        format!("--source-endpoints={}", second.endpoint),
        format!("--until-revision={revision}"),
    ];
    let more: Vec<_> = more.iter().map(String::as_str).collect();
    let flags = Follower::flags(&lab, "p", &first.endpoint, &local, &more);
    let (ran, ()) = tokio::join!(run("follow", &flags), async {
        eventually("the follower reaches the end of the first history", async || {
            (local.client.revision().await.unwrap() == reached).then_some(())
        })
        .await;
        first.stop();
    });
    assert!(!ran.success, "{}", ran.json);
    assert!(ran.errors.contains("EtcdDiverged: "), "{}", ran.errors);
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_that_are_granted_during_checks_of_leases_stay() {
    const COUNT: i64 = 3000;
    let lab = Lab::new();
    let [source, local] = pair(&lab).await;
    let follower = Follower::start(&lab, "p", &source.endpoint, &local, &[]);
    let grants = futures::stream::iter(1..=COUNT).map(async |id| {
        source.client.grant(id, 3600).await.unwrap();
        let key = format!("/leased/{id}");
        source.client.txn(vec![op_put(&key, "x", id)]).await.unwrap()
    });
    let revisions: Vec<_> = grants.buffer_unordered(8).collect().await;
    let revision = revisions.into_iter().max().unwrap();
    follower.reaches(revision).await;
    assert_equal(&source, &local).await;
    let granted = local.client.leases().await.unwrap().len();
    assert_eq!(i64::try_from(granted).unwrap(), COUNT);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_grants_each_lease_of_the_source() {
    let lab = Lab::new();
    let [source, local] = pair(&lab).await;
    let revision = source.put_key("/key", "x").await;
    // A client of the source may be about to use a lease that has no key.
    source.client.grant(99, 3600).await.unwrap();
    let until = format!("--until-revision={revision}");
    let ran = Follower::run(&lab, "p", &source, &local, &[&until]).await;
    assert!(ran.success, "{}", ran.errors);
    assert_eq!(ran.json["leasesComplete"], true, "{}", ran.errors);
    assert_eq!(local.client.granted_ttl(99).await.unwrap(), Some(3600));
}

#[tokio::test(flavor = "multi_thread")]
async fn former_values_do_not_fill_the_local_etcd_during_a_catch_up() {
    let lab = Lab::new();
    let source = EtcdServer::start(&lab.path("source")).await;
    let local = EtcdServer::start_limited(&lab.path("local"), 16 << 20).await;
    let server = Server::start(&lab, "p", &source.endpoint, &[]).await;
    let mut revision = 0;
    for number in 0..40 {
        revision = source.put_key("/value", noise(number + 1, 1 << 20)).await;
    }
    server.snapshot("/snapshot/delta").await;
    source.compact(revision - 1);
    let until = format!("--until-revision={revision}");
    let more = [&*until, "--max-watched-revisions=1"];
    let ran = Follower::run(&lab, "p", &source, &local, &more).await;
    assert!(ran.success, "{}", ran.errors);
    local.client.compact(revision - 1).await.unwrap();
    assert_equal(&source, &local).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_that_the_local_etcd_cannot_take_ends_the_follower() {
    let lab = Lab::new();
    let [source, local] = pair(&lab).await;
    source.client.grant(7, 3600).await.unwrap();
    for number in 0..200 {
        let key = format!("/leased/{number}");
        source.client.txn(vec![op_put(&key, "x", 7)]).await.unwrap();
    }
    // More deletions in a revision than `--max-txn-ops` allows by default.
    source.client.revoke(7).await.unwrap();
    let revision = source.client.revision().await.unwrap();
    let until = format!("--until-revision={revision}");
    let ran = Follower::run(&lab, "p", &source, &local, &[&until]).await;
    assert!(!ran.success, "{}", ran.json);
    let named = format!("revision {revision} (200 operations");
    assert!(ran.errors.contains(&named), "{}", ran.errors);
    assert!(ran.errors.contains("raise --max-txn-ops"), "{}", ran.errors);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_source_is_not_hashed() {
    let lab = Lab::new();
    let [source, local] = pair(&lab).await;
    for etcd in [&source, &local] {
        etcd.put_key("/equal", noise(1, 2 << 20)).await;
    }
    source.flush().await;
    let ran = Follower::run(&lab, "p", &source, &local, &["--max-hashed-bytes=1048576"]).await;
    assert!(!ran.success, "{}", ran.json);
    assert!(
        ran.errors
            .contains("Configuration: the database of the source has"),
        "{}",
        ran.errors
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_barrier_reports_the_revision_and_changes_nothing() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    assert_eq!(etcd.client.barrier().await.unwrap(), 1);
    let revision = etcd.put_key("/key", "x").await;
    let (written, barrier) = tokio::join!(
        etcd.client.txn(vec![op_put("/key", "y", 0)]),
        etcd.client.barrier()
    );
    assert_eq!(written.unwrap(), revision + 1);
    assert!((revision..=revision + 1).contains(&barrier.unwrap()));
    assert_eq!(etcd.client.barrier().await.unwrap(), revision + 1);
    assert_eq!(etcd.client.revision().await.unwrap(), revision + 1);
}
