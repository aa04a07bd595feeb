//! `kubectl repot watch`: the steps of the operation on a shoot until the end of the operation, with the
//! seconds of each step, the awaited condition, and the seed.

mod steps;

pub use steps::{OperationEnd, Steps, judge};

use std::{cell::RefCell, time::Duration};

use kube::ResourceExt;
use serde_json::json;
use tokio::time::Instant;

use crate::{
    answer::Answer,
    failure::Failure,
    follow::{Report, follow},
    session::Session,
    silence::SilenceWatch,
};

/// Reports each step until the operation ends, for `within` at most.
pub async fn watch(
    session: &Session,
    name: &str,
    within: Duration,
    report: Report<'_>,
) -> Result<Answer, Failure> {
    let namespace = session.namespace();
    let read = Box::pin(session.shoot(namespace, name)).await?;
    let uid = read.uid();
    let begun = Instant::now();
    let silence = SilenceWatch::default();
    let steps = RefCell::new(Steps::default());
    let stamped = |sentence: &str| {
        silence.note_change();
        report(&format!("{:>5}s {sentence}", begun.elapsed().as_secs()));
    };
    let goal = format!("the end of the operation on shoot {namespace}/{name}");
    let watched = follow(
        session.shoots(namespace),
        name,
        &goal,
        within,
        &stamped,
        |shoot| {
            let shoot = shoot.filter(|shoot| shoot.uid() == uid);
            steps.borrow_mut().observe(shoot, begun.elapsed().as_secs());
            silence.note_seed(steps.borrow().seed());
            judge(shoot)
        },
    );
    let end = Box::pin(silence.observe(session, name, &stamped, watched)).await?;
    let seconds = begun.elapsed().as_secs();
    let steps = steps.take().finish(seconds);
    let text = steps::render(&steps, &end, name);
    let json = json!({"namespace": namespace, "name": name, "seconds": seconds, "steps": steps, "end": end});
    Ok(Answer::new(text, &json))
}
