//! Shared checks for a process that works for many shoots. All work for the same shoot and epoch shares a
//! single check (R17-60, R17-61).
//!
//! No task is spawned: dropping the work stops the check. A check is a single future, and each work polls
//! that future beside the work.
//! The check ends with the last work.
//!
//! | file | purpose |
//! |---|---|
//! | `asking` | the witnesses of a check, and the claim to check |
//! | `book` | the shoots under check, and the lost shoots |
//! | `tenure` | the right of an owner, held by the work under that right |

mod asking;
mod book;
mod tenure;

use std::{fmt, sync::Arc, time::Duration};

use api::extensions::Cluster as ClusterObject;
use futures::FutureExt;
use ownership::{Report, Standing};
use runtime::{Result, Seed};
use tokio::time::timeout;

pub use asking::{Ask, Begun};
pub use tenure::{OwnershipError, OwnershipRight};

use crate::OwnerClaim;
use asking::Asking;
use book::{Book, CheckState, ShootKey};
use tenure::Hold;

/// The checks of a process: decide whether the process may act for a shoot, as the owner record says. A
/// process creates a single instance and shares clones. Cheap to clone.
#[derive(Clone)]
pub struct SharedChecks {
    asks: Arc<dyn Ask>,
    book: Arc<Book>,
}

/// Bound of the wait for a confirmation.
#[derive(Clone, Copy, Debug)]
pub enum Patience {
    /// Until the first answer, also if that answer is Unknown.
    FirstAnswer,
    /// Until an answer that decides (Owned or Lost), but no longer than this duration.
    Decision(Duration),
}

/// Upper bound of the wait for a first answer. A check has bounds of its own and usually answers sooner.
/// Where those bounds are long, the wait is twice the longest duration of a check.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

impl SharedChecks {
    /// For processes beside etcd at a different URL, with `{namespace}` in the URL.
    #[must_use]
    pub fn with_sidecars_at(url: &str) -> Self {
        let sidecars = url.to_owned();
        Self::asking(Arc::new(Asking { sidecars }))
    }

    /// With a different implementation of [`Ask`].
    #[must_use]
    pub fn asking(asks: Arc<dyn Ask>) -> Self {
        Self {
            asks,
            book: Arc::default(),
        }
    }

    /// The claim that must be confirmed for a Cluster's shoot; `None` where the seed does not check owners.
    ///
    /// # Errors
    /// The seed checks owners, and a required field is missing or invalid. Then no work may be done for the
    /// shoot.
    pub fn wanted(&self, cluster: Option<&ClusterObject>) -> Result<Option<OwnerClaim>> {
        self.asks.wanted(cluster)
    }

    /// The right to act for a shoot, from the check under way or else from a new check.
    ///
    /// # Errors
    /// The reason why no work may be done for the shoot.
    pub async fn confirm(
        &self,
        seed: &Seed,
        namespace: &str,
        wanted: OwnerClaim,
        patience: Patience,
    ) -> Result<OwnershipRight, OwnershipError> {
        let first_answer = FIRST_ANSWER.max(wanted.terms.settings().check_takes() * 2);
        let hold = self.hold(seed, namespace, wanted)?;
        let (within, insist) = match patience {
            Patience::FirstAnswer => (first_answer, false),
            Patience::Decision(within) => (within, true),
        };
        let is_decided = |report: &Report| match report.standing {
            Standing::Unconfirmed => report.last.is_some() && !insist,
            Standing::Owner(_) | Standing::Lost(_) => true,
        };
        let mut reports = hold.reports.clone();
        // The standing is read below, whether the wait succeeded or timed out.
        let awaited = async { drop(timeout(within, reports.wait_for(is_decided)).await) };
        hold.beside(awaited).await;
        let standing = hold.reports.borrow().standing.clone();
        match standing {
            Standing::Owner(permit) if permit.is_valid() => Ok(OwnershipRight { permit, hold }),
            _ => Err(hold.refuse_and_record()),
        }
    }

    /// A share of the shoot's check.
    fn hold(&self, seed: &Seed, namespace: &str, wanted: OwnerClaim) -> Result<Hold, OwnershipError> {
        let begin = || {
            let begun = self.asks.begin(&wanted, seed, namespace);
            let begun = begun.map_err(OwnershipError::Impossible)?;
            Ok((begun.reports, begun.run.shared()))
        };
        let shoot = ShootKey::new(namespace, &wanted);
        match self.book.find(&shoot, &wanted, begin)? {
            CheckState::Lost(why) => Err(OwnershipError::Lost(why)),
            CheckState::LaterEpoch(later) => Err(OwnershipError::OtherEpoch(format!(
                "Cluster {namespace} is of ownership epoch {}, and this process already checks epoch {later}",
                wanted.epoch
            ))),
            CheckState::Asked(reports, run) => Ok(Hold {
                book: Arc::clone(&self.book),
                shoot,
                wanted,
                reports,
                run: Some(run),
            }),
        }
    }

    /// Whether the loss of a shoot is reported for this object for the first time.
    #[must_use]
    #[allow(clippy::needless_pass_by_value)] // Callers have made the text for this call.
    pub fn is_first_report(&self, namespace: &str, object: String) -> bool {
        self.book.is_first_report(namespace, &object)
    }

    /// Number of shoots with an entry.
    #[cfg(test)]
    fn kept(&self) -> usize {
        self.book.len()
    }
}

impl Default for SharedChecks {
    fn default() -> Self {
        Self::asking(Arc::new(Asking::default()))
    }
}

impl fmt::Debug for SharedChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedChecks")
    }
}

#[cfg(test)]
mod tests;
