//! The guard and the fence, on paused time: nothing happens after the end.

#![allow(clippy::unwrap_used, clippy::unchecked_time_subtraction)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::future::pending;
use http::Request;
use tokio::time::{Instant, advance, sleep};
use tower::{Layer, Service, service_fn};

use crate::under_way::Finishing;
use crate::{Held, NotHeld};

const SECOND: Duration = Duration::from_secs(1);

fn held_for(duration: Duration) -> Held {
    Held::new("ns/lock".to_owned(), Instant::now() + duration)
}

fn refusal() -> NotHeld {
    NotHeld {
        lock: "ns/lock".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_valid_until_its_time_is_over_and_never_again() {
    let held = held_for(10 * SECOND);
    advance(9 * SECOND).await;
    assert!(held.extend(Instant::now() + 10 * SECOND));
    advance(9 * SECOND).await;
    assert_eq!(held.check(), Ok(()));
    advance(SECOND).await;
    assert_eq!(held.check(), Err(refusal()));
    assert!(
        !held.extend(Instant::now() + 10 * SECOND),
        "a renewal came too late"
    );
    assert!(!held.is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_guard_lets_work_end_and_gives_its_result() {
    let held = held_for(10 * SECOND);
    assert_eq!(
        held.guard(async {
            sleep(9 * SECOND).await;
            7
        })
        .await,
        Ok(7)
    );
}

#[tokio::test(start_paused = true)]
async fn a_guard_ends_work_that_waits_at_the_very_time() {
    let held = held_for(10 * SECOND);
    let start = Instant::now();
    assert_eq!(held.guard(pending::<()>()).await, Err(refusal()));
    assert_eq!(start.elapsed(), 10 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_guard_goes_on_after_a_renewal() {
    let held = held_for(10 * SECOND);
    let renewing = async {
        sleep(9 * SECOND).await;
        held.extend(Instant::now() + 10 * SECOND);
        pending::<()>().await;
    };
    let start = Instant::now();
    tokio::select! {
        ended = held.guard(pending::<()>()) => assert_eq!(ended, Err(refusal())),
        () = renewing => {}
    }
    assert_eq!(start.elapsed(), 19 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_guard_ends_at_once_when_the_lock_is_given_back() {
    let held = held_for(10 * SECOND);
    let start = Instant::now();
    let (ended, ()) = futures::join!(held.guard(pending::<()>()), async {
        sleep(SECOND).await;
        held.end();
    });
    assert_eq!(ended, Err(refusal()));
    assert_eq!(start.elapsed(), SECOND);
}

/// A stopped process: its timers are over and its work is ready when it goes on. The work must not take that step.
#[tokio::test(start_paused = true)]
async fn work_that_is_ready_after_a_stop_takes_no_step() {
    let held = held_for(10 * SECOND);
    let steps = AtomicU32::new(0);
    let mut guarded = Box::pin(held.guard(async {
        loop {
            steps.fetch_add(1, Ordering::SeqCst);
            sleep(SECOND).await;
        }
    }));
    assert!(futures::poll!(&mut guarded).is_pending());
    assert_eq!(steps.load(Ordering::SeqCst), 1);
    advance(3600 * SECOND).await;
    let ended: Result<(), NotHeld> = guarded.await;
    assert_eq!(ended, Err(refusal()));
    assert_eq!(steps.load(Ordering::SeqCst), 1);
}

fn write() -> Request<()> {
    Request::put("/").body(()).unwrap()
}

/// A service that sends in its second step, as clients do that queue, connect or retry first.
fn slow_service(
    sent: &Arc<AtomicU32>,
) -> impl Service<Request<()>, Response = (), Error = std::io::Error, Future: Send + 'static> + use<> {
    let sent = Arc::clone(sent);
    service_fn(move |_| {
        let sent = Arc::clone(&sent);
        async move {
            sleep(SECOND).await;
            sent.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_fence_lets_requests_through_while_the_lock_is_held() {
    let (held, sent) = (held_for(10 * SECOND), Arc::default());
    held.layer()
        .layer(slow_service(&sent))
        .call(write())
        .await
        .unwrap();
    assert_eq!(sent.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_fence_refuses_a_request_afterwards() {
    let (held, sent) = (held_for(10 * SECOND), Arc::default());
    let mut client = held.layer().layer(slow_service(&sent));
    advance(10 * SECOND).await;
    let error = client.call(write()).await.unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&refusal()));
    assert_eq!(sent.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_fence_holds_back_a_request_that_was_waiting_during_a_stop() {
    let (held, sent) = (held_for(10 * SECOND), Arc::default());
    let mut client = held.layer().layer(slow_service(&sent));
    let mut request = client.call(write());
    assert!(futures::poll!(&mut request).is_pending());
    advance(3600 * SECOND).await;
    let error = request.await.unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&refusal()));
    assert_eq!(sent.load(Ordering::SeqCst), 0, "it left after the lock was lost");
}

/// No request leaves between the end of the work and the end of the lock; one that has left is not cut off.
#[tokio::test(start_paused = true)]
async fn a_fence_that_is_closed_begins_nothing_and_keeps_what_was_begun() {
    let (held, sent) = (held_for(10 * SECOND), Arc::default());
    let mut client = held.layer().layer(slow_service(&sent));
    let mut begun = client.call(write());
    let waits = client.call(write());
    assert!(futures::poll!(&mut begun).is_pending());
    held.close();
    for late in [begun, waits, client.call(write())] {
        assert_eq!(late.await.unwrap_err().downcast_ref(), Some(&refusal()));
    }
    assert!(held.in_time(), "the lock is still held");
    let start = Instant::now();
    assert!(Finishing::new(held).finish().await);
    assert_eq!((sent.load(Ordering::SeqCst), start.elapsed()), (1, SECOND));
}

/// Whose time is over may not even finish.
#[tokio::test(start_paused = true)]
async fn what_is_finished_ends_with_the_lock() {
    let (held, sent) = (held_for(10 * SECOND), Arc::default());
    let mut client = held.layer().layer(slow_service(&sent));
    let mut begun = client.call(write());
    assert!(futures::poll!(&mut begun).is_pending());
    drop(begun);
    held.close();
    advance(3600 * SECOND).await;
    assert!(!Finishing::new(held).finish().await);
    assert_eq!(sent.load(Ordering::SeqCst), 0);
}
