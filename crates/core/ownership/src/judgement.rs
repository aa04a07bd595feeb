//! The combined answer of both witnesses, as a pure function: the table in docs/understand/ownership.md,
//! "Who is asked".

use std::time::Duration;

use crate::claim::OwnershipClaim;
use crate::dns_verdict::DnsVerdict;
use crate::record_verdict::OwnershipLoss;
use crate::witness::Testimony;

/// Prefix of the reason that the process beside etcd reports where the bucket confirms the owner and the
/// record does not. The rest names each server. etcd-druid recognizes the case by this text.
pub const OWNED_BY_BUCKET_ALONE: &str = "the seed owns the shoot by its bucket alone: ";

/// The answer to "am I the owner?".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes.
    Owned {
        /// The remaining validity at a witness that only relays an answer.
        at_most: Option<Duration>,
    },
    /// No, and never again in this epoch.
    Lost(OwnershipLoss),
    /// No witness confirmed or denied the claim. The text is the reason.
    Unknown(String),
}

/// The facts that a process knows about its own epoch when the record answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct OwnEpoch {
    /// The owner's gardenlet has recorded phase `Sealing` of this epoch
    /// ([`crate::SecondWitness::sealing_was_reported`]).
    pub(crate) sealing_was_reported: bool,
    /// The process first saw its own epoch in the record less than P ago: a replica may still show the
    /// identity of the epoch before.
    pub(crate) may_show_previous_epoch: bool,
}

/// The answer of the first witness alone. The error is the reason to ask the second witness.
pub(crate) fn by_record(dns: DnsVerdict, own: OwnEpoch) -> Result<Answer, String> {
    match dns {
        DnsVerdict::Owned => Ok(Answer::Owned { at_most: None }),
        // Both names change in a single update, but a replica may apply the names separately. A loss is
        // final, so wait for P.
        DnsVerdict::Lost(loss @ OwnershipLoss::AnotherIdentity(_)) if own.may_show_previous_epoch => {
            let why = format!("{loss} beside an epoch that is not everywhere yet");
            Ok(Answer::Unknown(why))
        }
        DnsVerdict::Lost(loss) => Ok(Answer::Lost(loss)),
        // R17-50. The identity is deleted after phase Sealing was recorded. So this answer needs neither a
        // second witness nor a bucket.
        DnsVerdict::Deleted(_) if own.sealing_was_reported => Ok(Answer::Lost(OwnershipLoss::Deleted)),
        DnsVerdict::Deleted(why) | DnsVerdict::Silent(why) => Err(why),
    }
}

/// The answer of the second witness when the first witness is `silent`, or shows the epoch without an
/// identity.
pub(crate) fn by_second_witness(claim: &OwnershipClaim, silent: &str, testimony: Testimony) -> Answer {
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

/// Fails unless the second witness shows my epoch to every process that asks.
pub(crate) fn is_shown_by_second_witness(
    claim: &OwnershipClaim,
    testimony: &Testimony,
) -> Result<(), String> {
    match testimony {
        Testimony::Owned { epoch, .. } | Testimony::Claimed { epoch } if *epoch == claim.epoch => Ok(()),
        other => Err(format!("the second witness does not show it: {other:?}")),
    }
}
