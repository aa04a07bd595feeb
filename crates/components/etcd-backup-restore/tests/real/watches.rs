//! Streams of the client of etcd: watches, and renewals of leases.

use crate::lab::{EtcdServer, Lab, eventually};

async fn metrics(etcd: &EtcdServer) -> String {
    let metrics = reqwest::get(format!("{}/metrics", etcd.endpoint)).await.unwrap();
    metrics.text().await.unwrap()
}

/// The number of streams for watches that etcd has open.
async fn open_streams(etcd: &EtcdServer) -> u64 {
    let metrics = metrics(etcd).await;
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
        watch.next().await.unwrap();
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
    while last.next().await.unwrap().events.is_empty() {}
}

/// The numbers of streams for renewals that etcd has begun and ended.
async fn renewals(etcd: &EtcdServer) -> [u64; 2] {
    let metrics = metrics(etcd).await;
    ["grpc_server_started_total{", "grpc_server_handled_total{"].map(|counter| {
        let streams = metrics
            .lines()
            .filter(|line| line.starts_with(counter) && line.contains("\"LeaseKeepAlive\""));
        streams
            .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum()
    })
}

/// Otherwise each renewal leaves a stream in the client and in etcd until the connection ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_ends_at_etcd_and_names_the_leases_that_are_gone() {
    let lab = Lab::new();
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.client.grant(7, 600).await.unwrap();
    for _ in 0..5 {
        assert_eq!(etcd.client.keep_alive(vec![7, 8]).await.unwrap(), [8]);
    }
    eventually("the renewals end", async || {
        (renewals(&etcd).await == [5, 5]).then_some(())
    })
    .await;
}
