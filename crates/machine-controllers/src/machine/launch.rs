//! A launch that the cloud accepts and ends a moment later, such as by a quota or a key that the account may
//! not use. No Node comes, so that the cause would appear only as a timeout.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use api::machine::Machine;
use kube::ResourceExt;
use runtime::{Error, Next, Result};
use tokio::time::{Instant, timeout};
use tracing::info;

use super::{
    Machines,
    bounds::Bounds,
    power_query::ANSWERS_WITHIN,
    status::{Doing, Told, since},
};
use crate::{context::Timing, phase::Phase};

/// When the cloud was asked about launches, and the failures that the cloud has reported.
pub struct LaunchQuestions {
    ask_every: Duration,
    asked: Mutex<BTreeMap<String, Asked>>,
}

struct Asked {
    last: Instant,
    /// An instance that was ended never runs again, so that the answer stays valid.
    failure: Option<Error>,
}

impl LaunchQuestions {
    /// No question was asked yet.
    pub fn new(timing: &Timing) -> Self {
        Self {
            ask_every: timing.power_every,
            asked: Mutex::default(),
        }
    }

    /// Forgets a Machine that is gone.
    pub fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// Whether the question is due, and the failure that was reported before.
    fn is_due(&self, uid: &str, now: Instant) -> (bool, Option<Error>) {
        match self.lock().get(uid) {
            None => (true, None),
            Some(Asked {
                failure: Some(failure),
                ..
            }) => (false, Some(failure.clone())),
            Some(Asked { last, .. }) => (now - *last >= self.ask_every, None),
        }
    }

    fn record(&self, uid: String, failure: Option<Error>, last: Instant) {
        self.lock().insert(uid, Asked { last, failure });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Machines {
    /// Reports that the cloud has ended the instance of a Machine without a Node. The Machine fails when the
    /// time for the creation has passed, as after a refused launch: a cause that stays must not make a new
    /// instance every minute. Returns `None` where no such end is known.
    pub(super) async fn report_ended_launch(
        &self,
        machine: &Arc<Machine>,
        bounds: &Bounds,
    ) -> Result<Option<Next>> {
        let Some(failure) = self.launch_failure(machine).await? else {
            return Ok(None);
        };
        let is_over = since(machine.creation_timestamp().map(|time| time.0)) >= bounds.creation
            && self.reach.answers_for().await.is_ok();
        if is_over {
            self.tell(machine, &Told::error(Phase::Failed, Doing::Create, &failure))
                .await?;
            self.events
                .warning(machine.as_ref(), "MachineFailed", &failure.to_string())
                .await;
            return Ok(Some(Next::Change));
        }
        let report = Told::error(Phase::CrashLoopBackOff, Doing::Create, &failure);
        self.tell(machine, &report).await?;
        Ok(Some(Next::After(self.timing.look_every)))
    }

    /// The failure of the launch, if the cloud has reported one. The error is a right that was lost.
    async fn launch_failure(&self, machine: &Arc<Machine>) -> Result<Option<Error>> {
        let uid = machine.uid().unwrap_or_default();
        let (is_due, failure) = self.launches.is_due(&uid, Instant::now());
        if !is_due {
            return Ok(failure);
        }
        let Ok(_place) = self.power.places.try_acquire() else {
            return Ok(None);
        };
        let asking = async {
            let class = self.cloud.class(machine).await?;
            self.cloud.launch_failure(machine, &class).await
        };
        let failure = match timeout(ANSWERS_WITHIN, Box::pin(asking)).await {
            Ok(Err(error @ Error::NotOwner(_))) => return Err(error),
            Ok(Ok(failure)) => failure,
            Ok(Err(error)) => {
                info!(machine = machine.name_any(), %error, "the cloud does not report whether the launch was ended");
                None
            }
            Err(_) => None,
        };
        self.launches.record(uid, failure.clone(), Instant::now());
        Ok(failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cloud_is_asked_at_intervals_and_never_again_after_the_end() {
        let timing = Timing::default();
        assert!(
            timing.power_every < Duration::from_secs(60),
            "an end is reported within a minute"
        );
        let questions = LaunchQuestions::new(&timing);
        let mut now = Instant::now();
        assert!(questions.is_due("m", now).0);
        questions.record("m".into(), None, now);
        assert!(!questions.is_due("m", now).0 && questions.is_due("other", now).0);
        now += timing.power_every;
        assert!(questions.is_due("m", now).0);
        questions.record("m".into(), Some(Error::transient("no room")), now);
        now += timing.power_every;
        assert!(matches!(questions.is_due("m", now), (false, Some(_))));
        questions.forget("m");
        assert!(questions.is_due("m", now).0);
    }
}
