//! The final snapshot is taken once, is the last one, and ends the source's stay.

use crate::lab::{EtcdServer, Lab, Server, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn asking_again_takes_no_other_and_nothing_follows() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.put("/a", "1").await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &["--delta-snapshot-period=1s"]).await;
    etcd.put("/a", "2").await;
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
    // Another process, asked again: it is still the same one.
    drop(server);
    let objects = lab.objects("p");
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    assert_eq!(server.snapshot("/snapshot/full?final=true").await, first);
    assert_eq!(lab.objects("p"), objects);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shoot_that_came_back_makes_an_old_final_snapshot_worthless_at_once() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.put("/a", "1").await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    server.snapshot("/snapshot/full?final=true").await;
    drop(server);
    let _server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    etcd.put("/a", "2").await;
    eventually("the first change is stored", async || {
        lab.objects("p").pop().filter(|o| o.starts_with("Incr"))
    })
    .await;
}
