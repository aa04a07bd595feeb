//! The right of a shoot's owner, for who works under it.

use std::{future::poll_fn, pin::pin, sync::Arc, time::Duration};

use futures::FutureExt;
use ownership::{Answer, Loss, Report, Standing};
use permit::Permit;
use runtime::Error;
use tokio::sync::watch::Receiver;

use super::book::{Book, Run, ShootKey};
use crate::OwnerClaim;

/// How soon it is asked again where nobody has confirmed whose a shoot is, or what is wanted is not of its
/// epoch. About as often as a check is made.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// Why something may not be done.
#[derive(Debug)]
pub enum Refusal {
    /// Another one has the shoot, or nobody: in this epoch for ever.
    Lost(String),
    /// Nobody has said that this seed has it, or not for too long. It may be said again.
    Unconfirmed(String),
    /// What is wanted was written in another epoch than the shoot is in. It is written again.
    OtherEpoch(String),
    /// It cannot be asked.
    Impossible(Error),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Lost(why) => Self::NotOwner(why),
            Refusal::OtherEpoch(why) | Refusal::Unconfirmed(why) => Self::not_ready(ASK_AGAIN, why),
            Refusal::Impossible(error) => error,
        }
    }
}

/// The right of a shoot's owner, for as long as something is done under it.
pub struct Tenure {
    /// It ends when the shoot is not confirmed any more.
    pub permit: Permit,
    pub(super) hold: Hold,
}

/// A part in a check, which ends with the last of them.
pub(super) struct Hold {
    pub book: Arc<Book>,
    pub shoot: ShootKey,
    pub wanted: OwnerClaim,
    pub reports: Receiver<Report>,
    /// There until this is dropped.
    pub run: Option<Run>,
}

impl Tenure {
    /// The epoch in which the shoot is this seed's.
    #[must_use]
    pub fn epoch(&self) -> i64 {
        self.hold.wanted.epoch
    }

    /// Does this, and goes on asking meanwhile.
    pub async fn beside<F: Future>(&self, work: F) -> F::Output {
        self.hold.beside(work).await
    }

    /// Why nothing may be done under it any more; none while it may.
    #[must_use]
    pub fn ended(&self) -> Option<Refusal> {
        (!self.permit.is_valid()).then(|| self.hold.refusal())
    }
}

impl Hold {
    /// Does this, and goes on asking meanwhile.
    pub async fn beside<F: Future>(&self, work: F) -> F::Output {
        let mut work = pin!(work);
        let mut run = self.run.clone();
        poll_fn(|context| {
            // First: what is lost at this moment is lost before the next step of the work.
            if run.as_mut().is_some_and(|run| run.poll_unpin(context).is_ready()) {
                run = None;
            }
            work.as_mut().poll(context)
        })
        .await
    }

    /// Why nothing may be done.
    pub fn refusal(&self) -> Refusal {
        let report = self.reports.borrow().clone();
        let epoch = self.wanted.epoch;
        if let Standing::Lost(loss) = &report.standing {
            return Refusal::Lost(self.remember(loss));
        }
        let why = match report.last.map(|last| last.answer) {
            Some(Answer::Unknown(why)) => why,
            Some(_) => "the last confirmation is too old".to_owned(),
            None => "nobody has answered yet".to_owned(),
        };
        Refusal::Unconfirmed(format!(
            "it is not confirmed that this seed has the shoot, in ownership epoch {epoch}: {why}"
        ))
    }

    fn remember(&self, loss: &Loss) -> String {
        let epoch = self.wanted.epoch;
        let why = format!(
            "this seed does nothing for the shoot in ownership epoch {epoch} any more ({loss}); what is left here is cleaned up \
             without touching anything outside, and only a new epoch of this seed brings the rest back"
        );
        self.book.lost(&self.shoot, epoch, &why);
        why
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // With the last one the check ends, and its right.
        self.run = None;
        let standing = self.reports.borrow().standing.clone();
        if let Standing::Lost(loss) = &standing {
            self.remember(loss);
        }
        self.book.leave(&self.shoot, &self.wanted);
    }
}
