#![allow(clippy::unwrap_used)]
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::FutureExt;
use tokio::time::{Duration, Instant, timeout};

use super::*;

const HERE: &str = "192.0.2.1:8443";
const THERE: &str = "192.0.2.2:8443";
const AWAY: &str = "";

/// A name with these answers in order; the last answer repeats. Also returns the number of lookups.
fn name(answers: &'static [&'static str]) -> (Way, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let lookup = move || {
        let n = count.fetch_add(1, Ordering::Relaxed).min(answers.len() - 1);
        let answer = answers[n]
            .parse()
            .map(|address| vec![address])
            .map_err(io::Error::other);
        async move { answer }.boxed()
    };
    let way = Way {
        host: "api.example.test".into(),
        lookup: Arc::new(lookup),
    };
    (way, asked)
}

#[tokio::test(start_paused = true)]
async fn connections_leave_when_the_name_has_surely_left_and_ask_nobody() {
    let (way, asked) = name(&[HERE, THERE, HERE, AWAY, THERE, AWAY, THERE, THERE]);
    let (sender, known) = watch::channel(ResolvedAddresses::default());
    let count = Gauge::default();
    let here = HERE.parse().unwrap();
    let begun = Instant::now();
    let all = (0..500).map(|_| led_elsewhere(known.clone(), here));
    tokio::select! {
        () = follow(&way, &sender, &count) => {}
        _ = futures::future::join_all(all) => {}
    }
    assert_eq!(begun.elapsed(), LOOK_UP_EVERY * 7);
    assert_eq!(asked.load(Ordering::Relaxed), 8, "one look for all of them");
}

#[tokio::test(start_paused = true)]
async fn while_dns_is_away_all_stays_as_it_was() {
    let (way, _) = name(&[HERE, AWAY]);
    let (sender, known) = watch::channel(ResolvedAddresses::default());
    let count = Gauge::default();
    let here: SocketAddr = HERE.parse().unwrap();
    let mut asking = known.clone();
    let looked = async {
        tokio::select! {
            () = follow(&way, &sender, &count) => {}
            () = led_elsewhere(known, here) => {}
        }
    };
    assert!(timeout(Duration::from_secs(3600), looked).await.is_err());
    assert_eq!(addresses(&mut asking).await.unwrap(), [here]);
    assert_eq!(count.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_first_connection_waits_for_the_first_answer() {
    let (way, _) = name(&[AWAY, AWAY, HERE]);
    let (sender, mut known) = watch::channel(ResolvedAddresses::default());
    let count = Gauge::default();
    let found = tokio::select! {
        () = follow(&way, &sender, &count) => unreachable!(),
        found = addresses(&mut known) => found.unwrap(),
    };
    assert_eq!(found, [HERE.parse().unwrap()]);
}
