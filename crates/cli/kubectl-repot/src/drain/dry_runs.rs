//! The plan of a drain: a destination for each shoot, as the garden answers to a dry run of each move.

use std::time::Duration;

use api::gardencore::Shoot;
use futures::{StreamExt, TryStreamExt, stream};
use kube::ResourceExt;

use super::{
    assignment::assign,
    classification::Share,
    outcome::{MoveResult, ShootOutcome},
    plan::{DrainPlan, PlannedMove, Work},
    request::DrainRequest,
    survey::Survey,
};
use crate::{
    failure::Failure, follow::Report, history::former_moves, plan::ask_garden, session::Session,
    takeover::importance, terminal::one_line,
};

/// Dry runs at a time. A dry run is a single write to a Shoot, and starts no process.
const DRY_RUNS: usize = 10;
/// Bound of a dry run. The garden answers within seconds.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

/// The result of the dry runs of a shoot.
enum Planned {
    Move(Box<Work>),
    LeftOut(ShootOutcome),
}

/// The plan, and the moves in order: moves that are under way, then the least important shoots, so that a
/// fault of all moves meets these shoots first.
///
/// # Errors
/// The garden gives no answer.
pub(super) async fn plan(
    session: &Session,
    request: DrainRequest<'_>,
    survey: Survey,
    report: Report<'_>,
) -> Result<(DrainPlan, Vec<Work>), Failure> {
    let Survey {
        shoots,
        mut destinations,
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
            Share::ToMove => to_move.push(shoot),
        }
    }
    to_move.sort_by_key(|shoot| {
        (
            importance(shoot.spec.purpose),
            shoot.namespace(),
            shoot.name_any(),
        )
    });
    if !to_move.is_empty() {
        report(&format!(
            "the garden checks the moves of {} shoots",
            to_move.len()
        ));
    }
    let asked = to_move.into_iter().map(|shoot| {
        let candidates = assign(&mut destinations);
        Box::pin(choose(session, shoot, candidates))
    });
    // Collected first, so that the order of the shoots decides about the room.
    let asked: Vec<_> = asked.collect();
    let answers: Vec<Planned> = stream::iter(asked).buffered(DRY_RUNS).try_collect().await?;
    for answer in answers {
        match answer {
            Planned::Move(one) => work.push(*one),
            Planned::LeftOut(outcome) => left_out.push(outcome),
        }
    }
    let moves = work.iter().map(PlannedMove::new).collect();
    let former = Box::pin(former_moves(session)).await;
    let plan = DrainPlan::new(request, moves, left_out, former);
    Ok((plan, work))
}

/// The first destination that the garden allows for the move. The reasons of the first destination count
/// where no destination can take the shoot.
async fn choose(session: &Session, shoot: Shoot, candidates: Vec<String>) -> Result<Planned, Failure> {
    let mut first_obstacle = None;
    for to in candidates {
        let silent = |_: &str| {};
        let asked = ask_garden(session, shoot.clone(), &to, ANSWERED_WITHIN, &silent);
        let obstacle = match Box::pin(asked).await {
            Ok(plan) if plan.may_begin => {
                return Ok(Planned::Move(Box::new(Work {
                    shoot,
                    to,
                    is_under_way: false,
                })));
            }
            Ok(plan) => format!("{}: {}", plan.reason, one_line(&plan.message)),
            Err(Failure::Refused(why)) => why,
            Err(failure) => return Err(failure),
        };
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
    Ok(Planned::LeftOut(outcome))
}
