//! Work under a guard.

use std::sync::atomic::{AtomicU32, Ordering};

use futures::future::pending;
use tokio::time::{Instant, advance, sleep};

use super::{SECOND, TIME_IS_OVER, issued_for, refusal};
use crate::{NotPermitted, Permit};

#[tokio::test(start_paused = true)]
async fn it_is_valid_until_its_time_is_over_and_never_again() {
    let issuer = issued_for(10 * SECOND);
    let permit = issuer.permit();
    advance(9 * SECOND).await;
    assert!(issuer.extend(issuer.clock().now() + 10 * SECOND));
    advance(9 * SECOND).await;
    assert_eq!(permit.check(), Ok(()));
    advance(SECOND).await;
    assert_eq!(permit.check(), Err(refusal(TIME_IS_OVER)));
    let late = issuer.extend(issuer.clock().now() + 10 * SECOND);
    assert!(!late, "an extension came too late");
    assert!(!permit.is_valid());
}

#[tokio::test(start_paused = true)]
async fn it_ends_with_its_issuer_and_says_why() {
    let issuer = issued_for(10 * SECOND);
    let permit = issuer.permit();
    drop(issuer);
    assert_eq!(permit.check(), Err(refusal("whoever gave it is gone")));

    let issuer = issued_for(10 * SECOND);
    issuer.end("seed-b has it");
    issuer.end("told later");
    assert_eq!(issuer.permit().check(), Err(refusal("seed-b has it")));
}

#[tokio::test(start_paused = true)]
async fn a_guard_lets_work_end_and_gives_its_result() {
    let issuer = issued_for(10 * SECOND);
    let work = async {
        sleep(9 * SECOND).await;
        7
    };
    assert_eq!(issuer.permit().guard(work).await, Ok(7));
}

#[tokio::test(start_paused = true)]
async fn a_guard_ends_work_that_waits_at_the_very_time() {
    let issuer = issued_for(10 * SECOND);
    let start = Instant::now();
    let ended = issuer.permit().guard(pending::<()>()).await;
    assert_eq!(ended, Err(refusal(TIME_IS_OVER)));
    assert_eq!(start.elapsed(), 10 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_guard_goes_on_after_an_extension() {
    let issuer = issued_for(10 * SECOND);
    let permit = issuer.permit();
    let extending = async {
        sleep(9 * SECOND).await;
        assert!(issuer.extend(issuer.clock().now() + 10 * SECOND));
        pending::<()>().await;
    };
    let start = Instant::now();
    tokio::select! {
        ended = permit.guard(pending::<()>()) => assert_eq!(ended, Err(refusal(TIME_IS_OVER))),
        () = extending => {}
    }
    assert_eq!(start.elapsed(), 19 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_guard_ends_at_once_when_the_right_is_closed_or_ended() {
    for (close, why) in [(true, "it is being given back"), (false, "lost")] {
        let issuer = issued_for(10 * SECOND);
        let permit = issuer.permit();
        let start = Instant::now();
        let (ended, ()) = futures::join!(permit.guard(pending::<()>()), async {
            sleep(SECOND).await;
            if close {
                issuer.close();
            } else {
                issuer.end("lost");
            }
        });
        assert_eq!((ended, start.elapsed()), (Err(refusal(why)), SECOND));
    }
}

/// A stopped process: the timers have expired and the work is ready when the process resumes. The work must
/// not take that step.
#[tokio::test(start_paused = true)]
async fn work_that_is_ready_after_a_stop_takes_no_step() {
    let issuer = issued_for(10 * SECOND);
    let permit = issuer.permit();
    let steps = AtomicU32::new(0);
    let mut guarded = Box::pin(permit.guard(async {
        loop {
            steps.fetch_add(1, Ordering::SeqCst);
            sleep(SECOND).await;
        }
    }));
    assert!(futures::poll!(&mut guarded).is_pending());
    assert_eq!(steps.load(Ordering::SeqCst), 1);
    advance(3600 * SECOND).await;
    let ended: Result<(), NotPermitted> = guarded.await;
    assert_eq!(ended, Err(refusal(TIME_IS_OVER)));
    assert_eq!(steps.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_sole_permit_lasts() {
    let permit = Permit::sole("a test");
    let work = async {
        sleep(100 * 24 * 3600 * SECOND).await;
        7
    };
    assert_eq!(permit.guard(work).await, Ok(7));
}
