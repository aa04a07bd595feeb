//! Trials before the takeover of all shoots of a dead seed. A trial shows the faults that all shoots share. A
//! tenant can make the own trial fail, and must not hold up the shoots of other tenants.

use std::{collections::BTreeSet, pin::pin};

use api::gardencore::Shoot;
use futures::{
    FutureExt, StreamExt,
    future::{self, Either, LocalBoxFuture},
    stream::{self, FuturesUnordered},
};

use super::{
    all::ShootResult,
    order::{FAILED_PROJECTS, next_trial},
    report::TakeoverReport,
    settings::TakeoverSettings,
    single::carry_out,
};
use crate::{
    failure::Failure,
    follow::Report,
    moves::{fails_on_seed, wait_for_stall},
    session::Session,
};

/// A shoot with the report that was approved.
type Approved = (Shoot, TakeoverReport);

/// The news about a trial.
enum Trial<'a> {
    /// The trial is at its end.
    Ended(ShootResult),
    /// The trial fails or makes no progress, and goes on.
    Stalls(String, LocalBoxFuture<'a, ShootResult>),
}

/// Takes over the first shoot as a trial, and then the rest, `parallel` at a time.
///
/// As soon as the trial fails, reports an error, or makes no progress, a shoot of a different project is the
/// second trial. The first trial stays watched, beside the rest. The rest follows the first trial that
/// succeeds, and begins with the projects without a failing trial.
pub(super) async fn take_over_in_order<'a>(
    session: &'a Session,
    parallel: usize,
    settings: TakeoverSettings<'a>,
    ordered: Vec<Approved>,
    report: Report<'a>,
) -> Vec<ShootResult> {
    let mut rest = ordered;
    let mut results = Vec::new();
    let mut trials = FuturesUnordered::new();
    // Namespaces of trials that have failed or stall. Each trial is of a project of its own.
    let (mut begun, mut failing) = (0, BTreeSet::new());
    let succeeded = loop {
        if begun == failing.len()
            && let Some(index) = next_trial(&rest, &failing, |(shoot, _)| shoot)
        {
            let trial = try_shoot(session, settings, rest.remove(index), report);
            trials.push(trial.boxed_local());
            begun += 1;
        }
        match trials.next().await {
            Some(Trial::Ended(result)) => {
                let taken_over = result.taken_over;
                if !taken_over {
                    failing.insert(result.namespace.clone());
                }
                results.push(result);
                if taken_over {
                    break true;
                }
            }
            Some(Trial::Stalls(namespace, ends)) => {
                report(&format!("{namespace}: {}", describe_stall(failing.len() + 1)));
                failing.insert(namespace);
                trials.push(ends.map(Trial::Ended).boxed_local());
            }
            None => break false,
        }
    };
    if !succeeded {
        results.extend(rest.iter().map(|(_, shown)| not_tried(shown)));
        return results;
    }
    // Stable: the projects with a failing trial come last.
    rest.sort_by_key(|(_, shown)| failing.contains(&shown.namespace));
    let further = rest
        .into_iter()
        .map(|further| Box::pin(take_over(session, settings, further, report)));
    let further = stream::iter(further).buffer_unordered(parallel.max(1));
    let watched = trials.map(until_end).buffer_unordered(FAILED_PROJECTS);
    let (further, watched) = future::join(further.collect::<Vec<_>>(), watched.collect::<Vec<_>>()).await;
    results.extend(further);
    results.extend(watched);
    results
}

/// The sentence about a trial that stalls. `failing`: the projects with such a trial.
fn describe_stall(failing: usize) -> &'static str {
    if failing < FAILED_PROJECTS {
        "the trial fails or makes no progress, and a shoot of a different project is the next trial"
    } else {
        "the trials fail or make no progress: interrupt the command, and leave the shoots of the trials out with --exclude"
    }
}

fn not_tried(shown: &TakeoverReport) -> ShootResult {
    let why = "not requested, because the trials were no takeovers: remove the cause, or leave the shoots of the trials out with \
               --exclude";
    ShootResult::new(shown, Err(Failure::refused(why)))
}

/// Takes a shoot over until the end, or until the shoot stalls.
async fn try_shoot<'a>(
    session: &'a Session,
    settings: TakeoverSettings<'a>,
    approved: Approved,
    report: Report<'a>,
) -> Trial<'a> {
    let (shoot, namespace) = (approved.0.clone(), approved.1.namespace.clone());
    let ends = take_over(session, settings, approved, report).boxed_local();
    let stalls = pin!(wait_for_stall(session, &shoot, |shoot| fails_on_seed(
        shoot,
        settings.to
    )));
    match future::select(ends, stalls).await {
        Either::Left((result, _)) => Trial::Ended(result),
        Either::Right(((), ends)) => Trial::Stalls(namespace, ends),
    }
}

async fn until_end(trial: Trial<'_>) -> ShootResult {
    match trial {
        Trial::Ended(result) => result,
        Trial::Stalls(_, ends) => ends.await,
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
