//! A shoot whose move was cancelled is backed up again.

use crate::lab::{EtcdServer, Lab, Server, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_was_called_off_is_backed_up_again() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.put_key("/a", "1").await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &["--delta-snapshot-period=1s"]).await;
    assert_eq!(
        server.post("/snapshot/resume").await.1["resumed"],
        false,
        "nothing to resume"
    );
    server.snapshot("/snapshot/full?final=true").await;
    drop(server);
    // A second process reads the finished state too.
    let server = Server::spawn(&lab, "p", &etcd.endpoint, &["--delta-snapshot-period=1s"]).await;
    eventually("it is finished", async || {
        (server.get("/healthz").await.1["finished"] == true).then_some(())
    })
    .await;
    let revision = etcd.put_key("/a", "2").await;
    assert_eq!(
        server.text("/snapshot/resume").await.0,
        405,
        "a GET has no effect"
    );
    let (status, resumed) = server.post("/snapshot/resume").await;
    assert_eq!((status, &resumed["resumed"]), (200, &true.into()), "{resumed}");
    assert_eq!(server.post("/snapshot/resume").await.1["resumed"], false);
    eventually("a full snapshot is taken at once", async || {
        let (_, latest) = server.get("/snapshot/latest").await;
        (latest["fullSnapshot"]["lastRevision"] == revision).then_some(())
    })
    .await;
    etcd.put_key("/a", "3").await;
    eventually("changes are stored", async || {
        lab.objects("p").pop().filter(|o| o.starts_with("Incr"))
    })
    .await;
    drop(server);
    // The state stays after a restart.
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    assert_eq!(server.get("/snapshot/latest").await.1["finished"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_final_snapshot_of_another_epoch_does_not_end_the_backups_of_this_one() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.put_key("/a", "1").await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &["--ownership-epoch=1"]).await;
    server.snapshot("/snapshot/full?final=true").await;
    drop(server);
    let server = Server::start(&lab, "p", &etcd.endpoint, &["--ownership-epoch=3"]).await;
    let (_, latest) = server.get("/snapshot/latest").await;
    assert_eq!(
        (&latest["finished"], &latest["epoch"]),
        (&false.into(), &3.into())
    );
    assert_eq!(latest["fullSnapshot"]["verified"], false, "{latest}");
}
