//! Carries out the moves of a drain, within the bound.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    pin::pin,
    time::Duration,
};

use api::gardencore::Shoot;
use futures::{
    FutureExt, StreamExt,
    future::{self, Either, LocalBoxFuture},
    stream::FuturesUnordered,
};
use kube::ResourceExt;
use placement::is_released;
use tokio::time::Instant;

use super::{
    classification::{MoveEnd, decide_withdrawal, judge_begin, judge_progress, waits_for_slot},
    lanes::Lanes,
    outcome::{MoveResult, ShootOutcome},
    plan::{Work, expected_seconds},
    request::DrainRequest,
};
use crate::{
    age::span,
    edit::edit,
    failure::Failure,
    follow::{Report, Step, follow},
    hint::command_line,
    moves::{fails_on_the_way, request_move, wait_for_arrival, wait_for_delay},
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

/// The news about a move. `index`: the position in the plan.
enum News<'a> {
    /// The move has ended.
    Ended { index: usize, outcome: ShootOutcome },
    /// A move that the next shoots do not wait for has ended.
    EndedLate {
        index: usize,
        outcome: ShootOutcome,
        is_under_way: bool,
    },
    /// The next shoots do not wait for the move, and the move goes on.
    Delayed {
        index: usize,
        namespace: String,
        shoot: String,
        /// Whether the move was requested before this command.
        is_under_way: bool,
        ends: LocalBoxFuture<'a, ShootOutcome>,
    },
}

/// Moves the shoots, at most `parallel` at a time. A move that fails, makes no progress, or takes longer than
/// `lane_within` is awaited beside these moves: a tenant could otherwise stop each drain.
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
    let mut lanes = Lanes::new(work, request.parallel);
    let (mut running, mut outcomes) = (FuturesUnordered::new(), Vec::new());
    loop {
        while let Some((index, work)) = lanes.begin_next() {
            running.push(drain.move_until_delay(index, work).boxed_local());
        }
        match running.next().await {
            Some(News::Ended { index, outcome }) => {
                lanes.end(&outcome.namespace);
                outcomes.push((index, outcome));
            }
            Some(News::EndedLate {
                index,
                outcome,
                is_under_way,
            }) => {
                if !is_under_way {
                    lanes.end_delayed(&outcome.namespace);
                }
                outcomes.push((index, outcome));
            }
            Some(News::Delayed {
                index,
                namespace,
                shoot,
                is_under_way,
                ends,
            }) => {
                lanes.delay(&namespace, !is_under_way);
                report(&format!(
                    "{namespace}/{shoot}: the move fails, makes no progress or takes long, and {} not wait for this move",
                    if is_under_way {
                        "the next shoots do"
                    } else {
                        "shoots of further projects do"
                    }
                ));
                let late = ends.map(move |outcome| News::EndedLate {
                    index,
                    outcome,
                    is_under_way,
                });
                running.push(late.boxed_local());
            }
            None => break,
        }
    }
    outcomes.sort_by_key(|(index, _)| *index);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Shoots that came to the seed between the plan and the cordon. A shoot on the seed with the name of a shoot
/// that has left is a new Shoot.
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
            .any(|one| !one.result.has_left() && one.shoot == shoot.name_any() && one.namespace == namespace)
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
    /// Moves a shoot until the end, or until the next shoots do not wait any more.
    async fn move_until_delay(&self, index: usize, work: Work) -> News<'_> {
        let (watched, is_under_way) = (work.shoot.clone(), work.is_under_way);
        let (namespace, shoot) = (watched.namespace().unwrap_or_default(), watched.name_any());
        let ends = self.move_shoot(work).boxed_local();
        let within = self.request.lane_within;
        let delayed = pin!(wait_for_delay(self.session, &watched, within, fails_on_the_way));
        match future::select(ends, delayed).await {
            Either::Left((outcome, _)) => News::Ended { index, outcome },
            Either::Right((_, ends)) => News::Delayed {
                index,
                namespace,
                shoot,
                is_under_way,
                ends,
            },
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

    /// The bound counts for the wait for the approval, and again from the approval on. A request that waits
    /// for a slot until the end of the bound meets an obstacle, and counts as no failed move.
    async fn wait(&self, work: &Work) -> Result<MoveEnd, Failure> {
        let waits = Cell::new(false);
        let begin = self.follow_move(work, |shoot| {
            waits.set(shoot.is_some_and(waits_for_slot));
            judge_begin(shoot, &work.to)
        });
        match Box::pin(begin).await {
            Ok(None) => {}
            Ok(Some(end)) => return Ok(end),
            Err(Failure::Failed(why)) if waits.get() => return Ok(MoveEnd::Obstacle(why)),
            Err(failure) => return Err(failure),
        }
        Box::pin(self.follow_move(work, |shoot| judge_progress(shoot, &work.to))).await
    }

    async fn follow_move<T>(
        &self,
        work: &Work,
        check: impl Fn(Option<&Shoot>) -> Result<Step<T>, Failure>,
    ) -> Result<T, Failure> {
        let namespace = work.shoot.namespace().unwrap_or_default();
        let name = work.shoot.name_any();
        let goal = format!("Shoot {namespace}/{name} on seed {}", work.to);
        let shoots = self.session.shoots(&namespace);
        Box::pin(follow(
            shoots,
            &name,
            &goal,
            self.request.within,
            self.report,
            check,
        ))
        .await
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
