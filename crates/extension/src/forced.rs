//! Forced deletion: resources that cannot be removed are left behind and reported, and do not hold up the
//! deletion of a shoot.

use std::{future::Future, time::Duration};

use runtime::{Error, Result};
use tokio::time::{Instant, sleep, timeout_at};

/// Time in which a forced deletion retries transient errors. Longer than a hiccup of a cloud. Much shorter
/// than the 2 minutes that a gardenlet waits for a DNSRecord, the shortest of the gardenlet's timeouts.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Pause between two tries.
const PAUSE: Duration = Duration::from_secs(2);

/// How a forced deletion ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// The resources left behind and the reasons, a sentence each, without secrets. Empty if all resources
    /// were removed.
    pub left_behind: Vec<String>,
}

impl Released {
    /// Merges the results of two parts.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.left_behind.extend(other.left_behind);
        self
    }
}

/// Tries to remove a resource, as `delete` would. The resource is left behind after a refusal (an error that
/// a person has to fix), or without success within [`PATIENCE`]. `what` names the resource in the sentence.
/// Work that does not answer is dropped.
///
/// # Errors
/// [`Error::NotOwner`] only: a different seed owns the resource, so the resource is not reported as left
/// behind.
pub async fn attempt<F, Fut>(what: &str, mut work: F) -> Result<Released>
where
    F: FnMut() -> Fut + Send,
    Fut: Future<Output = Result<()>> + Send,
{
    let end = Instant::now() + PATIENCE;
    let mut why = format!("there was no answer within {PATIENCE:?}");
    let tries = async {
        loop {
            match work().await {
                Ok(()) => return Ok(true),
                Err(error @ Error::NotOwner(_)) => return Err(error),
                Err(error) => {
                    why = error.to_string();
                    if !error.is_retryable() {
                        return Ok(false);
                    }
                }
            }
            sleep(PAUSE).await;
        }
    };
    let done = timeout_at(end, tries).await.unwrap_or(Ok(false))?;
    Ok(Released {
        left_behind: if done {
            Vec::new()
        } else {
            vec![format!("{what} may be left behind: {why}")]
        },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicUsize, Ordering};

    use api::meta::ErrorCode;

    use super::*;

    async fn tried(answer: impl Fn(usize) -> Result<()> + Send + Sync) -> (Result<Released>, usize) {
        let tries = AtomicUsize::new(0);
        let released = attempt("network n", || {
            let number = tries.fetch_add(1, Ordering::Relaxed) + 1;
            std::future::ready(answer(number))
        })
        .await;
        (released, tries.load(Ordering::Relaxed))
    }

    #[tokio::test(start_paused = true)]
    async fn what_passes_is_awaited_and_what_is_refused_is_not() {
        let (released, tries) = tried(|number| {
            if number < 3 {
                Err(Error::transient("no answer"))
            } else {
                Ok(())
            }
        })
        .await;
        assert_eq!((released.unwrap(), tries), (Released::default(), 3));

        let refused = Error::config(
            ErrorCode::ErrInfraUnauthenticated,
            "the cloud refuses the credentials",
        );
        let (released, tries) = tried(|_| Err(refused.clone())).await;
        assert_eq!(
            released.unwrap().left_behind,
            ["network n may be left behind: the cloud refuses the credentials"]
        );
        assert_eq!(tries, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_whatever_the_cloud_does() {
        let begin = Instant::now();
        let (released, tries) = tried(|_| Err(Error::transient("no answer"))).await;
        assert_eq!(
            released.unwrap().left_behind,
            ["network n may be left behind: no answer"]
        );
        assert!(tries > 1 && begin.elapsed() <= PATIENCE, "{tries} tries");

        let released = attempt("network n", std::future::pending).await.unwrap();
        assert_eq!(
            released.left_behind,
            ["network n may be left behind: there was no answer within 20s"]
        );
    }

    #[tokio::test]
    async fn what_another_seed_owns_is_not_left_behind() {
        let (released, _) = tried(|_| Err(Error::NotOwner("seed-b owns it".into()))).await;
        assert_eq!(released, Err(Error::NotOwner("seed-b owns it".into())));
    }
}
