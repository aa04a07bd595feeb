//! The plan of a drain: a destination for each shoot, as the garden answers to a dry run of each move.

use std::{cell::Cell, pin::pin, time::Duration};

use api::gardencore::Shoot;
use futures::{StreamExt, stream};

use super::{
    assignment::assign,
    classification::Share,
    outcome::{MoveResult, ShootOutcome},
    plan::{DrainPlan, PlannedMove, Work},
    request::DrainRequest,
    survey::Survey,
};
use crate::{
    failure::Failure,
    follow::Report,
    history::former_moves,
    plan::ask_garden,
    session::Session,
    takeover::{importance, order_by_turns},
    terminal::one_line,
};

/// Dry runs at a time. A dry run is a single write to a Shoot, and starts no process.
const DRY_RUNS: usize = 10;
/// Bound of a dry run. The garden answers within seconds.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);
/// Bound of a further dry run while no shoot has an answer: probably garden-controller-manager does not run.
const FURTHER_ANSWERED_WITHIN: Duration = Duration::from_secs(15);

/// The result of the dry runs of a shoot.
enum Planned {
    Move(Box<Work>),
    LeftOut(ShootOutcome),
    /// The shoot is left out, because no answer has come.
    Unanswered(ShootOutcome),
    /// The Shoot was deleted meanwhile.
    Deleted,
}

/// The answers of the garden so far.
#[derive(Default)]
struct Answers {
    is_any_answered: Cell<bool>,
    unanswered: Cell<usize>,
}

impl Answers {
    /// The bound of the next dry run.
    fn bound(&self) -> Duration {
        if !self.is_any_answered.get() && self.unanswered.get() >= DRY_RUNS {
            FURTHER_ANSWERED_WITHIN
        } else {
            ANSWERED_WITHIN
        }
    }
}

/// The plan, and the moves in order: moves that are under way, then the least important shoots, so that a
/// fault of all moves meets these shoots first. A shoot without an answer is left out: the users of the shoot
/// can prevent the answer.
///
/// # Errors
/// The garden gives no answer about any shoot.
pub(super) async fn plan(
    session: &Session,
    request: DrainRequest<'_>,
    survey: Survey,
    report: Report<'_>,
) -> Result<(DrainPlan, Vec<Work>), Failure> {
    let Survey {
        shoots,
        mut destinations,
        ..
    } = survey;
    let (mut work, mut left_out, mut to_move) = (Vec::new(), Vec::new(), Vec::new());
    for (shoot, share) in shoots {
        match share {
            Share::Moving(to) => work.push(Work {
                shoot,
                to,
                is_under_way: true,
            }),
            Share::LeftOut(why) => left_out.push(ShootOutcome::new(&shoot, None, MoveResult::LeftOut, &why)),
            Share::Excluded => {
                let outcome = ShootOutcome::new(&shoot, None, MoveResult::Excluded, "--exclude");
                left_out.push(outcome);
            }
            Share::ToMove => to_move.push(shoot),
        }
    }
    let to_move = order(to_move);
    if !to_move.is_empty() {
        report(&format!(
            "the garden checks the moves of {} shoots",
            to_move.len()
        ));
    }
    let answers = &Answers::default();
    let asked = to_move.into_iter().map(|shoot| {
        let candidates = assign(&mut destinations);
        Box::pin(choose(session, shoot, candidates, answers))
    });
    // Collected first, so that the order of the shoots decides about the room.
    let asked: Vec<_> = asked.collect();
    let mut planned = pin!(stream::iter(asked).buffered(DRY_RUNS));
    let mut unanswered = Vec::new();
    while let Some(one) = planned.next().await {
        match one {
            Planned::Move(one) => work.push(*one),
            Planned::LeftOut(outcome) => left_out.push(outcome),
            Planned::Unanswered(outcome) => {
                // The plan comes after the last bound.
                report(&outcome.row().join(": "));
                unanswered.push(outcome);
            }
            Planned::Deleted => {}
        }
    }
    // A move that is under way is awaited in any case.
    check_answers(&unanswered, answers.is_any_answered.get() || !work.is_empty())?;
    left_out.extend(unanswered);
    let moves = work.iter().map(PlannedMove::new).collect();
    let former = Box::pin(former_moves(session)).await;
    let plan = DrainPlan::new(request, moves, left_out, former);
    Ok((plan, work))
}

/// The least important shoots come first. Of equal importance, the projects take turns.
fn order(shoots: Vec<Shoot>) -> Vec<Shoot> {
    order_by_turns(shoots, |shoot| importance(shoot.spec.purpose), |shoot| shoot)
}

/// The drain needs an answer about at least a single shoot.
///
/// # Errors
/// No answer, with the reason of the first shoot.
fn check_answers(unanswered: &[ShootOutcome], has_answer: bool) -> Result<(), Failure> {
    match unanswered.first() {
        Some(first) if !has_answer => Err(Failure::failed(format!(
            "no dry run of {} was answered; {}",
            unanswered.len(),
            first.message
        ))),
        _ => Ok(()),
    }
}

/// The first destination that the garden allows for the move. The reasons of the first destination count
/// where no destination can take the shoot.
async fn choose(session: &Session, shoot: Shoot, candidates: Vec<String>, answers: &Answers) -> Planned {
    let mut first_obstacle = None;
    for to in candidates {
        let silent = |_: &str| {};
        let asked = ask_garden(session, shoot.clone(), &to, answers.bound(), &silent);
        let answer = Box::pin(asked).await;
        if answer.is_err() && Box::pin(session.is_deleted(&shoot)).await {
            return Planned::Deleted;
        }
        let obstacle = match answer {
            Ok(plan) if plan.may_begin => {
                answers.is_any_answered.set(true);
                return Planned::Move(Box::new(Work {
                    shoot,
                    to,
                    is_under_way: false,
                }));
            }
            Ok(plan) => format!("{}: {}", plan.reason, one_line(&plan.message)),
            Err(Failure::Refused(why)) => why,
            Err(Failure::Failed(why)) if first_obstacle.is_none() => {
                // The question can still be open, so the next destination is not asked about.
                answers.unanswered.set(answers.unanswered.get() + 1);
                let outcome = ShootOutcome::new(&shoot, Some(&to), MoveResult::LeftOut, &why);
                return Planned::Unanswered(outcome);
            }
            Err(Failure::Failed(_)) => break,
        };
        answers.is_any_answered.set(true);
        first_obstacle.get_or_insert((to, obstacle));
    }
    let (to, why) = match first_obstacle {
        Some((to, why)) => (Some(to), why),
        None => (
            None,
            "no destination has room (status.allocatable.shoots of the Seeds)".to_owned(),
        ),
    };
    let outcome = ShootOutcome::new(&shoot, to.as_deref(), MoveResult::LeftOut, &why);
    Planned::LeftOut(outcome)
}

#[cfg(test)]
#[path = "dry_runs_tests.rs"]
mod tests;
