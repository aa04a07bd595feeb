//! Whether the instance of a Machine runs, as the provider reports it. The answer cannot be watched, so that the
//! provider is asked, and only while the kubelet of the instance is silent.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use api::machine::Machine;
use kube::ResourceExt;
use runtime::{Error, Result};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout},
};
use tracing::info;

use super::Machines;
use crate::{context::Timing, driver::InstancePower};

/// How long an answer may take. Shorter than the time between two questions, so that a provider that does not answer
/// holds no worker of the controller for long.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// When the provider was asked about instances whose kubelets are silent.
pub struct PowerQuestions {
    ask_every: Duration,
    unclear_for: Duration,
    /// Workers of the controller that may wait for an answer at once. The others handle Machines that are well.
    places: Semaphore,
    asked: Mutex<BTreeMap<String, Asked>>,
}

#[derive(Clone, Copy)]
struct Asked {
    last: Instant,
    unclear_since: Option<Instant>,
}

impl PowerQuestions {
    /// For a controller with so many workers.
    pub fn new(timing: &Timing, workers: u16) -> Self {
        Self {
            ask_every: timing.power_every,
            unclear_for: timing.power_unclear_for,
            places: Semaphore::new(usize::from(workers / 2).max(1)),
            asked: Mutex::default(),
        }
    }

    /// Forgets a Machine that is gone, or whose kubelet reports again.
    pub fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    fn is_due(&self, uid: &str, now: Instant) -> bool {
        let asked = self.lock();
        asked
            .get(uid)
            .is_none_or(|asked| now - asked.last >= self.ask_every)
    }

    /// Records an answer. A single lost answer proves nothing, so that an instance counts as unclear only when no clear
    /// answer has come for some time.
    fn settle(&self, uid: &str, answer: InstancePower, now: Instant) -> Option<InstancePower> {
        let mut asked = self.lock();
        let before = asked.get(uid).and_then(|asked| asked.unclear_since);
        let unclear_since = (answer == InstancePower::Unclear).then(|| before.unwrap_or(now));
        let record = Asked {
            last: now,
            unclear_since,
        };
        asked.insert(uid.to_owned(), record);
        match unclear_since {
            Some(since) if now - since < self.unclear_for => None,
            _ => Some(answer),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Machines {
    /// Whether the instance runs; `None` while that is not known. The error is a right that was lost.
    pub(super) async fn power(&self, machine: &Arc<Machine>) -> Result<Option<InstancePower>> {
        let uid = machine.uid().unwrap_or_default();
        let Ok(_place) = self.power.places.try_acquire() else {
            return Ok(None);
        };
        if !self.power.is_due(&uid, Instant::now()) {
            return Ok(None);
        }
        let asking = async {
            let class = self.cloud.class(machine).await?;
            self.cloud.power(machine, &class).await
        };
        let answer = match timeout(ANSWERS_WITHIN, Box::pin(asking)).await {
            Ok(Err(error @ Error::NotOwner(_))) => return Err(error),
            Ok(Ok(power)) => power,
            Ok(Err(error)) => {
                info!(machine = machine.name_any(), %error, "the provider does not report the state of the instance");
                InstancePower::Unclear
            }
            Err(_) => InstancePower::Unclear,
        };
        Ok(self.power.settle(&uid, answer, Instant::now()))
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
        assert_eq!(questions.settle("m", unclear, now), None);
        assert!(!questions.is_due("m", now) && questions.is_due("other", now));
        now += timing.power_every;
        assert!(questions.is_due("m", now));
        // A clear answer in between begins the time anew.
        assert_eq!(questions.settle("m", running, now), Some(running));
        now += timing.power_unclear_for;
        assert_eq!(questions.settle("m", unclear, now), None);
        now += timing.power_unclear_for;
        assert_eq!(questions.settle("m", unclear, now), Some(unclear));
        questions.forget("m");
        assert_eq!(questions.settle("m", unclear, now), None);
    }
}
