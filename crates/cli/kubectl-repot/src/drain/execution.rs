//! Carries out the moves of a drain, within the bound.

use std::{
    cell::{Cell, RefCell},
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
use placement::{Journey, is_released, journey};
use tokio::{sync::watch, time::Instant};

use super::{
    classification::{MoveEnd, decide_withdrawal, judge_begin, judge_progress, waits_for_slot},
    failures::FailedMoves,
    lanes::Lanes,
    outcome::{MoveResult, ShootOutcome},
    plan::{Work, expected_seconds},
    request::DrainRequest,
    slot_use::{end_queue, report_queue, use_up_slot},
};
use crate::{
    age::span,
    edit::edit,
    failure::Failure,
    follow::{Report, Step, follow},
    hint::command_line,
    moves::{fails_on_the_way, request_move, wait_for_arrival, wait_for_delay},
    session::Session,
    silence::SilenceWatch,
};

/// A drain under way.
struct Drain<'a> {
    session: &'a Session,
    request: DrainRequest<'a>,
    report: Report<'a>,
    total: usize,
    begun: Instant,
    ended: Cell<usize>,
    arrived: Cell<usize>,
    failed: RefCell<FailedMoves>,
    /// The reported reason of moves that are not requested.
    given_up: Cell<Option<&'static str>>,
}

/// A move that the next shoots do not wait for, and that goes on. `index`: the position in the plan.
struct DelayedMove<'a> {
    index: usize,
    namespace: String,
    shoot: String,
    place: LatePlace,
    /// Whether the move waits for a slot.
    queue: watch::Receiver<bool>,
    ends: LocalBoxFuture<'a, ShootOutcome>,
}

/// The place of a delayed move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LatePlace {
    /// The move was requested before this command, and holds no place.
    OfEarlierCommand,
    /// The move counts for the bound of the moves under way.
    HoldsSlot,
    /// The garden has given the slot of the move to a different shoot.
    SlotIsFree,
}

