//! Asks the provider whether the instance of a Machine runs. The answer cannot be watched. So the controller
//! polls the provider, and only while the kubelet of the instance is silent.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::Semaphore, time::Instant};

use crate::{context::Timing, driver::InstancePower};

/// For how many times the bound of unclear answers an instance that ran is not believed to be off.
const RUNNING_HOLDS: u32 = 10;

/// The times of the last calls to the provider about instances whose kubelets are silent.
pub struct PowerQuestions {
    ask_every: Duration,
    unclear_for: Duration,
    /// Workers of the controller that may wait for the provider at once. The remaining workers handle healthy
    /// Machines.
    pub(super) slots: Semaphore,
    asked: Mutex<BTreeMap<String, Asked>>,
}

#[derive(Clone, Copy)]
struct Asked {
    last: Instant,
    unclear_since: Option<Instant>,
    /// The last answer that the instance runs.
    ran_at: Option<Instant>,
}

impl PowerQuestions {
    /// For a controller with so many workers.
    pub fn new(timing: &Timing, workers: u16) -> Self {
        Self {
            ask_every: timing.power_every,
            unclear_for: timing.power_unclear_for,
            slots: Semaphore::new(usize::from(workers / 2).max(1)),
            asked: Mutex::default(),
        }
    }

    /// Forgets a Machine that is gone, or whose kubelet reports again.
    pub fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    pub(super) fn is_due(&self, uid: &str, now: Instant) -> bool {
        let asked = self.lock();
        asked
            .get(uid)
            .is_none_or(|asked| now - asked.last >= self.ask_every)
    }

    /// Records an answer. A single lost answer proves no state, so that an instance counts as unclear only
    /// when no clear answer has come for some time. A provider that throttles gives no answer about an
    /// instance that ran just before, and a wrong annotation of a user must not give a volume two writers:
    /// such an instance is unclear only much later.
    pub(super) fn record_answer(
        &self,
        uid: &str,
        answer: InstancePower,
        now: Instant,
    ) -> Option<InstancePower> {
        let mut asked = self.lock();
        let before = asked.get(uid).copied();
        let unclear_since = before.and_then(|asked| asked.unclear_since);
        let unclear_since = (answer == InstancePower::Unclear).then(|| unclear_since.unwrap_or(now));
        let ran_at = match answer {
            InstancePower::Running => Some(now),
            InstancePower::Unclear => before.and_then(|asked| asked.ran_at),
            InstancePower::Off => None,
        };
        let record = Asked {
            last: now,
            unclear_since,
            ran_at,
        };
        asked.insert(uid.to_owned(), record);
        let ran_recently = ran_at.is_some_and(|ran_at| now - ran_at < self.unclear_for * RUNNING_HOLDS);
        match unclear_since {
            Some(since) if now - since < self.unclear_for || ran_recently => None,
            _ => Some(answer),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_unclear_only_after_some_time_without_a_clear_answer() {
        let timing = Timing::default();
        let questions = PowerQuestions::new(&timing, 10);
        let (running, unclear) = (InstancePower::Running, InstancePower::Unclear);
        let mut now = Instant::now();
        assert!(questions.is_due("m", now));
        assert_eq!(questions.record_answer("m", unclear, now), None);
        assert!(!questions.is_due("m", now) && questions.is_due("other", now));
        now += timing.power_every;
        assert!(questions.is_due("m", now));
        // A clear answer in between begins the time anew.
        assert_eq!(questions.record_answer("m", running, now), Some(running));
        now += timing.power_unclear_for;
        assert_eq!(questions.record_answer("m", unclear, now), None);
        // The instance ran a short time ago.
        now += timing.power_unclear_for;
        assert_eq!(questions.record_answer("m", unclear, now), None);
        now += timing.power_unclear_for * RUNNING_HOLDS;
        assert_eq!(questions.record_answer("m", unclear, now), Some(unclear));
        questions.forget("m");
        assert_eq!(questions.record_answer("m", unclear, now), None);
    }
}
