//! Hold, count, end, and route requests.

use super::fixture::{
    Client, PUT, PlayedEtcd, RANGE, WATCH, World, content, in_time, read, send_until_stopped, trailers,
};
use bytes::Bytes;
use futures::FutureExt;
use h2::Reason;
use std::future::poll_fn;
use std::time::Duration;

const UNAVAILABLE: &str = "14";

/// A write and its head at etcd, as gRPC frames a message.
fn message(content: &'static [u8]) -> Vec<u8> {
    let mut message = vec![0];
    message.extend(u32::try_from(content.len()).unwrap().to_be_bytes());
    message.extend(content);
    message
}

/// R is read when the writes under way have ended: a write that the client gave up counts until etcd has
/// answered, also where the client is gone.
#[tokio::test]
async fn a_write_that_its_client_gave_up_counts_until_etcd_has_answered() {
    let mut world = World::begin().await;
    let client = world.client().await;
    let mut given_up = client.call(PUT).await;
    let first = world.etcd.next().await;
    given_up.body.send_reset(Reason::CANCEL);
    drop(given_up);
    let gone = world.client().await;
    let _lost = gone.call(PUT).await;
    let second = world.etcd.next().await;
    gone.vanish().await;
    world.traffic.hold();
    // A further request shows that the gate has seen the reset.
    world.traffic.release();
    let asked = client.call(RANGE).await;
    world.etcd.next().await.answer(b"answer");
    in_time(asked.response).await.unwrap();
    world.traffic.hold();
    assert_eq!(world.traffic.writes(), 2);
    first.answer(b"done");
    world.shows("etcdbr_gate_writes_under_way 1").await;
    second.answer(b"done");
    in_time(world.traffic.wait_for_writes()).await;
    world.shows("etcdbr_gate_open_connections 1").await;
}

#[tokio::test]
async fn held_requests_reach_etcd_after_the_release_and_those_admitted_before_go_on() {
    let mut world = World::begin().await;
    let client = world.client().await;
    let before = client.call(PUT).await;
    let admitted = world.etcd.next().await;
    world.traffic.hold();
    let (write, list, watch) = (
        client.call(PUT).await,
        client.call(RANGE).await,
        client.ask(WATCH).await,
    );
    admitted.answer(b"before");
    assert_eq!(read(in_time(before.response).await.unwrap()).await.0, b"before");
    in_time(world.traffic.wait_for_writes()).await;
    assert!(!world.etcd.has_arrived());
    world.traffic.release();
    for _ in 0..3 {
        let mut arrived = world.etcd.next().await;
        if arrived.request.uri().path() == WATCH {
            arrived.begin().send_trailers(trailers("0")).unwrap();
        } else {
            arrived.answer(b"after");
        }
    }
    for asked in [write, list] {
        assert_eq!(read(in_time(asked.response).await.unwrap()).await.0, b"after");
    }
    assert_eq!(read(in_time(watch.response).await.unwrap()).await.1, "0");
}

/// The deadline of the client goes on while a request is held.
#[tokio::test]
async fn a_held_request_that_its_client_gave_up_reaches_no_etcd() {
    let mut world = World::begin().await;
    let client = world.client().await;
    world.traffic.hold();
    let mut given_up = client.call(PUT).await;
    let _list = client.call(RANGE).await;
    world.shows("etcdbr_gate_requests_total{class=\"write\"} 1").await;
    given_up.body.send_reset(Reason::CANCEL);
    drop(given_up);
    // A later request of the same connection shows that the gate has seen the reset.
    let _watch = client.ask(WATCH).await;
    world
        .shows("etcdbr_gate_requests_total{class=\"stream\"} 1")
        .await;
    world.traffic.release();
    let arrived = [world.etcd.next().await, world.etcd.next().await];
    assert!(arrived.iter().all(|arrived| arrived.request.uri().path() != PUT));
    assert!(!world.etcd.has_arrived());
    assert_eq!(world.traffic.writes(), 0);
}

