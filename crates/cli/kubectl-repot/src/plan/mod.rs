//! `kubectl repot plan`: whether a move could begin, by a dry run of the garden without any change.

mod decision;

pub use decision::{Plan, ask, read_answer};

use std::time::Duration;

use api::gardencore::Shoot;
use kube::ResourceExt;
use runtime::clock;

use crate::{
    answer::Answer,
    edit::edit,
    failure::Failure,
    follow::{Report, follow},
    history::former_moves,
    session::Session,
};

/// Answers that are a second apart have different times.
const APART: Duration = Duration::from_secs(1);

/// Asks the garden about a move of the shoot to the seed, and waits for the answer.
pub async fn plan(
    session: &Session,
    name: &str,
    seed: &str,
    within: Duration,
    report: Report<'_>,
) -> Result<Answer, Failure> {
    let shoot = Box::pin(session.shoot(session.namespace(), name)).await?;
    let mut plan = Box::pin(ask_garden(session, shoot, seed, within, report)).await?;
    plan.former_moves = Box::pin(former_moves(session)).await;
    Ok(Answer::new(format!("{plan}\n"), &plan).with_obstacles(!plan.may_begin))
}

/// The answer of the garden about a move of the shoot to the seed.
pub async fn ask_garden(
    session: &Session,
    shoot: Shoot,
    seed: &str,
    within: Duration,
    report: Report<'_>,
) -> Result<Plan, Failure> {
    let (namespace, name) = (shoot.namespace().unwrap_or_default(), shoot.name_any());
    let former = decision::answer_in(&shoot);
    if former.is_some_and(|former| decision::is_recent(former, seed, clock::now())) {
        tokio::time::sleep(APART).await;
    }
    let asked = Box::pin(edit(session, shoot, |shoot| ask(shoot, seed))).await?;
    let (uid, former) = (asked.shoot.uid(), decision::answer_in(&asked.shoot));
    let goal = format!("the answer about a move of shoot {namespace}/{name} to seed {seed}");
    let shoots = session.shoots(&namespace);
    let answered = follow(shoots, &name, &goal, within, report, |shoot| {
        let same = shoot.filter(|shoot| shoot.uid() == uid);
        read_answer(same, seed, former)
    });
    Box::pin(answered).await
}
