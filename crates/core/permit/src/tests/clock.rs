//! Time that counts suspension.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, advance};

use super::SECOND;
use crate::{Clock, Issuer};

/// A suspended machine: the timers stand still, and a successor takes the lock.
#[tokio::test(start_paused = true)]
async fn a_machine_that_was_suspended_has_lost_the_time() {
    let suspended = Arc::new(AtomicU64::new(7));
    let seconds = Arc::clone(&suspended);
    let clock = Clock::with_suspension(move || Duration::from_secs(seconds.load(Ordering::SeqCst)));
    let until = clock.now() + 10 * SECOND;
    let issuer = Issuer::new("a right", clock, until);
    let permit = issuer.permit();
    suspended.fetch_add(6, Ordering::SeqCst);
    assert!(permit.is_valid());
    assert_eq!(permit.valid_until() - Instant::now(), 4 * SECOND);
    suspended.fetch_add(4, Ordering::SeqCst);
    assert!(
        !permit.is_valid(),
        "its timers show the time at which it was issued"
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_suspension_it_goes_with_the_timers() {
    let clock = Clock::default();
    let before = clock.now();
    advance(3600 * SECOND).await;
    assert_eq!(clock.now().since(before), 3600 * SECOND);
    assert_eq!(before.since(clock.now()), Duration::ZERO);
}
