//! The time that a delayed move can hold a slot of the destination.

use std::{future::pending, time::Duration};

use tokio::{sync::watch, time::timeout};

use super::classification::MoveEnd;
use crate::failure::Failure;

/// Reports whether a move waits for a slot.
pub(super) fn report_queue(queue: &watch::Sender<bool>, waits: bool) {
    queue.send_if_modified(|waited| {
        let is_changed = *waited != waits;
        *waited = waits;
        is_changed
    });
}

/// The end of a wait for a move. A request that waits for a slot at the end of the bound meets an obstacle,
/// and counts as no failed move. The wait for the slot ends, too: the queue is not reported any more, and a
/// move that has begun meanwhile would never use up the slot.
pub(super) fn end_queue(
    end: Result<MoveEnd, Failure>,
    queue: &watch::Sender<bool>,
) -> Result<MoveEnd, Failure> {
    let waited = *queue.borrow();
    report_queue(queue, false);
    match end {
        Err(Failure::Failed(why)) if waited => Ok(MoveEnd::Obstacle(why)),
        end => end,
    }
}

/// Ends when the move has not waited for a slot for this time without a pause. Each further request would
/// only lengthen the queue before. A move that has ended uses up no slot, so the future stays pending.
pub(super) async fn use_up_slot(mut queue: watch::Receiver<bool>, within: Duration) {
    loop {
        let waits = *queue.borrow_and_update();
        let changed = if waits {
            queue.changed().await
        } else {
            match timeout(within, queue.changed()).await {
                Ok(changed) => changed,
                Err(_) => return,
            }
        };
        if changed.is_err() {
            pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, advance};

    use super::*;

    const WITHIN: Duration = Duration::from_secs(900);
    const SECOND: Duration = Duration::from_secs(1);

    /// Otherwise requests of large shoots queue for the slots, and end by the bound of the move.
    #[tokio::test(start_paused = true)]
    async fn a_move_uses_up_the_slot_from_the_end_of_the_queue() {
        let (queue, slot) = watch::channel(false);
        let begun = Instant::now();
        let moves = async {
            advance(WITHIN / 3).await;
            report_queue(&queue, true);
            advance(WITHIN * 4).await;
            report_queue(&queue, false);
            pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = use_up_slot(slot, WITHIN) => {}
            () = moves => {}
        }
        let (elapsed, expected) = (begun.elapsed(), WITHIN / 3 + WITHIN * 5);
        assert!(
            elapsed >= expected && elapsed < expected + SECOND,
            "{elapsed:?} {expected:?}"
        );
    }

    /// Otherwise a move that begins before the withdrawal of the request holds up further projects until the
    /// end of the move.
    #[tokio::test(start_paused = true)]
    async fn a_move_that_begins_after_the_bound_uses_up_the_slot() {
        let (queue, slot) = watch::channel(false);
        report_queue(&queue, true);
        let late = || Err(Failure::failed("not within 1800 s"));
        let obstacle = Ok(MoveEnd::Obstacle("not within 1800 s".to_owned()));
        assert_eq!(end_queue(late(), &queue), obstacle);
        let used_up = timeout(WITHIN * 2, use_up_slot(slot, WITHIN)).await;
        assert!(used_up.is_ok());
        // A move that waits for no slot has failed.
        assert_eq!(end_queue(late(), &queue), late());
    }

    #[tokio::test(start_paused = true)]
    async fn a_move_that_has_ended_frees_no_slot() {
        let (queue, slot) = watch::channel(false);
        drop(queue);
        let freed = timeout(WITHIN * 2, use_up_slot(slot, WITHIN)).await;
        assert!(freed.is_err());
    }
}
