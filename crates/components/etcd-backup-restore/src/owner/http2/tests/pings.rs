//! The gate finds an etcd that hangs, as clients do without a gate.

use super::fixture::{PUT, PlayedEtcd, WATCH, World, in_time, read};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::{advance, pause, resume, sleep};

/// Shorter than the silence before a ping.
const SILENCE: Duration = Duration::from_secs(29);

/// Longer than the silence before a ping and the bound of the answer together.
const TOO_LONG: Duration = Duration::from_secs(45);

/// The time jumps from timer to timer. No byte may be awaited meanwhile.
async fn pass(time: Duration) {
    pause();
    sleep(time).await;
    resume();
}

/// The kernel of an etcd that hangs acknowledges all bytes, and the gate answers pings of clients.
#[tokio::test]
async fn a_client_is_cut_where_etcd_hangs() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let world = World::before(PlayedEtcd::start().await, address, None).await;
    let mut client = world.client().await;
    let asked = client.ask(WATCH).await;
    let (stream, _) = in_time(listener.accept()).await.unwrap();
    let mut hung = in_time(h2::server::handshake(stream)).await.unwrap();
    let _arrived = in_time(hung.accept()).await.unwrap().unwrap();
    // From here on `hung` is not polled.
    pass(SILENCE).await;
    world.shows("etcdbr_gate_open_connections 1").await;
    pass(TOO_LONG).await;
    in_time(asked.response).await.unwrap_err();
    client.end().await.unwrap_err();
    world.shows("etcdbr_gate_open_connections 0").await;
}

#[tokio::test]
async fn an_etcd_that_answers_pings_is_kept() {
    let mut world = World::begin().await;
    let client = world.client().await;
    let _watch = client.ask(WATCH).await;
    let _watched = world.etcd.next().await;
    for _ in 0..3 {
        // The next ping is due at the end of this time, and etcd answers in real time.
        pause();
        advance(TOO_LONG).await;
        resume();
        let asked = client.call(PUT).await;
        let arrived = world.etcd.next().await;
        assert_eq!(arrived.connection, 0);
        arrived.answer(b"answer");
        assert_eq!(read(in_time(asked.response).await.unwrap()).await.0, b"answer");
    }
}
