//! The answer of a single authority for a claim: a pure function of the replies for the two names.

use std::fmt;

use crate::claim::{OwnershipClaim, epoch_of, is_identity};
use crate::reply::Reply;

/// The meaning of an authority's answer for a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordVerdict {
    /// My identity, my epoch.
    Mine,
    /// My epoch without an identity. A planned move deletes the identity, and so does a slip of an
    /// administrator: this answer alone ends no epoch.
    Deleted,
    /// The shoot is lost in this epoch.
    NotMine(OwnershipLoss),
    /// An answer that decides nothing: an earlier epoch, several values, a damaged value.
    Undecided(String),
    /// This identity beside an earlier epoch. Only a question about a hand-over asks for the identity then.
    /// For an owner check the answer decides nothing.
    EarlierOwner(String),
    /// No answer.
    Silent(String),
}

/// The reason why this seed has lost the shoot in this epoch. A loss is final: a seed that gets the shoot
/// again has a later epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OwnershipLoss {
    /// The record names another seed beside my epoch.
    AnotherIdentity(String),
    /// A later epoch has begun.
    LaterEpoch(i64),
    /// The record of my epoch was deleted after the gardenlet had recorded phase `Sealing`: a planned move
    /// (R17-50).
    Deleted,
    /// The second witness says that my epoch is sealed.
    Sealed,
}

impl fmt::Display for OwnershipLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnotherIdentity(identity) => write!(f, "the owner record names {identity}"),
            Self::LaterEpoch(epoch) => write!(f, "epoch {epoch} has begun"),
            Self::Deleted => f.write_str("the owner record was deleted"),
            Self::Sealed => f.write_str("this epoch is sealed"),
        }
    }
}

/// The meaning of an authority's reply for the epoch's name; `None` if the reply for the owner's name is
/// needed too.
///
/// The epoch is asked first. If the epoch came last, a claimant's own update could happen between the two
/// replies. The claimant would read the former owner beside the new epoch, and lose the new epoch for ever.
pub(crate) fn from_epoch_reply(claim: &OwnershipClaim, epoch: &Reply) -> Option<RecordVerdict> {
    match epoch {
        Reply::Silent(why) => Some(RecordVerdict::Silent(why.clone())),
        Reply::Unusable(why) => Some(RecordVerdict::Undecided(why.clone())),
        // Another identity without an epoch may belong to the epoch before mine.
        Reply::NoText => Some(RecordVerdict::Undecided("there is no epoch".to_owned())),
        Reply::Text(text) => match epoch_of(text) {
            None => Some(RecordVerdict::Undecided(format!("{:?} is no epoch", short(text)))),
            Some(epoch) if epoch > claim.epoch => {
                Some(RecordVerdict::NotMine(OwnershipLoss::LaterEpoch(epoch)))
            }
            // An earlier epoch is never a loss, with any identity: the record is not up to date.
            Some(epoch) if epoch < claim.epoch => {
                Some(RecordVerdict::Undecided(format!("it is still at epoch {epoch}")))
            }
            Some(_) => None,
        },
    }
}

/// The meaning of an authority's reply for the owner's name, beside my epoch.
pub(crate) fn from_owner_reply(claim: &OwnershipClaim, owner: &Reply) -> RecordVerdict {
    match owner {
        Reply::Silent(why) => RecordVerdict::Silent(why.clone()),
        Reply::Unusable(why) => RecordVerdict::Undecided(why.clone()),
        Reply::NoText => RecordVerdict::Deleted,
        Reply::Text(text) if *text == claim.identity => RecordVerdict::Mine,
        Reply::Text(text) if is_identity(text) => {
            RecordVerdict::NotMine(OwnershipLoss::AnotherIdentity(text.clone()))
        }
        Reply::Text(text) => RecordVerdict::Undecided(format!("{:?} is no seed identity", short(text))),
    }
}

/// Whether the authority's reply for the epoch's name is an earlier epoch.
pub(crate) fn shows_earlier_epoch(claim: &OwnershipClaim, epoch: &Reply) -> bool {
    matches!(epoch, Reply::Text(text) if epoch_of(text).is_some_and(|epoch| epoch < claim.epoch))
}

/// The meaning of an authority's reply for the owner's name, beside an earlier epoch. Without an identity,
/// the owner of the earlier epoch has stopped: a later owner without owner checks writes no record.
pub(crate) fn from_earlier_owner_reply(owner: &Reply) -> RecordVerdict {
    match owner {
        Reply::Silent(why) => RecordVerdict::Silent(why.clone()),
        Reply::Text(text) if is_identity(text) => RecordVerdict::EarlierOwner(text.clone()),
        Reply::Text(_) | Reply::NoText | Reply::Unusable(_) => {
            RecordVerdict::Undecided("it is still at an earlier epoch, without a seed identity".to_owned())
        }
    }
}

/// The text, shortened for a message.
fn short(text: &str) -> String {
    text.chars().take(80).collect()
}
