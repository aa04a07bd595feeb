//! Whether an API server answers, and the pause before the next probe of a silent server.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// The first pause. A kube-apiserver that restarts is back in some seconds.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause. A hibernated shoot costs a single request a minute.
const LONGEST: Duration = Duration::from_secs(60);

/// The knowledge about an API server.
#[derive(Debug, Default)]
enum Known {
    /// Unknown: a probe is needed.
    #[default]
    Nothing,
    /// The server answers.
    Answers,
    /// The server did not answer.
    Away {
        since: Instant,
        failures: u32,
        why: String,
    },
}

/// Tracks whether an API server answers.
#[derive(Debug, Default)]
pub struct Gate(Mutex<Known>);

/// The action for work on an API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateState {
    /// Continue.
    Open,
    /// Probe the server first.
    Ask,
    /// Wait.
    Closed {
        /// The time to wait.
        after: Duration,
        /// The reason.
        why: String,
    },
}

impl Gate {
    fn lock_state(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The action for work at this moment.
    #[must_use]
    pub fn check(&self) -> GateState {
        match &*self.lock_state() {
            Known::Nothing => GateState::Ask,
            Known::Answers => GateState::Open,
            Known::Away { since, failures, why } => {
                let after = pause(*failures).saturating_sub(since.elapsed());
                if after.is_zero() {
                    GateState::Ask
                } else {
                    GateState::Closed {
                        after,
                        why: why.clone(),
                    }
                }
            }
        }
    }

    /// The time after which work on this server makes sense again.
    #[must_use]
    pub fn pause(&self) -> Duration {
        match self.check() {
            GateState::Closed { after, .. } => after,
            GateState::Open | GateState::Ask => FIRST,
        }
    }

    /// The server has answered.
    pub fn answered(&self) {
        *self.lock_state() = Known::Answers;
    }

    /// The server has not answered.
    pub fn failed(&self, why: String) {
        let mut known = self.lock_state();
        let failures = match &*known {
            // A failure of work under way at the same time does not count as another failure.
            Known::Away { since, failures, .. } if since.elapsed() < pause(*failures) => return,
            Known::Away { failures, .. } => failures.saturating_add(1),
            _ => 1,
        };
        *known = Known::Away {
            since: Instant::now(),
            failures,
            why,
        };
    }

    /// A watch of a server that answered so far was lost: the next work first probes the server.
    pub fn doubt(&self) {
        let mut known = self.lock_state();
        if matches!(&*known, Known::Answers) {
            *known = Known::Nothing;
        }
    }
}

fn pause(failures: u32) -> Duration {
    FIRST
        .saturating_mul(2u32.saturating_pow(failures.saturating_sub(1).min(10)))
        .min(LONGEST)
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
