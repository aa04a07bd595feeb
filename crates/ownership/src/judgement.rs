//! The table of docs/understand/ownership.md: what two witnesses together mean. A pure function.

use std::time::Duration;

use crate::agreement::Dns;
use crate::claim::Claim;
use crate::saying::Loss;
use crate::witness::Testimony;

/// The beginning of the reason that the process beside etcd reports where the bucket confirms the owner and
/// the record does not. The rest names each server. etcd-druid recognizes the case by this text.
pub const OWNED_BY_BUCKET_ALONE: &str = "the seed owns the shoot by its bucket alone: ";

/// The answer to "am I the owner?".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes.
    Owned {
        /// A witness that only passes on what it was told says for how long that is still good.
        at_most: Option<Duration>,
    },
    /// No, and never again in this epoch.
    Lost(Loss),
    /// Nobody said so or otherwise.
    Unknown(String),
}

/// What a process knows of its own epoch when the record answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct OwnEpoch {
    /// The owner's gardenlet has recorded phase `Sealing` of this epoch
    /// ([`crate::SecondWitness::has_passed_sealing`]).
    pub(crate) has_passed_sealing: bool,
    /// The process has seen its own epoch in the record for less than P: a replica may still show the
    /// identity of the epoch before.
    pub(crate) is_fresh: bool,
}

/// What the first witness means by itself. The error is the reason for which the second witness has to be
/// asked.
pub(crate) fn by_record(dns: Dns, own: OwnEpoch) -> Result<Answer, String> {
    match dns {
        Dns::Owned => Ok(Answer::Owned { at_most: None }),
        // Both names change in one update, but a replica may apply them one after the other. A loss is final,
        // so wait for P.
        Dns::Lost(loss @ Loss::AnotherIdentity(_)) if own.is_fresh => Ok(Answer::Unknown(format!(
            "{loss} beside an epoch that is not everywhere yet"
        ))),
        Dns::Lost(loss) => Ok(Answer::Lost(loss)),
        // R17-50. The identity goes after phase Sealing was recorded, so the shoot needs no second answer and
        // no bucket.
        Dns::Deleted(_) if own.has_passed_sealing => Ok(Answer::Lost(Loss::Deleted)),
        Dns::Deleted(why) | Dns::Silent(why) => Err(why),
    }
}

/// What the second witness means when the first one is `silent`, or shows the epoch without an identity.
pub(crate) fn by_second_witness(claim: &Claim, silent: &str, testimony: Testimony) -> Answer {
    let mine = claim.epoch;
    let unknown = |second: String| Answer::Unknown(format!("{silent}; and the second witness: {second}"));
    if let Some(loss) = testimony.loss(mine) {
        return Answer::Lost(loss);
    }
    match testimony {
        Testimony::Owned { epoch, left } if epoch == mine => Answer::Owned { at_most: left },
        Testimony::Claimed { epoch } if epoch == mine => {
            unknown("this epoch is claimed and not opened yet".to_owned())
        }
        Testimony::Owned { epoch, .. } | Testimony::Sealed { epoch } | Testimony::Claimed { epoch } => {
            unknown(format!("it is still at epoch {epoch}"))
        }
        Testimony::Missing => unknown("it has no record of the shoot".to_owned()),
        Testimony::Silent(why) => unknown(why),
    }
}

/// Whether the second witness shows my epoch to everyone who asks it.
pub(crate) fn is_shown_by_second_witness(claim: &Claim, testimony: &Testimony) -> Result<(), String> {
    match testimony {
        Testimony::Owned { epoch, .. } | Testimony::Claimed { epoch } if *epoch == claim.epoch => Ok(()),
        other => Err(format!("the second witness does not show it: {other:?}")),
    }
}
