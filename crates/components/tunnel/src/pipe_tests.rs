#![allow(clippy::unwrap_used)]
use tokio::{io::duplex, task::JoinSet};

use super::*;

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn one_direction_may_end_before_the_other() {
    let (mut client, left) = duplex(64);
    let (right, mut server) = duplex(64);
    let mut joined = JoinSet::new();
    joined.spawn(join(left, right, LONG));
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    let mut heard = String::new();
    server.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "question");
    // Longer than the buffers between the ends.
    let answer = "answer".repeat(100);
    let say = async {
        server.write_all(answer.as_bytes()).await.unwrap();
        drop(server);
    };
    let mut heard = String::new();
    let ((), read) = tokio::join!(say, client.read_to_string(&mut heard));
    read.unwrap();
    assert_eq!(heard, answer);
    joined.join_next().await.unwrap().unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn nobody_keeps_a_connection_whose_other_end_is_gone() {
    const SHORT: Duration = Duration::from_secs(30);
    let (mut client, left) = duplex(64);
    let (right, server) = duplex(64);
    let mut joined = JoinSet::new();
    joined.spawn(join_bounded(left, right, LONG, SHORT));
    sleep(LONG * 3 / 4).await;
    let (mut reader, mut writer) = tokio::io::split(server);
    writer.shutdown().await.unwrap();
    // Bytes of the client still arrive, and reset the timeout.
    for _ in 0..4 {
        sleep(SHORT * 3 / 4).await;
        client.write_all(b"x").await.unwrap();
        reader.read_u8().await.unwrap();
    }
    let begun = tokio::time::Instant::now();
    let error = joined.join_next().await.unwrap().unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(begun.elapsed() <= SHORT * 2);
}

#[tokio::test(start_paused = true)]
async fn silence_ends_it_and_a_word_now_and_then_does_not() {
    let (mut client, left) = duplex(64);
    let (right, mut server) = duplex(64);
    let mut joined = JoinSet::new();
    joined.spawn(join(left, right, LONG));
    for _ in 0..4 {
        sleep(LONG * 3 / 4).await;
        client.write_all(b"x").await.unwrap();
        server.read_u8().await.unwrap();
    }
    let error = joined.join_next().await.unwrap().unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}
