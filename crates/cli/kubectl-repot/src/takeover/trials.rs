//! Takeovers of all shoots of a dead seed: trials, then the rest. A trial shows the faults that all shoots
//! share. A tenant can make the takeover of an own shoot fail, and must not hold up the shoots of further
//! tenants.

use std::{collections::BTreeSet, pin::pin};

use api::gardencore::Shoot;
use futures::{
    FutureExt, StreamExt,
    future::{self, Either, LocalBoxFuture},
    stream::FuturesUnordered,
};

use super::{
    order::{ProjectStates, failed_trials_limit, next_of_rest, next_trial},
    report::TakeoverReport,
    settings::TakeoverSettings,
    shoot_result::ShootResult,
    single::carry_out,
};
use crate::{
    failure::Failure,
    follow::Report,
    moves::{Delay, fails_on_seed, wait_for_delay},
    session::Session,
};

/// A shoot with the report that was approved.
type Approved = (Shoot, TakeoverReport);

/// The news about a takeover.
enum News<'a> {
    /// The takeover has ended.
    Ended(ShootResult),
    /// A takeover that the next shoots do not wait for has ended.
    EndedLate(ShootResult),
    /// The next shoots do not wait for the takeover, and the takeover goes on.
    Delayed {
        namespace: String,
        shoot: String,
        delay: Delay,
        ends: LocalBoxFuture<'a, ShootResult>,
    },
}

/// The shoots that follow a takeover that the next shoots do not wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextStep {
    /// A trial has succeeded, and the rest follows.
    Rest,
    /// A shoot of a further project is the next trial.
    FurtherTrial,
    /// No further trial begins, and the rest waits for the trials under way.
    Wait,
}

/// The takeovers under way, and the shoots that wait.
struct Takeovers<'a> {
    session: &'a Session,
    settings: TakeoverSettings<'a>,
    report: Report<'a>,
    /// Shoots that no takeover was requested for, in order.
    waiting: Vec<Approved>,
    running: FuturesUnordered<LocalBoxFuture<'a, News<'a>>>,
    /// Namespaces of the shoots that hold a lane. A delayed takeover runs on and holds no lane.
    lanes: Vec<String>,
    /// Namespaces of shoots with a takeover that has failed or stalls.
    failing: BTreeSet<String>,
    /// Namespaces of shoots with a takeover that makes progress and takes long.
    slow: BTreeSet<String>,
    /// Namespaces of shoots that are taken over. The rest follows the first of these shoots.
    proven: BTreeSet<String>,
    /// The number of failing projects before no further trial begins.
    failed_trials_limit: usize,
    results: Vec<ShootResult>,
    late: Vec<ShootResult>,
}

/// Takes over the first shoot as a trial, and then the rest, `parallel` at a time.
///
/// As soon as the trial fails, reports an error, or makes no progress, a shoot of a different project is the
/// next trial, up to [`failed_trials_limit`]. The rest follows the first trial that succeeds. A takeover that
/// fails or makes no progress holds no lane and stays watched, and the further shoots of the project come
/// last. A takeover that makes progress holds a lane for a bounded time, and a slow trial is followed by a
/// trial of each further project.
pub(super) async fn take_over_in_order(
    session: &Session,
    parallel: usize,
    settings: TakeoverSettings<'_>,
    ordered: Vec<Approved>,
    report: Report<'_>,
) -> Vec<ShootResult> {
    let mut takeovers = Takeovers {
        session,
        settings,
        report,
        failed_trials_limit: failed_trials_limit(ordered.len()),
        waiting: ordered,
        running: FuturesUnordered::new(),
        lanes: Vec::new(),
        failing: BTreeSet::new(),
        slow: BTreeSet::new(),
        proven: BTreeSet::new(),
        results: Vec::new(),
        late: Vec::new(),
    };
    loop {
        if takeovers.proven.is_empty() {
            takeovers.begin_trial();
        } else {
            takeovers.fill_lanes(parallel.max(1));
        }
        if !takeovers.advance().await {
            return takeovers.into_results();
        }
    }
}