/// The news about a move. `index`: the position in the plan.
enum News<'a> {
    /// The move has ended.
    Ended { index: usize, outcome: ShootOutcome },
    /// A move that the next shoots do not wait for has ended.
    EndedLate {
        index: usize,
        outcome: ShootOutcome,
        place: LatePlace,
    },
    /// The next shoots do not wait for the move.
    Delayed(DelayedMove<'a>),
    /// A delayed move holds no slot of the destination any more.
    SlotFreed(DelayedMove<'a>),
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
        arrived: Cell::new(0),
        failed: RefCell::default(),
        given_up: Cell::new(None),
    };
    let mut lanes = Lanes::new(work, request.parallel);
    let (mut running, mut outcomes, mut held_up) = (FuturesUnordered::new(), Vec::new(), 0);
    loop {
        while let Some((index, work)) = lanes.begin_next() {
            running.push(drain.move_until_delay(index, work).boxed_local());
        }
        held_up = drain.report_held_up(lanes.count_held_up(), held_up);
        match running.next().await {
            Some(News::Ended { index, outcome }) => {
                lanes.end(&outcome.namespace);
                note_arrival(&mut lanes, &outcome);
                outcomes.push((index, outcome));
            }
            Some(News::EndedLate {
                index,
                outcome,
                place,
            }) => {
                if place != LatePlace::OfEarlierCommand {
                    lanes.end_delayed(&outcome.namespace, place == LatePlace::HoldsSlot);
                }
                note_arrival(&mut lanes, &outcome);
                outcomes.push((index, outcome));
            }
            Some(News::Delayed(delayed)) => {
                let is_of_this_command = delayed.place != LatePlace::OfEarlierCommand;
                lanes.delay(&delayed.namespace, is_of_this_command);
                drain.report_delay(&delayed);
                running.push(await_delayed(delayed, request.slot_within).boxed_local());
            }
            Some(News::SlotFreed(delayed)) => {
                lanes.free_slot(&delayed.namespace);
                running.push(await_delayed(delayed, request.slot_within).boxed_local());
            }
            None => break,
        }
    }
    outcomes.sort_by_key(|(index, _)| *index);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

fn note_arrival(lanes: &mut Lanes, outcome: &ShootOutcome) {
    if outcome.result == MoveResult::Moved {
        lanes.note_arrival(&outcome.namespace);
    }
}

/// Awaits a delayed move, or the time that the move holds a slot.
async fn await_delayed(delayed: DelayedMove<'_>, slot_within: Duration) -> News<'_> {
    let DelayedMove {
        index,
        namespace,
        shoot,
        place,
        queue,
        ends,
    } = delayed;
    let awaited = queue.clone();
    let slot_is_freed = pin!(async move {
        if place == LatePlace::HoldsSlot {
            use_up_slot(awaited, slot_within).await;
        } else {
            future::pending::<()>().await;
        }
    });
    match future::select(ends, slot_is_freed).await {
        Either::Left((outcome, _)) => News::EndedLate {
            index,
            outcome,
            place,
        },
        Either::Right(((), ends)) => News::SlotFreed(DelayedMove {
            index,
            namespace,
            shoot,
            place: LatePlace::SlotIsFree,
            queue,
            ends,
        }),
    }
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
        let watched = work.shoot.clone();
        let place = if work.is_under_way {
            LatePlace::OfEarlierCommand
        } else {
            LatePlace::HoldsSlot
        };
        let (namespace, shoot) = (watched.namespace().unwrap_or_default(), watched.name_any());
        let (reported, queue) = watch::channel(false);
        let ends = self.move_shoot(work, reported).boxed_local();
        let within = self.request.lane_within;
        let delayed = pin!(wait_for_delay(self.session, &watched, within, fails_on_the_way));
        match future::select(ends, delayed).await {
            Either::Left((outcome, _)) => News::Ended { index, outcome },
            Either::Right((_, ends)) => News::Delayed(DelayedMove {
                index,
                namespace,
                shoot,
                place,
                queue,
                ends,
            }),
        }
    }

    /// `queue`: receives whether the move waits for a slot.
    async fn move_shoot(&self, work: Work, queue: watch::Sender<bool>) -> ShootOutcome {
        let outcome = |result: MoveResult, message: &str| {
            ShootOutcome::new(&work.shoot, Some(&work.to), result, message)
        };
        let namespace = work.shoot.namespace().unwrap_or_default();
        let reason = self.failed.borrow().give_up_reason(&namespace);
        if let Some(reason) = reason.filter(|_| !work.is_under_way) {
            let given_up = outcome(MoveResult::NotRequested, reason);
            // A single line for many shoots with the same reason.
            let is_reported = self.given_up.replace(Some(reason)) == Some(reason);
            self.conclude(&given_up, is_reported);
            return given_up;
        }
        // A failure of an earlier request shows no fault of the requests of this command.
        let number = (!work.is_under_way).then(|| self.failed.borrow_mut().note_request());
        let since = Instant::now();
        let mut end = if work.is_under_way {
            Box::pin(self.await_move(&work, &queue)).await
        } else {
            Box::pin(self.request_and_await(&work, &queue)).await
        };
        if end.is_err() && Box::pin(self.session.is_deleted(&work.shoot)).await {
            end = Ok(MoveEnd::Deleted);
        }
        let outcome = match end {
            Ok(MoveEnd::Arrived) => {
                if let Some(number) = number {
                    self.failed.borrow_mut().note_arrival(number);
                }
                let seconds = span(in_seconds(since.elapsed()));
                outcome(
                    MoveResult::Moved,
                    &format!("is on seed {} after {seconds}", work.to),
                )
            }
            Ok(MoveEnd::Deleted) => outcome(MoveResult::Deleted, "the Shoot was deleted"),
            Ok(MoveEnd::Obstacle(why)) | Err(Failure::Refused(why)) => outcome(MoveResult::Refused, &why),
            Err(Failure::Failed(why)) => {
                if let Some(number) = number {
                    self.failed.borrow_mut().note_failure(&namespace, number);
                }
                outcome(MoveResult::Failed, &why)
            }
        };
        self.conclude(&outcome, false);
        outcome
    }

    /// Counts the end of a move, and reports the end at once: the table of the results comes after the last
    /// move.
    fn conclude(&self, outcome: &ShootOutcome, is_reported: bool) {
        self.ended.set(self.ended.get() + 1);
        if !is_reported {
            (self.report)(&outcome.row().join(": "));
        }
        if outcome.result == MoveResult::Moved {
            self.arrived.set(self.arrived.get() + 1);
            self.report_progress();
        }
    }

    /// A move that was requested before this command. The request of a different user stays.
    async fn await_move(&self, work: &Work, queue: &watch::Sender<bool>) -> Result<MoveEnd, Failure> {
        Ok(match Box::pin(self.wait(work, queue)).await? {
            MoveEnd::Obstacle(why) => MoveEnd::Obstacle(format!("{why}; {}", stays_requested(&work.shoot))),
            end => end,
        })
    }

    /// A request that meets an obstacle, or that the garden does not approve within the bound, is taken back,
    /// so that no move begins after the end of the command.
    async fn request_and_await(&self, work: &Work, queue: &watch::Sender<bool>) -> Result<MoveEnd, Failure> {
        let moved = Box::pin(request_move(self.session, work.shoot.clone(), &work.to)).await?;
        let why = match Box::pin(self.wait(work, queue)).await {
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

    /// The bound counts for the wait for the approval, and again from the approval on. At the end of the
    /// bound a request can wait for a slot: the garden has given no approval, or has withdrawn the approval
    /// of a move that the source has not begun.
    async fn wait(&self, work: &Work, queue: &watch::Sender<bool>) -> Result<MoveEnd, Failure> {
        let note = |shoot: Option<&Shoot>| report_queue(queue, shoot.is_some_and(waits_for_slot));
        let begin = self.follow_move(work, |shoot| {
            note(shoot);
            judge_begin(shoot, &work.to)
        });
        let end = match Box::pin(begin).await {
            Ok(Some(end)) => Ok(end),
            Ok(None) => {
                let progress = self.follow_move(work, |shoot| {
                    note(shoot);
                    judge_progress(shoot, &work.to)
                });
                Box::pin(progress).await
            }
            Err(failure) => Err(failure),
        };
        end_queue(end, queue)
    }

    async fn follow_move<T>(
        &self,
        work: &Work,
        check: impl Fn(Option<&Shoot>) -> Result<Step<T>, Failure>,
    ) -> Result<T, Failure> {
        let namespace = work.shoot.namespace().unwrap_or_default();
        let name = work.shoot.name_any();
        let goal = format!("Shoot {namespace}/{name} on seed {}", work.to);
        let (within, shoots) = (self.request.within, self.session.shoots(&namespace));
        let silence = SilenceWatch::default();
        let noted = |sentence: &str| {
            silence.note_change();
            (self.report)(sentence);
        };
        let followed = follow(shoots, &name, &goal, within, &noted, |shoot| {
            silence.note_seed(shoot.and_then(working_seed));
            check(shoot)
        });
        let label = format!("{namespace}/{name}");
        Box::pin(silence.observe(self.session, &label, self.report, followed)).await
    }

    fn report_delay(&self, delayed: &DelayedMove<'_>) {
        let (namespace, shoot) = (&delayed.namespace, &delayed.shoot);
        let next = match delayed.place {
            LatePlace::OfEarlierCommand => "the next shoots do",
            LatePlace::HoldsSlot | LatePlace::SlotIsFree => "shoots of further projects do",
        };
        (self.report)(&format!(
            "{namespace}/{shoot}: the move fails, makes no progress or takes long, and {next} not wait for this move"
        ));
    }

    /// Reports shoots that wait for delayed moves alone, once. `before`: the number before the last news.
    fn report_held_up(&self, count: usize, before: usize) -> usize {
        if count > 0 && before == 0 {
            (self.report)(&format!(
                "{count} shoots wait for the delayed moves above. The next begins when a delayed move ends; a delayed move that \
                 waits for no slot holds up further projects for {} at most. To go on before, interrupt the command, and \
                 leave the shoots of these moves out with --exclude",
                span(in_seconds(self.request.slot_within))
            ));
        }
        count
    }

    /// The rest of the duration follows from the moves of this drain.
    fn report_progress(&self) {
        let (ended, arrived) = (self.ended.get(), self.arrived.get());
        let elapsed = in_seconds(self.begun.elapsed());
        let rounds = arrived.div_ceil(self.request.parallel.max(1));
        let each = elapsed / i64::try_from(rounds.max(1)).unwrap_or(1);
        let rest = expected_seconds(self.total.saturating_sub(ended), self.request.parallel, each);
        let without_arrival = match ended.saturating_sub(arrived) {
            0 => String::new(),
            count => format!(", {count} have not,"),
        };
        (self.report)(&format!(
            "{arrived} of {} shoots have moved{without_arrival} after {}, about {} to go",
            self.total,
            span(elapsed),
            span(rest)
        ));
    }
}

/// The seed that works on the move, once the move has begun.
fn working_seed(shoot: &Shoot) -> Option<String> {
    let acting = shoot.status.as_ref()?.seed_name.clone();
    acting.filter(|seed| !seed.is_empty() && journey(shoot) != Journey::Settled)
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

fn in_seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}
