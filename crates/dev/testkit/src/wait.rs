//! Bounded waits for conditions that cannot be watched.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::wait_bound::WaitBound;

/// Pause between two checks. Shorter than a person notices in a test, longer than a request takes.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Calls `look` until success, and fails with the last error after `limit`. If an object can be watched,
/// await the condition of the object instead.
#[track_caller]
pub fn eventually<T, E, F, Fut>(
    what: impl Into<String>,
    limit: Duration,
    mut look: F,
) -> impl Future<Output = Result<T>>
where
    E: Display,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let what = what.into();
    let bound = WaitBound::new(what.clone(), limit);
    bound.measure(async move {
        let deadline = tokio::time::Instant::now() + limit;
        let mut error = "no answer".to_owned();
        loop {
            match tokio::time::timeout_at(deadline, look()).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(why)) => error = why.to_string(),
                // The error of the earlier check says more than a timeout in the middle of this check.
                Err(_) => {}
            }
            if tokio::time::Instant::now() + LOOK_EVERY >= deadline {
                bail!("{what}: not so after {limit:?}: {error}");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    })
}
