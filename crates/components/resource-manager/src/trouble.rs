//! The reason why an object is not in the wanted state, or not gone: for the condition, and for the next
//! action.

use std::time::Duration;

use api::meta::ErrorCode;
use permit::NotPermitted;
use runtime::Error;

use crate::{
    names::UNWATCHED_REQUEUE,
    object::Key,
    refusal,
    status::some,
    target::{Refused, Target},
};

/// The reason why an object is not in the wanted state.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// The cluster does not answer: the remaining work would fail in the same way.
    Away(String),
    /// The permit of this process has ended.
    Lost(NotPermitted),
    /// A user has to change an object or a setting.
    Wrong(String),
    /// The API server did not carry out the request; a later try may succeed.
    Failed(String),
    /// The object waits for a change.
    Awaited(String, Duration),
}

impl Trouble {
    /// The trouble of a refused request for an object.
    #[must_use]
    pub fn from_refused(key: &Key, refused: Refused) -> Self {
        match refused {
            Refused::Away(why) => Self::Away(why),
            Refused::Lost(lost) => Self::Lost(lost),
            Refused::Unreadable => {
                Self::Failed(format!("{key}: the answer of the API server cannot be read"))
            }
            Refused::Api(status) => {
                let why = format!("{key}: {}", refusal::words(&status, key.is("", "Secret")));
                if matches!(status.code, 429 | 500..) {
                    Self::Failed(why)
                } else {
                    Self::Wrong(why)
                }
            }
        }
    }

    /// This object waits for a change.
    #[must_use]
    pub fn awaited(key: &Key, why: &str) -> Self {
        Self::Awaited(format!("{key} {why}"), UNWATCHED_REQUEUE)
    }

    /// Whether work on other objects is useless.
    #[must_use]
    pub fn ends_all(&self) -> bool {
        matches!(self, Self::Away(_) | Self::Lost(_))
    }

    /// The reason as a text.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Away(why) => format!("the API server does not answer: {why}"),
            Self::Lost(lost) => lost.to_string(),
            Self::Wrong(why) | Self::Failed(why) | Self::Awaited(why, _) => why.clone(),
        }
    }
}

/// A single error for all troubles of a ManagedResource; the gravest trouble gives the class.
#[must_use]
pub fn gravest(troubles: &[Trouble], target: &Target) -> Error {
    if let Some(lost) = troubles.iter().find_map(|trouble| match trouble {
        Trouble::Lost(lost) => Some(lost.clone()),
        _ => None,
    }) {
        return lost.into();
    }
    let words: Vec<String> = troubles.iter().map(Trouble::words).collect();
    let words = some(&words);
    if troubles.iter().any(|trouble| matches!(trouble, Trouble::Away(_))) {
        // The pause belongs to the cluster, not to each ManagedResource.
        return Error::not_ready(target.gate.pause(), words);
    }
    if troubles
        .iter()
        .any(|trouble| matches!(trouble, Trouble::Wrong(_)))
    {
        return Error::config(ErrorCode::ErrConfigurationProblem, words);
    }
    if troubles
        .iter()
        .any(|trouble| matches!(trouble, Trouble::Failed(_)))
    {
        return Error::transient(words);
    }
    let waits = troubles.iter().filter_map(|trouble| match trouble {
        Trouble::Awaited(_, after) => Some(*after),
        _ => None,
    });
    Error::not_ready(waits.min().unwrap_or(UNWATCHED_REQUEUE), words)
}
