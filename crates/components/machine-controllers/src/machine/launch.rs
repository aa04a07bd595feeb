//! A launch that the cloud accepts and ends a moment later, such as by a quota or a key that the account may
//! not use. No Node comes, so that the cause would appear only as a timeout.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use runtime::Error;
use tokio::time::Instant;

use crate::context::Timing;

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
    pub(super) fn is_due(&self, uid: &str, now: Instant) -> (bool, Option<Error>) {
        match self.lock().get(uid) {
            None => (true, None),
            Some(Asked {
                failure: Some(failure),
                ..
            }) => (false, Some(failure.clone())),
            Some(Asked { last, .. }) => (now - *last >= self.ask_every, None),
        }
    }

    /// Records an answer.
    pub(super) fn record(&self, uid: String, failure: Option<Error>, last: Instant) {
        self.lock().insert(uid, Asked { last, failure });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
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
