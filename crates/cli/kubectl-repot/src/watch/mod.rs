//! `kubectl repot watch`: the steps of the operation on a shoot until the end of the operation, with the
//! seconds of each step, the awaited condition, and the seed.

mod steps;

pub use steps::{OperationEnd, Steps, judge};

use std::{
    cell::{Cell, RefCell},
    pin::pin,
    time::Duration,
};

use api::{constants::condition::GARDENLET_READY, meta::find_condition};
use kube::ResourceExt;
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::{
    answer::Answer,
    failure::Failure,
    follow::{Report, follow},
    session::{SeedReading, Session},
    terminal::one_line,
};

/// Pause between two checks of the silence. Shorter than [`SILENCE`].
const SILENCE_POLL_INTERVAL: Duration = Duration::from_secs(15);
/// Without a new state for this time, the state of the seed is reported. A gardenlet reports at most every
/// 5 s within a step, so the time is much longer.
const SILENCE: Duration = Duration::from_secs(60);

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
    let changed = Cell::new(begun);
    let steps = RefCell::new(Steps::default());
    let stamped = |sentence: &str| {
        changed.set(Instant::now());
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
            judge(shoot)
        },
    );
    let mut ended = pin!(watched);
    let mut ticks = interval(SILENCE_POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let end = loop {
        tokio::select! {
            end = &mut ended => break end?,
            _ = ticks.tick() => {}
        }
        if changed.get().elapsed() >= SILENCE {
            let seed = steps.borrow().seed();
            let state = Box::pin(describe_seed(session, seed.as_deref())).await;
            stamped(&format!(
                "{name}: no new state for {} s; {state}",
                SILENCE.as_secs()
            ));
        }
    };
    let seconds = begun.elapsed().as_secs();
    let steps = steps.take().finish(seconds);
    let text = steps::render(&steps, &end, name);
    let json = json!({"namespace": namespace, "name": name, "seconds": seconds, "steps": steps, "end": end});
    Ok(Answer::new(text, &json))
}

/// Whether the gardenlet of the seed lives, as far as the caller may know.
async fn describe_seed(session: &Session, seed: Option<&str>) -> String {
    let Some(name) = seed else {
        return "no seed has begun".to_owned();
    };
    match Box::pin(session.seed(name)).await {
        Ok(SeedReading::Read(seed)) => {
            let status = seed.status.as_ref();
            let ready = status.and_then(|status| find_condition(&status.conditions, GARDENLET_READY));
            match ready {
                Some(ready) => format!(
                    "condition {GARDENLET_READY} of Seed {name} is {:?}: {}",
                    ready.status,
                    one_line(&ready.message)
                ),
                None => format!("Seed {name} has never reported (condition {GARDENLET_READY})"),
            }
        }
        Ok(SeedReading::Missing) => format!("Seed {name} does not exist any more"),
        Ok(SeedReading::Unreadable(why)) => why,
        Err(failure) => failure.to_string(),
    }
}
