//! The methods and the places of clients with certificates of preparations.

use super::fixture::{Client, PUT, RANGE, TXN, WATCH, in_time, read, send_until_stopped, trailers};
use super::prepared::Gated;
use crate::owner::PreparedLimits;
use bytes::Bytes;
use http::{Request, StatusCode};

const HASH: &str = "/etcdserverpb.Maintenance/HashKV";
/// Bytes of an answer, less than the gate takes before the client reads.
const ANSWER: usize = 100 << 10;

const SMALL: PreparedLimits = PreparedLimits {
    connections: 1,
    requests: 2,
};

/// Asks with a method, and returns the gate's status of gRPC.
async fn status(client: &Client, path: &str) -> String {
    let asked = client.call(path).await;
    read(in_time(asked.response).await.unwrap()).await.1
}

#[tokio::test]
async fn the_gate_passes_the_methods_of_a_preparation_alone() {
    let mut gated = Gated::with_limits(64, PreparedLimits::default()).await;
    gated.list(&["4a0f"]);
    let (own, prepared) = (gated.own_client().await, gated.prepared_client().await);
    for path in [RANGE, TXN, WATCH, "/etcdserverpb.Maintenance/Status"] {
        let asked = prepared.call(path).await;
        let arrived = gated.world.etcd.next().await;
        assert_eq!(arrived.request.uri().path(), path);
        arrived.answer(b"answer");
        let (content, code) = read(in_time(asked.response).await.unwrap()).await;
        assert_eq!((&content[..], &*code), (&b"answer"[..], "0"), "{path}");
    }
    for path in [
        PUT,
        "/etcdserverpb.Cluster/MemberAdd",
        "/etcdserverpb.Maintenance/Snapshot",
        "/etcdserverpb.Auth/AuthEnable",
        "/etcdserverpb.Lease/LeaseRevoke",
    ] {
        let response = in_time(prepared.call(path).await.response).await.unwrap();
        let message = response.headers()["grpc-message"].to_str().unwrap().to_owned();
        assert!(message.contains("refuses this method"), "{path}: {message}");
        assert_eq!(read(response).await.1, "7", "{path}");
    }
    // A client then falls back to a former method.
    assert_eq!(status(&prepared, "/etcdserverpb.KV/RangeStream").await, "12");
    let health = Request::get("http://etcd/health").body(()).unwrap();
    let health = in_time(prepared.send(health).await.response).await.unwrap();
    assert_eq!(health.status(), StatusCode::FORBIDDEN);
    assert!(!gated.world.etcd.has_arrived());
    let line = "etcdbr_gate_prepared_requests_refused_total{reason=\"method\"} 7";
    gated.world.shows(line).await;

    // A process of the seed may use each method.
    let asked = own.call("/etcdserverpb.Cluster/MemberAdd").await;
    gated.world.etcd.next().await.answer(b"answer");
    assert_eq!(read(in_time(asked.response).await.unwrap()).await.1, "0");
    // A refusal does not end the connection.
    gated.assert_served(&prepared).await;
}

#[tokio::test]
async fn connections_of_a_preparation_take_no_place_of_other_clients() {
    let mut gated = Gated::with_limits(2, SMALL).await;
    gated.list(&["4a0f"]);
    let prepared = gated.prepared_client().await;
    gated.assert_served(&prepared).await;
    gated.assert_refused().await;
    let line = "etcdbr_gate_prepared_connections_refused_total 1";
    gated.world.shows(line).await;
    // The refused connection has left its place.
    gated.world.shows("etcdbr_gate_open_connections 1").await;
    let [first, second] = [gated.own_client().await, gated.own_client().await];
    gated.assert_served(&first).await;
    gated.assert_served(&second).await;
    gated.assert_served(&prepared).await;

    prepared.vanish().await;
    gated.world.shows("etcdbr_gate_prepared_connections 0").await;
    // A connection counts as that of a process of the seed until the handshake.
    second.vanish().await;
    gated.world.shows("etcdbr_gate_open_connections 1").await;
    let prepared = gated.prepared_client().await;
    gated.assert_served(&prepared).await;
    gated.assert_served(&first).await;
}

