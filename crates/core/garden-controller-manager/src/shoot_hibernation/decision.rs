//! Whether a time of a schedule has come: a pure decision.

use std::time::Duration;

use jiff::Timestamp;

use super::schedule::{Change, Schedule};

/// How long a missed time still takes effect. Longer than a restart of this process takes; shorter than a
/// user would expect the shoot to stay unchanged.
const DEADLINE: Duration = Duration::from_secs(2 * 60 * 60);
/// More times than a schedule has within [`DEADLINE`]: a schedule has at most a time per minute.
const TIMES: usize = 121;

/// The decision of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether the shoot must sleep or be awake from now on. `None`: no time has come.
    pub sleep: Option<bool>,
    /// When the next time comes.
    pub next: Option<Timestamp>,
}

/// The decision for a shoot whose last time came at `last`, or which was created then. If several times come
/// at once, a wake-up has precedence: a missing shoot is worse than the cost of a running shoot.
#[must_use]
pub fn decide(schedules: &[Schedule], last: Timestamp, now: Timestamp) -> Decision {
    let oldest = now.checked_sub(DEADLINE).unwrap_or(Timestamp::MIN);
    // A time in the far future comes from a hostile seed, and would hold back each later time. A time in the
    // near future comes from the clock of a former holder of the lock.
    let is_far_ahead = now.checked_add(DEADLINE).is_ok_and(|latest| last > latest);
    let since = if is_far_ahead { oldest } else { last.max(oldest) };
    let mut latest: Option<(Timestamp, Change)> = None;
    let mut next: Option<Timestamp> = None;
    for schedule in schedules {
        for change in [Change::Sleep, Change::WakeUp] {
            let mut time = since;
            for _ in 0..TIMES {
                let Some(due) = schedule.next(change, time) else {
                    break;
                };
                if due > now {
                    next = Some(next.map_or(due, |earlier| earlier.min(due)));
                    break;
                }
                latest = latest.max(Some((due, change)));
                time = due;
            }
        }
    }
    Decision {
        sleep: latest.map(|(_, change)| change == Change::Sleep),
        next,
    }
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
