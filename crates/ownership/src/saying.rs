//! What one authority says of a claim: a pure function of its words on the two names.

use std::fmt;

use crate::claim::{Claim, epoch_of, is_identity};
use crate::reply::Reply;

/// One authority's word on a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Saying {
    /// My identity, my epoch.
    Mine,
    /// My epoch, and no identity beside it. A planned move deletes the identity, and so does a slip of an
    /// administrator: this answer alone ends no epoch.
    Deleted,
    /// It is not mine any more.
    NotMine(Loss),
    /// It answers, and that decides nothing: an earlier epoch, several values, something damaged.
    Nothing(String),
    /// It does not answer.
    Silent(String),
}

/// Why a shoot is not this seed's any more in this epoch. It never comes back: who gets the shoot again has a
/// later epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
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

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnotherIdentity(identity) => write!(f, "the owner record names {identity}"),
            Self::LaterEpoch(epoch) => write!(f, "epoch {epoch} has begun"),
            Self::Deleted => f.write_str("the owner record was deleted"),
            Self::Sealed => f.write_str("this epoch is sealed"),
        }
    }
}

/// What an authority's word on the epoch's name means. None: its word on the owner's name is needed too.
///
/// The epoch is asked for first. Asked for last, the answers of a claimant whose own update comes in between
/// would be the former owner and the new epoch: lost, for ever, what has just been won.
pub(crate) fn of_epoch(claim: &Claim, epoch: &Reply) -> Option<Saying> {
    match epoch {
        Reply::Silent(why) => Some(Saying::Silent(why.clone())),
        Reply::Unusable(why) => Some(Saying::Nothing(why.clone())),
        // Another identity without an epoch may be the one before mine.
        Reply::Nothing => Some(Saying::Nothing("there is no epoch".to_owned())),
        Reply::Text(text) => match epoch_of(text) {
            None => Some(Saying::Nothing(format!("{:?} is no epoch", short(text)))),
            Some(epoch) if epoch > claim.epoch => Some(Saying::NotMine(Loss::LaterEpoch(epoch))),
            // Never a loss, whatever identity stands beside it: the record is not up to date.
            Some(epoch) if epoch < claim.epoch => {
                Some(Saying::Nothing(format!("it is still at epoch {epoch}")))
            }
            Some(_) => None,
        },
    }
}

/// What an authority's word on the owner's name means, beside my epoch.
pub(crate) fn of_owner(claim: &Claim, owner: &Reply) -> Saying {
    match owner {
        Reply::Silent(why) => Saying::Silent(why.clone()),
        Reply::Unusable(why) => Saying::Nothing(why.clone()),
        Reply::Nothing => Saying::Deleted,
        Reply::Text(text) if *text == claim.identity => Saying::Mine,
        Reply::Text(text) if is_identity(text) => Saying::NotMine(Loss::AnotherIdentity(text.clone())),
        Reply::Text(text) => Saying::Nothing(format!("{:?} is no seed identity", short(text))),
    }
}

/// As much of a text as belongs into a message.
fn short(text: &str) -> String {
    text.chars().take(80).collect()
}
