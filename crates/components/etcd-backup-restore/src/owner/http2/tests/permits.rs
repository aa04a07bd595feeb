//! No byte passes after the end of the permit.

use super::fixture::{PUT, RANGE, WATCH, World, in_time};
use super::raw::{END_HEADERS, END_STREAM, HEADERS, PREFACE, SETTINGS, WINDOW_UPDATE, frame, head};
use crate::owner::gate::tests::written_and_unread;
use bytes::Bytes;
use mutation::Mutation;
use std::future::poll_fn;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// More than all sockets on the path buffer together.
const REPLY: usize = 64 << 20;

#[tokio::test]
async fn when_the_right_ends_all_requests_are_cut_and_nobody_listens() {
    let mut world = World::begin().await;
    let (mut idle, mut busy) = (world.client().await, world.client().await);
    let mut under_way = Vec::new();
    for path in [PUT, RANGE, WATCH] {
        under_way.push((busy.call(path).await, world.etcd.next().await));
    }
    world.issuer.end("epoch 2 has begun");
    in_time(world.gate.join_next()).await.unwrap().unwrap();
    for client in [&mut idle, &mut busy] {
        client.end().await.unwrap_err();
    }
    for (asked, mut arrived) in under_way {
        in_time(asked.response).await.unwrap_err();
        in_time(poll_fn(|context| arrived.respond.poll_reset(context)))
            .await
            .unwrap_err();
    }
    let refused = TcpStream::connect(world.address).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    world.shows("etcdbr_gate_open_connections 0").await;
}

/// Timers do not run during a suspension; the check of the clock before each write detects the suspension.
#[tokio::test]
async fn after_a_suspension_no_request_reaches_etcd_and_no_answer_the_client() {
    let mut world = World::begin().await;
    let (sending, mut waiting) = (world.client().await, world.client().await);
    let asked = waiting.call(PUT).await;
    let arrived = world.etcd.next().await;
    world.suspend();
    let late = sending.call(PUT).await;
    arrived.answer(b"late");
    assert!(
        in_time(asked.response).await.is_err(),
        "an answer passed after the permit"
    );
    assert!(
        in_time(late.response).await.is_err(),
        "a request passed after the permit"
    );
    waiting.end().await.unwrap_err();
    assert!(
        !world.etcd.has_arrived(),
        "a request reached etcd after the permit"
    );
}

/// etcd has replied while the seed owned the shoot, and the client is slow: the gate still holds a part of
/// the reply when the permit ends. The timers do not know of the end, as the machine was suspended.
#[tokio::test]
async fn a_reply_that_etcd_gave_in_time_is_not_released_after_the_permit() {
    let mut world = World::begin().await;
    let mut client = TcpStream::connect(world.address).await.unwrap();
    let address = client.local_addr().unwrap();
    // Flow control does not stop this client: the socket does.
    let mut request = PREFACE.to_vec();
    request.extend(frame(SETTINGS, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]));
    request.extend(frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xfe, 0, 0]));
    request.extend(frame(HEADERS, END_HEADERS | END_STREAM, 1, &head(RANGE)));
    client.write_all(&request).await.unwrap();
    let mut arrived = world.etcd.next().await;
    let mut replying = JoinSet::new();
    replying.spawn(async move {
        let mut reply = arrived.begin();
        let mut left = REPLY;
        while left > 0 {
            reply.reserve_capacity(left.min(64 << 10));
            let Some(Ok(capacity)) = poll_fn(|context| reply.poll_capacity(context)).await else {
                return;
            };
            let piece = capacity.min(left);
            left -= piece;
            if reply.send_data(Bytes::from(vec![7; piece]), left == 0).is_err() {
                return;
            }
        }
        // The connection stays.
        std::future::pending::<()>().await;
    });
    written_and_unread(world.address, address).await;
    world.suspend();
    let written = written_and_unread(world.address, address).await;
    let (mut chunk, mut received) = (vec![0; 1 << 20], 0);
    let broken = loop {
        match in_time(client.read(&mut chunk)).await {
            Ok(0) => panic!("the connection ended in order after {received} bytes"),
            Ok(read) => received += read,
            Err(broken) => break broken,
        }
        assert!(received < REPLY, "the reply ended in order");
    };
    assert_eq!(broken.kind(), io::ErrorKind::ConnectionReset);
    assert!(
        received <= written,
        "{} bytes were released after the permit had ended",
        received - written
    );
}

#[test]
fn a_proxy_that_checks_the_permit_at_the_beginning_alone_is_noticed() {
    for (test, failure) in [
        (
            after_a_suspension_no_request_reaches_etcd_and_no_answer_the_client as fn(),
            "an answer passed after the permit",
        ),
        (
            a_reply_that_etcd_gave_in_time_is_not_released_after_the_permit,
            "the reply ended in order",
        ),
    ] {
        Mutation::BytesWithoutPermit.assert_killed_by(test, failure);
    }
}
