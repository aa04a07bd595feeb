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
pub async fn attempt<F, Fut>(what: &str, work: F) -> Result<Released>
where
    F: FnMut() -> Fut + Send,
    Fut: Future<Output = Result<()>> + Send,
{
    attempt_within(what, PATIENCE, work).await
}

/// As [`attempt`], for a resource whose end takes longer than [`PATIENCE`]. While the work reports that the
/// end is under way ([`Error::NotReady`]), the resource is awaited for `longest`. Further errors get
/// [`PATIENCE`].
///
/// # Errors
/// As for [`attempt`].
pub async fn attempt_within<F, Fut>(what: &str, longest: Duration, mut work: F) -> Result<Released>
where
    F: FnMut() -> Fut + Send,
    Fut: Future<Output = Result<()>> + Send,
{
    let begin = Instant::now();
    let mut end = begin + PATIENCE;
    let mut why = format!("there was no answer within {PATIENCE:?}");
    loop {
        match timeout_at(end, work()).await {
            Ok(Ok(())) => return Ok(Released::default()),
            Ok(Err(error @ Error::NotOwner(_))) => return Err(error),
            Ok(Err(error)) => {
                why = error.to_string();
                if !error.is_retryable() {
                    break;
                }
                if matches!(error, Error::NotReady { .. }) {
                    end = (Instant::now() + PATIENCE).min(begin + longest);
                }
            }
            Err(_) => break,
        }
        if Instant::now() + PAUSE >= end {
            break;
        }
        sleep(PAUSE).await;
    }
    Ok(Released {
        left_behind: vec![format!("{what} may be left behind: {why}")],
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

    #[tokio::test(start_paused = true)]
    async fn an_end_that_is_under_way_is_awaited_longer_than_an_error() {
        const LONGEST: Duration = Duration::from_secs(180);
        let begin = Instant::now();
        let released = attempt_within("network n", LONGEST, || {
            let is_gone = begin.elapsed() > Duration::from_secs(90);
            std::future::ready(if is_gone {
                Ok(())
            } else {
                Err(Error::not_ready(PAUSE, "gateway g is being removed"))
            })
        });
        assert_eq!(released.await.unwrap(), Released::default());

        for (error, longest) in [
            (Error::not_ready(PAUSE, "gateway g is being removed"), LONGEST),
            (Error::transient("no answer"), PATIENCE),
        ] {
            let begin = Instant::now();
            let attempted = attempt_within("network n", LONGEST, || std::future::ready(Err(error.clone())));
            let left = attempted.await.unwrap().left_behind;
            assert_eq!(left, [format!("network n may be left behind: {error}")]);
            let elapsed = begin.elapsed();
            assert!(
                elapsed <= longest && elapsed + 2 * PAUSE >= longest,
                "{elapsed:?}"
            );
        }
    }

    #[tokio::test]
    async fn what_another_seed_owns_is_not_left_behind() {
        let (released, _) = tried(|_| Err(Error::NotOwner("seed-b owns it".into()))).await;
        assert_eq!(released, Err(Error::NotOwner("seed-b owns it".into())));
    }
}
