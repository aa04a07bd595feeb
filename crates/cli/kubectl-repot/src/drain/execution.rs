//! Carries out the moves of a drain, within the bound.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    time::Duration,
};

use api::gardencore::Shoot;
use futures::future::{self, Either};
use kube::ResourceExt;
use placement::is_released;
use tokio::{sync::Semaphore, time::Instant};

use super::{
    classification::{MoveEnd, SlotQueue, decide_withdrawal, judge_progress},
    outcome::{MoveResult, ShootOutcome},
    plan::{Work, expected_seconds},
    request::DrainRequest,
};
use crate::{
    age::span,
    edit::edit,
    failure::Failure,
    follow::{Report, follow},
    hint::command_line,
    moves::{fails_on_the_way, request_move, wait_for_arrival, wait_for_stall},
    session::Session,
    takeover::FAILED_PROJECTS,
};

/// A drain under way.
struct Drain<'a> {
    session: &'a Session,
    request: DrainRequest<'a>,
    report: Report<'a>,
    total: usize,
    begun: Instant,
    ended: Cell<usize>,
    /// Namespaces of failed moves. The next shoots of the project would probably meet the same fault, and
    /// after failures of two projects all shoots would.
    failed: RefCell<BTreeSet<String>>,
}

/// Moves the shoots, at most `parallel` at a time. A move that was requested before this command, and that
/// fails or makes no progress, is awaited beside these moves: a tenant could otherwise stop each drain.
pub(super) async fn carry_out(
    session: &Session,
    request: DrainRequest<'_>,
    work: Vec<Work>,
    report: Report<'_>,
) -> Vec<ShootOutcome> {
    let drain = Drain {
        session,
        request,
        report,
        total: work.len(),
        begun: Instant::now(),
        ended: Cell::new(0),
        failed: RefCell::default(),
    };
    let lanes = Semaphore::new(request.parallel.max(1));
    let moves = work
        .into_iter()
        .map(|one| Box::pin(drain.move_in_lane(&lanes, one)));
    future::join_all(moves).await
}

/// Shoots that came to the seed between the plan and the cordon.
pub(super) async fn newcomers(
    session: &Session,
    from: &str,
    known: &[ShootOutcome],
) -> Result<Vec<ShootOutcome>, Failure> {
    let left = Box::pin(session.shoots_on(from)).await?;
    let is_known = |shoot: &&Shoot| {
        let namespace = shoot.namespace().unwrap_or_default();
        known
            .iter()
            .any(|one| one.shoot == shoot.name_any() && one.namespace == namespace)
    };
    let why = "came to the seed after the plan: repeat the command";
    let new = left
        .iter()
        .filter(|shoot| !is_released(*shoot) && !is_known(shoot));
    Ok(new
        .map(|shoot| ShootOutcome::new(shoot, None, MoveResult::LeftOut, why))
        .collect())
}

