//! The final snapshot is taken once, is the last snapshot, and ends the source's residency.

use crate::lab::{EtcdServer, Gate, Lab, PATIENCE, Server, eventually, noise};
use std::time::Instant;

#[tokio::test(flavor = "multi_thread")]
async fn asking_again_takes_no_other_and_nothing_follows() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.put_key("/a", "1").await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &["--delta-snapshot-period=1s"]).await;
    etcd.put_key("/a", "2").await;
    let (first, second) = tokio::join!(
        server.snapshot("/snapshot/full?final=true"),
        server.snapshot("/snapshot/full?final=true")
    );
    assert_eq!(first, second);
    assert_eq!(first.rsplit('.').next(), Some("final"), "{first}");
    let (_, latest) = server.get("/snapshot/latest").await;
    assert_eq!(latest["fullSnapshot"]["isFinal"], true);
    for path in ["/snapshot/delta", "/snapshot/full"] {
        let (status, json) = server.get(path).await;
        assert_eq!((status, &json["code"]), (409, &"finished".into()), "{json}");
    }
    assert_eq!(server.get("/healthz").await.1["snapshotter"], "Finished");
    // A second process returns the same final snapshot.
    drop(server);
    let objects = lab.objects("p");
    let server = Server::spawn(&lab, "p", &etcd.endpoint, &[]).await;
    assert_eq!(server.snapshot("/snapshot/full?final=true").await, first);
    assert_eq!(lab.objects("p"), objects);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shoot_that_came_back_makes_an_old_final_snapshot_worthless_at_once() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.put_key("/a", "1").await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    server.snapshot("/snapshot/full?final=true").await;
    drop(server);
    let copied = lab.copy("p", "q", &["--ownership-epoch=3"]).await;
    assert!(copied.success, "{}", copied.errors);
    let _server = Server::start(&lab, "q", &etcd.endpoint, &["--ownership-epoch=3"]).await;
    etcd.put_key("/a", "2").await;
    eventually("the first change is stored", async || {
        lab.objects("q").pop().filter(|o| o.starts_with("Incr"))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_final_only_when_it_was_read_back_and_holds_etcds_last_revision() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.put_key("/a", "1").await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &["--ownership-epoch=4"]).await;
    let (_, before) = server.get("/snapshot/latest").await;
    assert_eq!(before["finished"], false);
    assert_eq!(before["fullSnapshot"]["verified"], false);
    let revision = etcd.put_key("/a", "2").await;
    let (status, proven) = server.post("/snapshot/full?final=true").await;
    assert_eq!(status, 200, "{proven}");
    let is_proven = |snapshot: &serde_json::Value| {
        assert_eq!(snapshot["isFinal"], true, "{snapshot}");
        assert_eq!(snapshot["verified"], true, "{snapshot}");
        assert_eq!(snapshot["lastRevision"], revision, "{snapshot}");
        assert_eq!(snapshot["etcdRevision"], revision, "{snapshot}");
        assert_eq!(snapshot["epoch"], 4, "{snapshot}");
    };
    is_proven(&proven);
    let (_, latest) = server.get("/snapshot/latest").await;
    is_proven(&latest["fullSnapshot"]);
    assert_eq!((&latest["finished"], &latest["epoch"]), (&true.into(), &4.into()));
    assert_eq!(server.get("/healthz").await.1["finished"], true);
    // A write after the end: a new final snapshot is due.
    let revision = etcd.put_key("/a", "3").await;
    let (status, another) = server.post("/snapshot/full?final=true").await;
    assert_eq!(
        (status, &another["lastRevision"]),
        (200, &revision.into()),
        "{another}"
    );
    assert_ne!(another["snapName"], proven["snapName"]);
}

/// A lab whose server reaches the store through a gate, with a database large enough to be distinguished from
/// a listing.
async fn gated(flags: &[&str]) -> (Lab, EtcdServer, Gate, Server) {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.put_key("/a", noise(1, 200_000)).await;
    let gate = Gate::before(&lab.s3.endpoint).await;
    let endpoint = format!("--store-endpoint-override={}", gate.endpoint);
    let flags: Vec<_> = flags.iter().copied().chain([&*endpoint]).collect();
    let server = Server::start(&lab, "p", &etcd.endpoint, &flags).await;
    (lab, etcd, gate, server)
}

async fn is_not_finished(lab: &Lab, server: &Server) {
    assert_eq!(server.get("/healthz").await.1["finished"], false);
    let finals: Vec<_> = lab
        .objects("p")
        .into_iter()
        .filter(|o| o.rsplit('.').next() == Some("final"))
        .collect();
    assert_eq!(finals, Vec::<String>::new(), "a copy would take it for the end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_changes_what_it_is_given_is_found_out() {
    let (lab, _etcd, gate, server) = gated(&[]).await;
    gate.garble(true);
    let (status, refused) = server.post("/snapshot/full?final=true").await;
    assert_eq!(
        (status, &refused["code"]),
        (500, &"snapshot-unverified".into()),
        "{refused}"
    );
    is_not_finished(&lab, &server).await;
    gate.garble(false);
    assert_eq!(server.post("/snapshot/full?final=true").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_while_it_is_taken_is_found_out() {
    let (lab, etcd, gate, server) = gated(&[]).await;
    gate.hold("PUT ");
    let (answer, ()) = tokio::join!(server.post("/snapshot/full?final=true"), async {
        gate.something_is_held().await;
        etcd.put_key("/late", "1").await;
        gate.release();
    });
    assert_eq!(
        (answer.0, &answer.1["code"]),
        (409, &"overtaken".into()),
        "{}",
        answer.1
    );
    is_not_finished(&lab, &server).await;
    // Without a further request etcd is backed up normally.
    eventually("the late write is stored", async || {
        let (_, latest) = server.get("/snapshot/latest").await;
        let deltas = latest["deltaSnapshots"].as_array()?.len();
        (deltas > 0 || latest["fullSnapshot"]["lastRevision"] == 3).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_does_not_wait_for_other_work() {
    for (request, flags) in [
        // A full snapshot and a delta snapshot in transfer.
        ("PUT ", &["--delta-snapshot-period=24h"][..]),
        ("PUT ", &["--delta-snapshot-period=1s"]),
        // A collection of garbage.
        ("DELETE ", &["--garbage-collection-period=1s", "--max-backups=1"]),
    ] {
        let (_lab, etcd, gate, server) = gated(flags).await;
        gate.hold(request);
        let revision = etcd.put_key("/b", "1").await;
        let other = server.get("/snapshot/full");
        let urgent = async {
            gate.something_is_held().await;
            // The held request stays held: requests queued behind it would never be answered.
            gate.let_others_pass();
            let begun = Instant::now();
            for path in ["/healthz", "/snapshot/latest"] {
                assert_eq!(server.get(path).await.0, 200);
            }
            assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
            let (status, taken) = server.post("/snapshot/full?final=true").await;
            assert_eq!(
                (status, &taken["lastRevision"]),
                (200, &revision.into()),
                "{flags:?}: {taken}"
            );
            assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
        };
        let ((status, said), ()) = tokio::join!(other, urgent);
        assert!([200, 409, 503].contains(&status), "{said}");
    }
}