/// The answer of etcd to a write under way passes, while reads and streams end with the status with which
/// etcd's client repeats and resumes.
#[tokio::test]
async fn reads_and_streams_end_with_a_trailer_and_writes_go_on() {
    let mut world = World::begin().await;
    let client = world.client().await;
    let write = client.call(PUT).await;
    let written = world.etcd.next().await;
    let list = client.call(RANGE).await;
    let mut listed = world.etcd.next().await;
    let watch = client.ask(WATCH).await;
    let mut watched = world.etcd.next().await;
    let mut events = watched.begin();
    let response = in_time(watch.response).await.unwrap();
    world.traffic.hold();
    world.traffic.end_streams();
    assert_eq!(read(in_time(list.response).await.unwrap()).await.1, UNAVAILABLE);
    assert_eq!(read(response).await, (Vec::new(), UNAVAILABLE.to_owned()));
    for reset in [
        in_time(poll_fn(|context| listed.respond.poll_reset(context))).await,
        in_time(poll_fn(|context| events.poll_reset(context))).await,
    ] {
        assert_eq!(reset.unwrap(), Reason::CANCEL);
    }
    written.answer(b"done");
    assert_eq!(read(in_time(write.response).await.unwrap()).await.0, b"done");
    // The connection goes on.
    world.traffic.release();
    let asked = client.call(RANGE).await;
    world.etcd.next().await.answer(b"answer");
    assert_eq!(read(in_time(asked.response).await.unwrap()).await.0, b"answer");
}

/// A trailer within a message would be an internal error for etcd's client.
#[tokio::test]
async fn a_stream_ends_after_the_message_under_way() {
    let mut world = World::begin().await;
    let client = world.client().await;
    let asked = client.ask(WATCH).await;
    let mut arrived = world.etcd.next().await;
    let mut etcd = arrived.begin();
    let mut response = in_time(asked.response).await.unwrap().into_body();
    let event = message(b"an event");
    let (first, rest) = event.split_at(8);
    let mut further = rest.to_vec();
    further.extend(message(b"a later event"));
    etcd.send_data(Bytes::copy_from_slice(first), false).unwrap();
    let received = in_time(response.data()).await.unwrap().unwrap();
    assert_eq!(received, first);
    world.traffic.end_streams();
    // A frame may have the end of a message and the beginning of the next.
    etcd.send_data(further.into(), false).unwrap();
    assert_eq!(content(&mut response).await, rest);
    let status = in_time(response.trailers()).await.unwrap().unwrap();
    assert_eq!(status["grpc-status"], UNAVAILABLE);
}

/// R is read after the last stream has ended: a later event of a lease that ends would be seen twice.
#[tokio::test]
async fn a_client_that_reads_nothing_holds_the_end_of_its_stream() {
    let mut world = World::begin().await;
    let client = world.client().await;
    let asked = client.ask(WATCH).await;
    let mut arrived = world.etcd.next().await;
    let mut etcd = arrived.begin();
    let response = in_time(asked.response).await.unwrap();
    assert_eq!(
        (world.traffic.streams(), world.traffic.longest_delay()),
        (1, Duration::ZERO)
    );
    // Zeros are empty messages of five bytes each.
    let sent = send_until_stopped(&mut etcd).await;
    assert!(world.traffic.longest_delay() > Duration::from_millis(100));
    world.traffic.hold();
    world.traffic.end_streams();
    assert!(world.traffic.wait_for_streams().now_or_never().is_none());
    let mut body = response.into_body();
    let received = content(&mut body).await.len();
    assert!(received < sent && received % 5 == 0, "{received} of {sent}");
    let status = in_time(body.trailers()).await.unwrap().unwrap();
    assert_eq!(status["grpc-status"], UNAVAILABLE);
    in_time(world.traffic.wait_for_streams()).await;
    assert_eq!(world.traffic.longest_delay(), Duration::ZERO);
}

#[tokio::test]
async fn clients_that_are_asked_to_leave_finish_their_requests() {
    let mut world = World::begin().await;
    let mut client = world.client().await;
    let asked = client.call(PUT).await;
    let arrived = world.etcd.next().await;
    world.traffic.ask_clients_to_leave();
    arrived.answer(b"done");
    assert_eq!(read(in_time(asked.response).await.unwrap()).await.0, b"done");
    let _ = client.end().await;
    world.shows("etcdbr_gate_open_connections 0").await;
    // New connections are served.
    let other = world.client().await;
    let asked = other.call(PUT).await;
    world.etcd.next().await.answer(b"done");
    in_time(asked.response).await.unwrap();
}

#[tokio::test]
async fn held_requests_go_to_the_etcd_that_is_chosen_in_the_meantime() {
    let mut world = World::begin().await;
    let mut other = PlayedEtcd::start().await;
    let client: Client = world.client().await;
    let before = client.call(PUT).await;
    let admitted = world.etcd.next().await;
    world.traffic.hold();
    let held = client.call(PUT).await;
    world.traffic.route_to(other.address);
    world.traffic.release();
    other.next().await.answer(b"other");
    assert_eq!(read(in_time(held.response).await.unwrap()).await.0, b"other");
    admitted.answer(b"first");
    assert_eq!(read(in_time(before.response).await.unwrap()).await.0, b"first");
}
