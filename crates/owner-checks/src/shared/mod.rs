//! Checks for a process that does many things for many shoots: one for each shoot and epoch for which
//! something is done, shared by all that do it (R17-60, R17-61).
//!
//! Nothing is spawned (invariant 4): a check is one future that everybody polls who works under it, beside
//! his work. It ends with the last of them.
//!
//! | file | what |
//! |---|---|
//! | `asking` | who is asked, and about what |
//! | `book` | which shoots are asked for, and which were lost |
//! | `tenure` | the right of an owner, for who works under it |

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
pub use tenure::{Refusal, Tenure};

use crate::OwnerClaim;
use asking::Asking;
use book::{Book, Known, ShootKey};
use tenure::Hold;

/// Who may act for which shoot, as their owner records say. A process makes one and gives it to all that act.
/// Cheap to clone.
#[derive(Clone)]
pub struct SharedChecks {
    asks: Arc<dyn Ask>,
    book: Arc<Book>,
}

/// How long it may take to be confirmed.
#[derive(Clone, Copy, Debug)]
pub enum Patience {
    /// Until the first answer, whatever it is.
    FirstAnswer,
    /// Until an answer that decides, but no longer than this.
    Decision(Duration),
}

/// A first answer comes sooner: each check has bounds of its own. Where they are long, twice as long as a
/// check may take.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

impl SharedChecks {
    /// Where the processes beside etcd answer somewhere else, at a URL with `{namespace}` in it.
    #[must_use]
    pub fn with_sidecars_at(url: &str) -> Self {
        let sidecars = url.to_owned();
        Self::asking(Arc::new(Asking { sidecars }))
    }

    /// As somebody else asks.
    #[must_use]
    pub fn asking(asks: Arc<dyn Ask>) -> Self {
        Self {
            asks,
            book: Arc::default(),
        }
    }

    /// What has to be confirmed for the shoot of a Cluster; none where its seed does not check owners.
    ///
    /// # Errors
    /// It does, and something that is needed is missing or wrong: then nothing may be done for the shoot.
    pub fn wanted(&self, cluster: Option<&ClusterObject>) -> Result<Option<OwnerClaim>> {
        self.asks.wanted(cluster)
    }

    /// The right to act for a shoot: that of the check that is under way, or else of a new one.
    ///
    /// # Errors
    /// Why nothing may be done for it.
    pub async fn confirm(
        &self,
        seed: &Seed,
        namespace: &str,
        wanted: OwnerClaim,
        patience: Patience,
    ) -> Result<Tenure, Refusal> {
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
        // Whatever came of it is looked at below.
        let awaited = async { drop(timeout(within, reports.wait_for(is_decided)).await) };
        hold.beside(awaited).await;
        let standing = hold.reports.borrow().standing.clone();
        match standing {
            Standing::Owner(permit) if permit.is_valid() => Ok(Tenure { permit, hold }),
            _ => Err(hold.refusal()),
        }
    }

    /// A part in the check of the shoot.
    fn hold(&self, seed: &Seed, namespace: &str, wanted: OwnerClaim) -> Result<Hold, Refusal> {
        let begin = || {
            let begun = self.asks.begin(&wanted, seed, namespace);
            let begun = begun.map_err(Refusal::Impossible)?;
            Ok((begun.reports, begun.run.shared()))
        };
        let shoot = ShootKey::new(namespace, &wanted);
        match self.book.find(&shoot, &wanted, begin)? {
            Known::Lost(why) => Err(Refusal::Lost(why)),
            Known::Asked(reports, run) => Ok(Hold {
                book: Arc::clone(&self.book),
                shoot,
                wanted,
                reports,
                run: Some(run),
            }),
        }
    }

    /// Whether this is the first time that the loss of a shoot is told of this object.
    #[must_use]
    #[allow(clippy::needless_pass_by_value)] // Callers have made the text for this call.
    pub fn is_news(&self, namespace: &str, object: String) -> bool {
        self.book.is_news(namespace, &object)
    }

    /// Of how many shoots something is known.
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