#[tokio::test]
async fn requests_of_a_preparation_have_places_until_etcd_has_answered() {
    let mut gated = Gated::with_limits(64, SMALL).await;
    gated.list(&["4a0f"]);
    let (own, prepared) = (gated.own_client().await, gated.prepared_client().await);
    // A stream, and a write that the client gives up.
    let mut watch = prepared.ask(WATCH).await;
    let mut watched = gated.world.etcd.next().await;
    let mut messages = watched.begin();
    let abandoned = prepared.call(TXN).await;
    let under_way = gated.world.etcd.next().await;
    assert_eq!(status(&prepared, RANGE).await, "8");
    drop(abandoned);
    // The reset has arrived with these requests, and etcd still has the write.
    assert_eq!(status(&prepared, PUT).await, "7");
    assert_eq!(status(&prepared, RANGE).await, "8");
    assert!(!gated.world.etcd.has_arrived());
    gated.assert_served(&own).await;

    // Each end frees a place.
    under_way.answer(b"answer");
    gated.world.shows("etcdbr_gate_writes_under_way 0").await;
    gated.assert_served(&prepared).await;
    let read_under_way = prepared.call(RANGE).await;
    let arrived = gated.world.etcd.next().await;
    assert_eq!(status(&prepared, RANGE).await, "8");
    messages.send_trailers(trailers("0")).unwrap();
    watch.body.send_data(Bytes::new(), true).unwrap();
    let ended = in_time(watch.response).await.unwrap();
    assert_eq!(read(ended).await.1, "0");
    gated.assert_served(&prepared).await;
    arrived.answer(b"answer");
    assert_eq!(read(in_time(read_under_way.response).await.unwrap()).await.1, "0");
    let line = "etcdbr_gate_prepared_requests_refused_total{reason=\"share\"} 3";
    gated.world.shows(line).await;
}

/// h2 takes the answers before the client reads. Without a place, the number of such answers would have no
/// bound.
#[tokio::test]
async fn an_answer_has_a_place_until_the_socket_of_the_client_has_taken_the_answer() {
    let mut gated = Gated::with_limits(64, SMALL).await;
    gated.list(&["4a0f"]);
    let (prepared, switch) = gated.pausing_client().await;
    gated.assert_served(&prepared).await;
    let mut watch = prepared.ask(WATCH).await;
    let mut watched = gated.world.etcd.next().await;
    let mut messages = watched.begin();
    switch.stop();
    // The socket is full. The kernel ends the connection unless the client reads within four seconds.
    send_until_stopped(&mut messages).await;
    let unread = prepared.call(RANGE).await;
    let mut arrived = gated.world.etcd.next().await;
    let mut answer = arrived.begin();
    answer.send_data(vec![7; ANSWER].into(), false).unwrap();
    answer.send_trailers(trailers("0")).unwrap();
    // The gate has time to take the whole answer from etcd.
    let mut refused = Vec::new();
    for number in 1..=5 {
        refused.push(prepared.call(RANGE).await);
        let line = format!("etcdbr_gate_prepared_requests_refused_total{{reason=\"share\"}} {number}");
        gated.world.shows(&line).await;
    }
    assert!(!gated.world.etcd.has_arrived());

    switch.resume();
    messages.send_trailers(trailers("0")).unwrap();
    watch.body.send_data(Bytes::new(), true).unwrap();
    let (content, code) = read(in_time(unread.response).await.unwrap()).await;
    assert_eq!((content.len(), &*code), (ANSWER, "0"));
    assert_eq!(read(in_time(watch.response).await.unwrap()).await.1, "0");
    for asked in refused {
        assert_eq!(read(in_time(asked.response).await.unwrap()).await.1, "8");
    }
    gated.assert_served(&prepared).await;
}

#[tokio::test]
async fn a_hash_that_the_gate_holds_and_the_client_gives_up_is_no_hash_of_the_minute() {
    let mut gated = Gated::with_limits(64, SMALL).await;
    gated.list(&["4a0f"]);
    let prepared = gated.prepared_client().await;
    gated.world.traffic.hold();
    let held = prepared.call(HASH).await;
    gated
        .world
        .shows("etcdbr_gate_requests_total{class=\"read\"} 1")
        .await;
    drop(held);
    // The reset has arrived with these requests.
    assert_eq!(status(&prepared, PUT).await, "7");
    assert_eq!(status(&prepared, PUT).await, "7");
    gated.world.traffic.release();
    let asked = prepared.call(HASH).await;
    let arrived = gated.world.etcd.next().await;
    assert_eq!(arrived.request.uri().path(), HASH);
    assert_eq!(status(&prepared, HASH).await, "8");
    arrived.answer(b"answer");
    assert_eq!(read(in_time(asked.response).await.unwrap()).await.0, b"answer");
    let line = "etcdbr_gate_prepared_requests_refused_total{reason=\"hash\"} 1";
    gated.world.shows(line).await;
}
