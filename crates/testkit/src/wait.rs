//! Bounded waiting for things that cannot be watched.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use anyhow::{Result, bail};

/// Pause between two looks. Shorter than what a person notices in a test, longer than a request takes.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Looks until `look` succeeds, and fails with its last error after `limit`. Where an object can be watched,
/// await its condition instead.
pub async fn eventually<T, E, F, Fut>(what: &str, limit: Duration, mut look: F) -> Result<T>
where
    E: Display,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let deadline = tokio::time::Instant::now() + limit;
    let mut error = "no answer".to_owned();
    loop {
        match tokio::time::timeout_at(deadline, look()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(why)) => error = why.to_string(),
            // The look before this one says more than that time was over in the middle of it.
            Err(_) => {}
        }
        if tokio::time::Instant::now() + LOOK_EVERY >= deadline {
            bail!("{what}: not so after {limit:?}: {error}");
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
