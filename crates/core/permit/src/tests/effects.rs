//! The issuer waits for effects under way, also after the drop of the caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::time::{Instant, sleep};

use super::{SECOND, issued_for};

/// A read that has an effect, for example a final snapshot.
async fn slow(done: Arc<AtomicU32>) {
    sleep(SECOND).await;
    done.fetch_add(1, Ordering::SeqCst);
}

#[tokio::test(start_paused = true)]
async fn a_clean_end_waits_for_an_effect_whose_caller_is_gone() {
    let (issuer, done) = (issued_for(10 * SECOND), Arc::default());
    let permit = issuer.permit();
    let mut effect = Box::pin(permit.effect(slow(Arc::clone(&done))));
    assert!(futures::poll!(&mut effect).is_pending());
    drop(effect);
    issuer.close();
    let start = Instant::now();
    assert!(issuer.settling().settle().await);
    assert_eq!((done.load(Ordering::SeqCst), start.elapsed()), (1, SECOND));
}

#[tokio::test(start_paused = true)]
async fn what_was_not_begun_is_not_waited_for() {
    let (issuer, done) = (issued_for(10 * SECOND), Arc::default());
    let permit = issuer.permit();
    drop(permit.effect(slow(Arc::clone(&done))));
    issuer.close();
    assert!(permit.effect(slow(Arc::clone(&done))).await.is_err());
    assert!(issuer.settling().settle().await);
    assert_eq!(done.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn an_effect_that_is_not_done_in_time_is_told() {
    let issuer = issued_for(60 * SECOND);
    let permit = issuer.permit();
    let mut effect = Box::pin(permit.effect(sleep(3600 * SECOND)));
    assert!(futures::poll!(&mut effect).is_pending());
    issuer.close();
    assert!(!issuer.settling().settle().await);
}
