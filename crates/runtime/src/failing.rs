//! Since when work that is done again and again has failed, and when that is too long.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{Error, Result, process::Health};

/// Since when nothing has gone well.
pub struct Failing(Arc<Mutex<Option<Instant>>>);

impl Failing {
    /// Nothing has failed yet. `/healthz` says `what` and for how long, once it has failed for longer than
    /// `ill_after`: the process is to be started anew then.
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

    /// Notes how a piece of work ended that was begun then. What is awaited is no reason to start anew.
    pub fn note<T>(&self, begun: Instant, done: &Result<T>) {
        let mut since = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = done.as_ref().is_err_and(Error::is_failure);
        *since = failed.then(|| since.unwrap_or(begun));
    }
}
