//! Reports a seed that hangs: while a command waits and no new state comes, the state of the gardenlet is
//! read.

use std::{
    cell::{Cell, RefCell},
    pin::pin,
};

use api::{
    constants::condition::GARDENLET_READY,
    meta::{Condition, ConditionStatus, find_condition},
};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::{
    follow::Report,
    session::{SeedReading, Session},
    terminal::one_line,
};

/// The observations of a wait.
#[derive(Debug)]
pub struct SilenceWatch {
    changed: Cell<Instant>,
    seed: RefCell<Option<String>>,
}

impl Default for SilenceWatch {
    fn default() -> Self {
        Self {
            changed: Cell::new(Instant::now()),
            seed: RefCell::default(),
        }
    }
}

impl SilenceWatch {
    /// A new state was reported.
    pub fn note_change(&self) {
        self.changed.set(Instant::now());
    }

    /// The seed that works for the shoot now.
    pub fn note_seed(&self, seed: Option<String>) {
        *self.seed.borrow_mut() = seed;
    }

    /// Awaits the work, and reports the state of the seed after each silence. `name`: the shoot.
    pub async fn observe<T>(
        &self,
        session: &Session,
        name: &str,
        report: Report<'_>,
        work: impl Future<Output = T>,
    ) -> T {
        let times = session.silence_times();
        let mut work = pin!(work);
        let mut ticks = interval(times.poll_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                ended = &mut work => return ended,
                _ = ticks.tick() => {}
            }
            if self.changed.get().elapsed() >= times.after {
                let seed = self.seed.borrow().clone();
                let state = Box::pin(describe_seed(session, seed.as_deref())).await;
                self.note_change();
                report(&format!(
                    "{name}: no new state for {} s; {state}",
                    times.after.as_secs()
                ));
            }
        }
    }
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
                Some(ready) => describe_condition(name, ready),
                None => format!("Seed {name} has never reported (condition {GARDENLET_READY})"),
            }
        }
        Ok(SeedReading::Missing) => format!("Seed {name} does not exist any more"),
        Ok(SeedReading::Unreadable(why)) => why,
        Err(failure) => failure.to_string(),
    }
}

/// The condition of the Seed. A long step in a seed that lives is no reason for a takeover.
fn describe_condition(name: &str, ready: &Condition) -> String {
    let verdict = match ready.status {
        ConditionStatus::True => "the seed lives, and a step takes long; ",
        _ => "",
    };
    format!(
        "{verdict}condition {GARDENLET_READY} of Seed {name} is {:?}: {}",
        ready.status,
        one_line(&ready.message)
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_a_seed_that_lives_is_said_to_live() {
        for (status, lives) in [("'True'", true), ("'False'", false), ("Unknown", false)] {
            let yaml = format!(
                "{{type: {GARDENLET_READY}, status: {status}, reason: r, message: m, \
                 lastTransitionTime: 2026-01-01T00:00:00Z, lastUpdateTime: 2026-01-01T00:00:00Z}}"
            );
            let ready: Condition = serde_yaml_ng::from_str(&yaml).unwrap();
            let sentence = describe_condition("seed-a", &ready);
            assert_eq!(sentence.starts_with("the seed lives"), lives, "{sentence}");
            assert!(
                sentence.contains("condition GardenletReady of Seed seed-a is"),
                "{sentence}"
            );
        }
    }
}
