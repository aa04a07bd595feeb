//! The table of docs/ownership.md: what two witnesses together mean. A pure function.

use std::time::Duration;

use crate::agreement::Dns;
use crate::claim::Claim;
use crate::saying::Loss;
use crate::witness::Testimony;

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

/// What the first witness means by itself; its reason to be silent if the second one has to be asked.
pub(crate) fn by_record(dns: Dns) -> Result<Answer, String> {
    match dns {
        Dns::Owned => Ok(Answer::Owned { at_most: None }),
        Dns::Lost(loss) => Ok(Answer::Lost(loss)),
        Dns::Silent(why) => Err(why),
    }
}

/// What the second witness means when the first one is `silent`.
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