impl Drain<'_> {
    /// The lanes are given in the order of the work.
    async fn move_in_lane(&self, lanes: &Semaphore, work: Work) -> ShootOutcome {
        // An error means that the semaphore is closed, and no code closes the semaphore.
        let lane = lanes.acquire().await;
        if !work.is_under_way {
            return Box::pin(self.move_shoot(work)).await;
        }
        let shoot = work.shoot.clone();
        let stalls = Box::pin(wait_for_stall(self.session, &shoot, fails_on_the_way));
        match future::select(Box::pin(self.move_shoot(work)), stalls).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right(((), moves)) => {
                (self.report)(&format!(
                    "{}: the move makes no progress, and the next shoot does not wait for this move",
                    shoot.name_any()
                ));
                drop(lane);
                moves.await
            }
        }
    }

    async fn move_shoot(&self, work: Work) -> ShootOutcome {
        let outcome = |result: MoveResult, message: &str| {
            ShootOutcome::new(&work.shoot, Some(&work.to), result, message)
        };
        let namespace = work.shoot.namespace().unwrap_or_default();
        if !work.is_under_way && is_given_up(&self.failed.borrow(), &namespace) {
            return outcome(MoveResult::NotRequested, "a move before has failed");
        }
        let since = Instant::now();
        let mut end = if work.is_under_way {
            Box::pin(self.await_move(&work)).await
        } else {
            Box::pin(self.request_and_await(&work)).await
        };
        if end.is_err() && Box::pin(self.session.is_deleted(&work.shoot)).await {
            end = Ok(MoveEnd::Deleted);
        }
        self.ended.set(self.ended.get() + 1);
        match end {
            Ok(MoveEnd::Arrived) => {
                self.report_progress();
                let seconds = span(in_seconds(since.elapsed()));
                outcome(
                    MoveResult::Moved,
                    &format!("is on seed {} after {seconds}", work.to),
                )
            }
            Ok(MoveEnd::Deleted) => outcome(MoveResult::Deleted, "the Shoot was deleted"),
            Ok(MoveEnd::Obstacle(why)) | Err(Failure::Refused(why)) => outcome(MoveResult::Refused, &why),
            Err(Failure::Failed(why)) => {
                self.failed.borrow_mut().insert(namespace);
                outcome(MoveResult::Failed, &why)
            }
        }
    }

    /// A move that was requested before this command. The request of a different user stays.
    async fn await_move(&self, work: &Work) -> Result<MoveEnd, Failure> {
        Ok(match Box::pin(self.wait(work)).await? {
            MoveEnd::Obstacle(why) => MoveEnd::Obstacle(format!("{why}; {}", stays_requested(&work.shoot))),
            end => end,
        })
    }

    /// A request that meets an obstacle, or that the garden does not approve within the bound, is taken back,
    /// so that no move begins after the end of the command.
    async fn request_and_await(&self, work: &Work) -> Result<MoveEnd, Failure> {
        let moved = Box::pin(request_move(self.session, work.shoot.clone(), &work.to)).await?;
        let why = match Box::pin(self.wait(work)).await {
            Ok(MoveEnd::Obstacle(why)) => why,
            Ok(end) => return Ok(end),
            Err(failure) => {
                // The failure of the move counts, not the failure of the withdrawal.
                let withdrawn = Box::pin(self.withdraw(&moved.shoot, &work.to)).await;
                return Err(match withdrawn {
                    Ok(true) => failure.with_hint("the move had not begun, and the request was taken back"),
                    Ok(false) => failure,
                    Err(_) => failure.with_hint(&stays_requested(&work.shoot)),
                });
            }
        };
        let withdrawn = Box::pin(self.withdraw(&moved.shoot, &work.to)).await;
        if withdrawn.map_err(|failure| failure.with_hint(&stays_requested(&work.shoot)))? {
            return Ok(MoveEnd::Obstacle(format!("{why} The request was taken back.")));
        }
        // The obstacle has ended, and the move has begun.
        let never = std::future::pending();
        let (report, within) = (self.report, self.request.within);
        let arrival = wait_for_arrival(self.session, &moved.shoot, &work.to, within, report, never);
        Box::pin(arrival).await.map(|()| MoveEnd::Arrived)
    }

    /// Takes the request back. `false` if the move has begun.
    async fn withdraw(&self, moved: &Shoot, to: &str) -> Result<bool, Failure> {
        let from = self.request.from;
        let withdrawal = edit(self.session, moved.clone(), |shoot| {
            Ok(decide_withdrawal(shoot, from, to))
        });
        Ok(Box::pin(withdrawal).await?.unchanged.is_none())
    }

    /// A request that has only waited for a slot until the end of the bound meets an obstacle, and counts as
    /// no failed move.
    async fn wait(&self, work: &Work) -> Result<MoveEnd, Failure> {
        let namespace = work.shoot.namespace().unwrap_or_default();
        let name = work.shoot.name_any();
        let goal = format!("Shoot {namespace}/{name} on seed {}", work.to);
        let shoots = self.session.shoots(&namespace);
        let queue = SlotQueue::default();
        let waits = follow(shoots, &name, &goal, self.request.within, self.report, |shoot| {
            queue.observe(shoot);
            judge_progress(shoot, &work.to)
        });
        match Box::pin(waits).await {
            Err(Failure::Failed(why)) if queue.has_only_waited() => Ok(MoveEnd::Obstacle(why)),
            ended => ended,
        }
    }

    /// The rest of the duration follows from the moves of this drain.
    fn report_progress(&self) {
        let ended = self.ended.get();
        let elapsed = in_seconds(self.begun.elapsed());
        let rounds = ended.div_ceil(self.request.parallel.max(1));
        let each = elapsed / i64::try_from(rounds.max(1)).unwrap_or(1);
        let rest = expected_seconds(self.total.saturating_sub(ended), self.request.parallel, each);
        (self.report)(&format!(
            "{ended} of {} shoots are done after {}, about {} to go",
            self.total,
            span(elapsed),
            span(rest)
        ));
    }
}

/// The hint about a request that was not taken back.
fn stays_requested(shoot: &Shoot) -> String {
    format!(
        "the move stays requested: {} takes the request back",
        command_line(
            &format!("cancel {}", shoot.name_any()),
            shoot.namespace().as_deref()
        )
    )
}

/// Whether no move of the project is requested after failures in these projects. A tenant can make the own
/// move fail, and must not stop the drain.
fn is_given_up(failed: &BTreeSet<String>, namespace: &str) -> bool {
    failed.contains(namespace) || failed.len() >= FAILED_PROJECTS
}

fn in_seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_move_ends_the_moves_of_the_project_and_two_projects_end_all() {
        let given_up = |failed: &[&str], namespace: &str| {
            let failed = failed.iter().map(|&name| name.to_owned()).collect();
            is_given_up(&failed, namespace)
        };
        assert!(!given_up(&[], "x"));
        assert!(given_up(&["x"], "x") && !given_up(&["x"], "y"));
        assert!(given_up(&["x", "y"], "z"));
    }
}
