//! Debounces changes, since changes come in bursts. The ShootState is written some seconds after the last
//! change, and not much later than the first change. A new stage is due at once. Pure.
//!
//! The times are flags (`ShootStateFlags` in `config.rs`), and values of the chart in an installation. The
//! maximum delay counts from the first change, so a maximum below the delay wins.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use super::duty::Stage;

/// The delays of a write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Without a further change for this long.
    pub(super) quiet: Duration,
    /// After the first change this long at the latest.
    pub(super) longest: Duration,
    /// Without any change this long after the last time.
    pub(super) period: Duration,
}

/// Pending changes by key.
#[derive(Debug, Default)]
pub(super) struct Debounce(HashMap<String, Entry>);

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// The first and the last change that are not written yet.
    changed: Option<(Instant, Instant)>,
    /// Time and stage of the last write.
    done: Option<(Instant, Stage)>,
}

impl Debounce {
    /// Records a change for this key.
    pub(super) fn touch(&mut self, key: &str, now: Instant) {
        let entry = self.0.entry(key.to_owned()).or_default();
        let first = entry.changed.map_or(now, |(first, _)| first);
        entry.changed = Some((first, now));
    }

    /// The time until the next write of this key is due; `None`: a write is due.
    pub(super) fn time_until_due(
        &self,
        key: &str,
        stage: Stage,
        pace: Pace,
        now: Instant,
    ) -> Option<Duration> {
        let entry = self.0.get(key).copied().unwrap_or_default();
        let (done, of) = entry.done?;
        if of < stage {
            return None;
        }
        let due = match entry.changed {
            Some((first, last)) => (last + pace.quiet).min(first + pace.longest),
            None => done + pace.period,
        };
        due.checked_duration_since(now).filter(|left| !left.is_zero())
    }

    /// A write begins: changes from now on need a further write.
    pub(super) fn begin(&mut self, key: &str) {
        self.0.entry(key.to_owned()).or_default().changed = None;
    }

    /// The write for this stage has succeeded.
    pub(super) fn done(&mut self, key: &str, stage: Stage, now: Instant) {
        self.0.entry(key.to_owned()).or_default().done = Some((now, stage));
    }

    /// This key needs no writes any more. Returns whether the key was known.
    pub(super) fn forget(&mut self, key: &str) -> bool {
        self.0.remove(key).is_some()
    }
}

#[cfg(test)]
#[path = "debounce_tests.rs"]
mod tests;