impl Takeovers<'_> {
    /// Begins the next trial, unless a trial makes progress.
    fn begin_trial(&mut self) {
        if self.lanes.is_empty()
            && let Some(index) = next_trial(
                &self.waiting,
                self.failed_trials_limit,
                &self.failing,
                &self.slow,
                |(shoot, _)| shoot,
            )
        {
            self.begin(index);
        }
    }

    fn fill_lanes(&mut self, parallel: usize) {
        while self.lanes.len() < parallel
            && let Some(index) = self.next_of_rest(parallel)
        {
            self.begin(index);
        }
    }

    fn next_of_rest(&self, parallel: usize) -> Option<usize> {
        let projects = ProjectStates {
            failing: &self.failing,
            slow: &self.slow,
            proven: &self.proven,
            held: &self.lanes,
        };
        next_of_rest(&self.waiting, projects, parallel, |(shoot, _)| shoot)
    }

    fn next_step(&self) -> NextStep {
        if !self.proven.is_empty() {
            return NextStep::Rest;
        }
        step_of_trials(
            &self.waiting,
            self.failed_trials_limit,
            &self.failing,
            &self.slow,
            |(shoot, _)| shoot,
        )
    }

    fn begin(&mut self, index: usize) {
        let approved = self.waiting.remove(index);
        self.lanes.push(approved.1.namespace.clone());
        let takeover = take_over_until_delay(self.session, self.settings, approved, self.report);
        self.running.push(takeover.boxed_local());
    }

    /// Waits for the next news about a takeover. `false` once no takeover runs.
    async fn advance(&mut self) -> bool {
        match self.running.next().await {
            Some(News::Ended(result)) => {
                self.release_lane(&result.namespace);
                self.record(&result);
                self.results.push(result);
            }
            Some(News::EndedLate(result)) => {
                self.record(&result);
                self.late.push(result);
            }
            Some(News::Delayed {
                namespace,
                shoot,
                delay,
                ends,
            }) => {
                self.release_lane(&namespace);
                let delayed = match delay {
                    Delay::Stalls => &mut self.failing,
                    Delay::IsSlow => &mut self.slow,
                };
                delayed.insert(namespace.clone());
                let effect = describe_delay(delay, self.next_step());
                (self.report)(&format!("{namespace}/{shoot}: {effect}"));
                self.running.push(ends.map(News::EndedLate).boxed_local());
            }
            None => return false,
        }
        true
    }

    fn release_lane(&mut self, namespace: &str) {
        if let Some(index) = self.lanes.iter().position(|lane| lane == namespace) {
            self.lanes.remove(index);
        }
    }

    fn record(&mut self, result: &ShootResult) {
        let effect = if result.taken_over {
            self.proven.insert(result.namespace.clone());
            ""
        } else {
            self.failing.insert(result.namespace.clone());
            describe_failure(self.next_step())
        };
        let (namespace, shoot) = (&result.namespace, &result.shoot);
        (self.report)(&format!("{namespace}/{shoot}: {}{effect}", result.message));
    }

    fn into_results(mut self) -> Vec<ShootResult> {
        self.results.append(&mut self.late);
        let not_tried = self.waiting.iter().map(|(_, shown)| not_tried(shown));
        self.results.extend(not_tried);
        self.results
    }
}

/// The step after a trial that the next shoots do not wait for.
fn step_of_trials<T>(
    waiting: &[T],
    limit: usize,
    failing: &BTreeSet<String>,
    slow: &BTreeSet<String>,
    shoot_in: impl Fn(&T) -> &Shoot,
) -> NextStep {
    if next_trial(waiting, limit, failing, slow, shoot_in).is_some() {
        NextStep::FurtherTrial
    } else {
        NextStep::Wait
    }
}

/// The effect of a takeover that has ended without success.
fn describe_failure(next: NextStep) -> &'static str {
    match next {
        NextStep::Rest => "; further shoots of the project come last",
        NextStep::FurtherTrial => "; a shoot of a different project is the next trial",
        NextStep::Wait => "; no further trial begins",
    }
}

/// The sentence about a takeover that fails, makes no progress or takes long.
fn describe_delay(delay: Delay, next: NextStep) -> &'static str {
    match (delay, next) {
        (Delay::Stalls, NextStep::Rest) => {
            "the takeover fails or makes no progress: the next shoots do not wait, and those of this project come last"
        }
        (Delay::Stalls, NextStep::FurtherTrial) => {
            "the trial fails or makes no progress, and a shoot of a different project is the next trial"
        }
        (Delay::Stalls, NextStep::Wait) => {
            "the trial fails or makes no progress, and no further trial begins: the rest waits for the trials. Interrupt the command, \
             and leave the shoots of the trials out with --exclude"
        }
        (Delay::IsSlow, NextStep::Rest) => {
            "the takeover makes progress and takes long: the next shoots do not wait"
        }
        (Delay::IsSlow, NextStep::FurtherTrial) => {
            "the trial makes progress and takes long, and a shoot of a different project is the next trial"
        }
        (Delay::IsSlow, NextStep::Wait) => {
            "the trial makes progress and takes long, and no further trial begins: the rest waits for the trials. To go on before, \
             interrupt the command, and leave the shoots of the trials out with --exclude"
        }
    }
}

fn not_tried(shown: &TakeoverReport) -> ShootResult {
    let why = "not requested, because the trials were no takeovers: remove the cause, or leave the shoots of the trials out with \
               --exclude";
    ShootResult::new(shown, Err(Failure::refused(why)))
}

/// Takes a shoot over until the end, or until the next shoots do not wait any more.
async fn take_over_until_delay<'a>(
    session: &'a Session,
    settings: TakeoverSettings<'a>,
    approved: Approved,
    report: Report<'a>,
) -> News<'a> {
    let watched = approved.0.clone();
    let (namespace, shoot) = (approved.1.namespace.clone(), approved.1.shoot.clone());
    let ends = take_over(session, settings, approved, report).boxed_local();
    let fails = |shoot: &Shoot| fails_on_seed(shoot, settings.to);
    let delayed = pin!(wait_for_delay(session, &watched, settings.lane_within, fails));
    match future::select(ends, delayed).await {
        Either::Left((result, _)) => News::Ended(result),
        Either::Right((delay, ends)) => News::Delayed {
            namespace,
            shoot,
            delay,
            ends,
        },
    }
}

async fn take_over(
    session: &Session,
    settings: TakeoverSettings<'_>,
    (shoot, shown): Approved,
    report: Report<'_>,
) -> ShootResult {
    let outcome = Box::pin(carry_out(session, shoot, &shown, settings.wait, report)).await;
    ShootResult::new(&shown, outcome)
}

#[cfg(test)]
#[path = "trials_tests.rs"]
mod tests;
