//! The right of a shoot's owner, held by the work under that right.

use std::{future::poll_fn, pin::pin, sync::Arc, time::Duration};

use futures::FutureExt;
use ownership::{Answer, OwnershipLoss, Report, Standing};
use permit::Permit;
use runtime::Error;
use tokio::sync::watch::Receiver;

use super::registry::{CheckRegistry, SharedRun, ShootKey};
use crate::OwnerClaim;

/// Requeue interval while no witness confirms the owner, or an object is of a different epoch.
const REQUEUE_UNCONFIRMED: Duration = Duration::from_secs(5);

/// The reason why work is refused.
#[derive(Debug)]
pub enum OwnershipError {
    /// A different seed owns the shoot, or no seed does: final for this epoch.
    Lost(String),
    /// No witness has confirmed this seed, or not recently enough. A later answer may confirm the seed.
    Unconfirmed(String),
    /// The object or the Cluster is of a different epoch. The gardenlet of the shoot's present epoch writes
    /// the object again; the cache of a Cluster catches up.
    OtherEpoch(String),
    /// The check cannot be made.
    Impossible(Error),
}

impl From<OwnershipError> for Error {
    fn from(refusal: OwnershipError) -> Self {
        match refusal {
            OwnershipError::Lost(why) => Self::not_owner(why),
            OwnershipError::OtherEpoch(why) | OwnershipError::Unconfirmed(why) => {
                Self::not_ready(REQUEUE_UNCONFIRMED, why)
            }
            OwnershipError::Impossible(error) => error,
        }
    }
}

/// The right of a shoot's owner, for the duration of some work.
pub struct OwnershipRight {
    /// Ends when no witness confirms the shoot any more.
    pub permit: Permit,
    pub(super) share: CheckShare,
}

/// A share of a check. The check ends when the last share is dropped.
pub(super) struct CheckShare {
    pub registry: Arc<CheckRegistry>,
    pub shoot: ShootKey,
    pub wanted: OwnerClaim,
    pub reports: Receiver<Report>,
    /// Present until this share is dropped.
    pub run: Option<SharedRun>,
}

impl OwnershipRight {
    /// The epoch in which this seed owns the shoot.
    #[must_use]
    pub fn epoch(&self) -> i64 {
        self.share.wanted.epoch
    }

    /// Runs `work` and polls the check beside the work.
    pub async fn beside<F: Future>(&self, work: F) -> F::Output {
        self.share.beside(work).await
    }

    /// The reason why no work may be done under this right any more; `None` while the right is valid.
    #[must_use]
    pub fn ended(&self) -> Option<OwnershipError> {
        (!self.permit.is_valid()).then(|| self.share.refuse_and_record())
    }
}

impl CheckShare {
    /// Runs `work` and polls the check beside the work.
    pub async fn beside<F: Future>(&self, work: F) -> F::Output {
        let mut work = pin!(work);
        let mut run = self.run.clone();
        poll_fn(|context| {
            // The check is polled first, so that a loss takes effect before the next step of the work.
            if run.as_mut().is_some_and(|run| run.poll_unpin(context).is_ready()) {
                run = None;
            }
            work.as_mut().poll(context)
        })
        .await
    }

    /// The reason why no work may be done. Records a loss for all later work of the shoot.
    pub fn refuse_and_record(&self) -> OwnershipError {
        let report = self.reports.borrow().clone();
        let epoch = self.wanted.epoch;
        if let Standing::Lost(loss) = &report.standing {
            return OwnershipError::Lost(self.record_loss(loss));
        }
        let why = match report.last.map(|last| last.answer) {
            Some(Answer::Unknown(why)) => why,
            Some(_) => "the last confirmation is too old".to_owned(),
            None => "nobody has answered yet".to_owned(),
        };
        OwnershipError::Unconfirmed(format!(
            "it is not confirmed that this seed has the shoot, in ownership epoch {epoch}: {why}"
        ))
    }

    fn record_loss(&self, loss: &OwnershipLoss) -> String {
        let epoch = self.wanted.epoch;
        let why = format!(
            "this seed does nothing for the shoot in ownership epoch {epoch} any more ({loss}); what is left here is cleaned up \
             without touching anything outside, and only a new epoch of this seed brings the rest back"
        );
        self.registry.lost(&self.shoot, epoch, &why);
        why
    }
}

impl Drop for CheckShare {
    fn drop(&mut self) {
        // Dropping the last share ends the check and the right.
        self.run = None;
        let standing = self.reports.borrow().standing.clone();
        if let Standing::Lost(loss) = &standing {
            self.record_loss(loss);
        }
        self.registry.leave(&self.shoot, &self.wanted);
    }
}
