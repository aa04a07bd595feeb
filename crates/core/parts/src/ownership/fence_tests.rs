//! The start of a fence, and the witnesses that the fence needs.

#![allow(clippy::unwrap_used)]
use std::time::Duration;

use ownership::{Settings, Silence, Terms};
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::FenceClock;

fn terms(silence: Silence) -> Terms {
    Terms::new(Settings {
        silence,
        ..Settings::default()
    })
    .unwrap()
}

/// R17-20: 24 seconds from the time when every witness showed the destination. Neither the start of the flow
/// nor a second check counts.
#[tokio::test(start_paused = true)]
async fn a_fence_counts_from_the_first_look_that_showed_it_everywhere() {
    let (fence, terms) = (FenceClock::default(), terms(Silence::Deactivate));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!fence.has_passed(&terms), "nobody has seen the witnesses yet");
    assert!(fence.pass(&terms).await.is_err());
    fence.begin([]);
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs(12)).await;
    fence.begin([]);
    assert!(!fence.has_passed(&terms));
    fence.pass(&terms).await.unwrap();
    let took = began.elapsed();
    assert!(
        took >= terms.fence().unwrap() && took < Duration::from_secs(25),
        "{took:?}"
    );
    assert!(fence.has_passed(&terms));
    // A restarted flow, in this process or a new process.
    assert!(!FenceClock::default().has_passed(&terms));
}

/// A Seed may be corrected, or a server may be added to the zone, after the fence has begun. Until the new
/// server shows the destination, the server may extend a permit of the source.
#[tokio::test(start_paused = true)]
async fn a_server_that_was_not_asked_before_begins_the_fence_again() {
    let (fence, terms) = (FenceClock::default(), terms(Silence::Deactivate));
    let [known, new] = [1, 2].map(|last| std::net::SocketAddr::from(([192, 0, 2, last], 53)));
    fence.begin([known]);
    tokio::time::sleep(Duration::from_secs(20)).await;
    fence.begin([known, new]);
    let began = Instant::now();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(!fence.has_passed(&terms), "the first check passed 30 s ago");
    fence.begin([new]);
    fence.begin([known]);
    fence.pass(&terms).await.unwrap();
    let took = began.elapsed();
    assert!(
        took >= terms.fence().unwrap() && took < Duration::from_secs(25),
        "known servers begin no fence: {took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn no_time_fences_a_seed_that_tolerates_silence() {
    let (fence, terms) = (FenceClock::default(), terms(Silence::Tolerate));
    fence.begin([]);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(!fence.has_passed(&terms));
    assert!(fence.pass(&terms).await.is_err());
}

/// R7-60. Without the claim, the bucket would confirm the ownership to the source's etcd for ever.
#[test]
fn the_bucket_shows_what_the_provider_has_claimed_in_this_epoch() {
    let secret = |annotations| -> Secret {
        serde_json::from_value(json!({"metadata": {"name": SOURCE_SECRET, "annotations": annotations}}))
            .unwrap()
    };
    let claimed = secret(json!({OWNERSHIP_EPOCH: "3"}));
    let shown = Testimony::Claimed { epoch: 3 };
    assert_eq!(testimony(SOURCE_SECRET, Some(&claimed), false, 3), shown);
    for (secret, epoch) in [
        (None, 3),
        (Some(&secret(json!({}))), 3),
        (Some(&secret(json!({OWNERSHIP_EPOCH: "three"}))), 3),
        (Some(&claimed), 4),
        (Some(&claimed), 2),
    ] {
        let said = testimony(SOURCE_SECRET, secret, false, epoch);
        assert!(matches!(said, Testimony::Silent(_)), "{said:?}");
    }
    // The data were chosen after a fence that had begun with the claim; the Secret is deleted when etcd runs.
    assert_eq!(testimony(SOURCE_SECRET, None, true, 3), shown);
}

#[test]
fn a_fence_that_is_no_fence_is_noticed() {
    for (mutation, test, failure) in [
        (
            Mutation::FencePassesAtOnce,
            a_fence_counts_from_the_first_look_that_showed_it_everywhere as fn(),
            "nobody has seen the witnesses yet",
        ),
        (
            Mutation::FencePassesAtOnce,
            no_time_fences_a_seed_that_tolerates_silence,
            "!fence.has_passed(&terms)",
        ),
        (
            Mutation::FenceBeforeClaim,
            the_bucket_shows_what_the_provider_has_claimed_in_this_epoch,
            "Claimed",
        ),
    ] {
        mutation.assert_killed_by(test, failure);
    }
}
