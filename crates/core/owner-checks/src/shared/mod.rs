//! Shared checks for a process that works for many shoots. All work for the same shoot and epoch shares a
//! single check (R17-60, R17-61).
//!
//! No task is spawned: a check is a single future, and each work polls the check beside the own steps. The
//! check ends when the last work is dropped.
//!
//! | file | purpose |
//! |---|---|
//! | `check_source` | the witnesses of a check, and the claim to check |
//! | `registry` | the shoots under check, and the lost shoots |
//! | `ownership_right` | the right of an owner, held by the work under that right |

mod check_source;
mod ownership_right;
mod registry;

use std::{fmt, sync::Arc, time::Duration};

use api::extensions::Cluster as ClusterObject;
use futures::FutureExt;
use ownership::{Report, Standing};
use runtime::{Result, client::Seed};
use tokio::time::timeout;

pub use check_source::{CheckSource, RunningCheck};
pub use ownership_right::{OwnershipError, OwnershipRight};

use crate::OwnerClaim;
use check_source::WitnessCheckSource;
use ownership_right::CheckShare;
use registry::{CheckRegistry, CheckState, ShootKey};

/// The owner checks of a process for all shoots. A process creates a single instance and shares clones. Cheap
/// to clone.
#[derive(Clone)]
pub struct SharedChecks {
    source: Arc<dyn CheckSource>,
    registry: Arc<CheckRegistry>,
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
        Self::with_source(Arc::new(WitnessCheckSource { sidecars }))
    }

    /// With a different implementation of [`CheckSource`].
    #[must_use]
    pub fn with_source(source: Arc<dyn CheckSource>) -> Self {
        Self {
            source,
            registry: Arc::default(),
        }
    }

    /// The claim that must be confirmed for a Cluster's shoot; `None` where the seed does not check owners.
    ///
    /// # Errors
    /// The seed checks owners, and a required field is missing or invalid. Then no work may be done for the
    /// shoot.
    pub fn wanted(&self, cluster: Option<&ClusterObject>) -> Result<Option<OwnerClaim>> {
        self.source.wanted(cluster)
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
        let share = self.share(seed, namespace, wanted)?;
        let (within, insist) = match patience {
            Patience::FirstAnswer => (first_answer, false),
            Patience::Decision(within) => (within, true),
        };
        let is_decided = |report: &Report| match report.standing {
            Standing::Unconfirmed => report.last.is_some() && !insist,
            Standing::Owner(_) | Standing::Lost(_) => true,
        };
        let mut reports = share.reports.clone();
        // The standing is read below, whether the wait succeeded or timed out.
        let awaited = async { drop(timeout(within, reports.wait_for(is_decided)).await) };
        share.beside(awaited).await;
        let standing = share.reports.borrow().standing.clone();
        match standing {
            Standing::Owner(permit) if permit.is_valid() => Ok(OwnershipRight { permit, share }),
            _ => Err(share.refuse_and_record()),
        }
    }

    /// A share of the shoot's check.
    fn share(&self, seed: &Seed, namespace: &str, wanted: OwnerClaim) -> Result<CheckShare, OwnershipError> {
        let begin = || {
            let begun = self.source.begin(&wanted, seed, namespace);
            let begun = begun.map_err(OwnershipError::Impossible)?;
            Ok((begun.reports, begun.run.shared()))
        };
        let shoot = ShootKey::new(namespace, &wanted);
        match self.registry.find(&shoot, &wanted, begin)? {
            CheckState::Lost(why) => Err(OwnershipError::Lost(why)),
            CheckState::LaterEpoch(later) => Err(OwnershipError::OtherEpoch(format!(
                "Cluster {namespace} is of ownership epoch {}, and this process already checks epoch {later}",
                wanted.epoch
            ))),
            CheckState::UnderWay(reports, run) => Ok(CheckShare {
                registry: Arc::clone(&self.registry),
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
        self.registry.is_first_report(namespace, &object)
    }

    /// Number of shoots with an entry.
    #[cfg(test)]
    fn kept(&self) -> usize {
        self.registry.len()
    }
}

impl Default for SharedChecks {
    fn default() -> Self {
        Self::with_source(Arc::new(WitnessCheckSource::default()))
    }
}

impl fmt::Debug for SharedChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedChecks")
    }
}

#[cfg(test)]
mod tests;
