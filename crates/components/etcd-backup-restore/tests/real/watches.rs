//! Watches of the client of etcd.

use crate::lab::{EtcdServer, Lab, eventually};

/// The number of streams for watches that etcd has open.
async fn open_streams(etcd: &EtcdServer) -> u64 {
    let metrics = reqwest::get(format!("{}/metrics", etcd.endpoint)).await.unwrap();
    let metrics = metrics.text().await.unwrap();
    let streams = metrics
        .lines()
        .find_map(|line| line.strip_prefix("etcd_debugging_mvcc_watch_stream_total "));
    streams.unwrap().parse().unwrap()
}

/// Otherwise etcd sends each change to each former watch, and the connection ends after some thousand unread
/// frames.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_watch_ends_at_etcd() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    let mut watches = Vec::new();
    for _ in 0..3 {
        let mut watch = etcd.client.watch(1).await.unwrap();
        watch.message().await.unwrap().unwrap();
        watches.push(watch);
    }
    assert_eq!(open_streams(&etcd).await, 3);
    let mut last = watches.pop().unwrap();
    drop(watches);
    let told = eventually("the dropped watches end", async || {
        (open_streams(&etcd).await == 1).then_some(())
    });
    told.await;
    etcd.put_key("/watched", "x").await;
    while last.message().await.unwrap().unwrap().events.is_empty() {}
}
