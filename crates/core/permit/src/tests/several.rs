//! Several rights at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::future::pending;
use tokio::time::{Instant, advance, sleep};

use super::{SECOND, TIME_IS_OVER, issued_for, named, refusal};
use crate::Permit;

#[tokio::test(start_paused = true)]
async fn both_are_needed_and_the_earlier_deadline_counts() {
    for (first, second) in [(5, 10), (10, 5)] {
        let (one, other) = (issued_for(first * SECOND), issued_for(second * SECOND));
        let both = one.permit().and(&other.permit());
        assert_eq!(both.valid_until() - Instant::now(), 5 * SECOND);
        let start = Instant::now();
        assert_eq!(both.guard(pending::<()>()).await, Err(refusal(TIME_IS_OVER)));
        assert_eq!(start.elapsed(), 5 * SECOND);
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_any_ends_it_and_is_told() {
    let (lock, role) = (
        issued_for(60 * SECOND),
        named("the Cluster shoot--a--b", 60 * SECOND),
    );
    let both = lock.permit().and(&role.permit());
    let (ended, ()) = futures::join!(both.guard(pending::<()>()), async {
        sleep(SECOND).await;
        role.end("seed-b has it");
    });
    let refused = ended.unwrap_err();
    assert_eq!(
        (refused.by.as_str(), refused.why.as_str()),
        ("the Cluster shoot--a--b", "seed-b has it")
    );
    assert!(lock.permit().is_valid());
}

#[tokio::test(start_paused = true)]
async fn with_a_sole_permit_it_is_the_other_one() {
    let issuer = issued_for(5 * SECOND);
    let both = Permit::sole("a test").and(&issuer.permit());
    advance(5 * SECOND).await;
    assert_eq!(both.check(), Err(refusal(TIME_IS_OVER)));
}

/// The lock is not passed on while an effect is under way that began under a second right too. That holds
/// also if the second right has ended, because the outcome of the effect is unknown.
#[tokio::test(start_paused = true)]
async fn an_effect_that_lost_one_right_is_not_settled_for_the_other() {
    let (lock, role) = (issued_for(60 * SECOND), named("role", 60 * SECOND));
    let both = lock.permit().and(&role.permit());
    let done = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&done);
    let mut effect = Box::pin(both.effect(async move {
        sleep(SECOND).await;
        counter.fetch_add(1, Ordering::SeqCst);
    }));
    assert!(futures::poll!(&mut effect).is_pending());
    role.end("lost");
    assert!(effect.await.is_err());
    lock.close();
    assert!(!lock.settling().settle().await);
    assert_eq!(done.load(Ordering::SeqCst), 0, "it took a step without the right");
}
