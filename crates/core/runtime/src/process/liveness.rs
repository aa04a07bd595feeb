//! Tracks since when repeated work has failed, and when that time is too long.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{Error, Result, process::Health};

/// The begin of the first failure since the last success; `None` after a success.
pub struct Failing(Arc<Mutex<Option<Instant>>>);

impl Failing {
    /// Starts without a failure. Once the work has failed for longer than `ill_after`, `/healthz` reports
    /// `what` and the time. The kubelet then restarts the process.
    #[must_use]
    pub fn watched(health: &Health, ill_after: Duration, what: &'static str) -> Self {
        let since = Arc::<Mutex<Option<Instant>>>::default();
        let seen = Arc::clone(&since);
        health.add(move || {
            let since = *seen.lock().unwrap_or_else(PoisonError::into_inner);
            let long = since?.elapsed();
            (long > ill_after).then(|| format!("{what} for {} s", long.as_secs()))
        });
        Self(since)
    }

    /// Records the result of work that began at `begun`. An error of the class `NotReady` or `NotOwner` is no
    /// reason for a restart.
    pub fn note<T>(&self, begun: Instant, done: &Result<T>) {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = done.as_ref().is_err_and(Error::is_failure);
        *since = failed.then(|| since.unwrap_or(begun));
    }
}
