//! `kubectl repot plan`: whether a move could begin, by a dry run of the garden without any change.

mod decision;

pub use decision::{Plan, ask, read_answer};

use std::time::Duration;

use kube::ResourceExt;

use crate::{
    answer::Answer,
    edit::edit,
    failure::Failure,
    follow::{Report, follow},
    session::Session,
};

/// Asks the garden about a move of the shoot to the seed, and waits for the answer.
pub async fn plan(
    session: &Session,
    name: &str,
    seed: &str,
    within: Duration,
    report: Report<'_>,
) -> Result<Answer, Failure> {
    let namespace = session.namespace();
    let shoot = Box::pin(session.shoot(namespace, name)).await?;
    let asked = Box::pin(edit(session, shoot, |shoot| ask(shoot, seed))).await?;
    let uid = asked.shoot.uid();
    let goal = format!("the answer about a move of shoot {namespace}/{name} to seed {seed}");
    let shoots = session.shoots(namespace);
    let answered = follow(shoots, name, &goal, within, report, |shoot| {
        let same = shoot.filter(|shoot| shoot.uid() == uid);
        read_answer(same, seed)
    });
    let plan = Box::pin(answered).await?;
    Ok(Answer::new(format!("{plan}\n"), &plan).with_obstacles(!plan.may_begin))
}
