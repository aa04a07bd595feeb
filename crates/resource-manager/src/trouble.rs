//! Why an object is not as it is wanted, or not gone: for the condition, and for who has to act.

use std::time::Duration;

use api::meta::ErrorCode;
use permit::NotPermitted;
use runtime::Error;

use crate::{
    names::LOOK_AGAIN,
    object::Key,
    refusal,
    status::some,
    target::{Refused, Target},
};

/// Why something is not as it is wanted.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// The cluster does not answer: the rest of the work would fail the same way.
    Away(String),
    /// We may not act any more.
    Lost(NotPermitted),
    /// Somebody has to change something.
    Wrong(String),
    /// The API server did not do what was asked; it may later.
    Failed(String),
    /// Something is awaited.
    Awaited(String, Duration),
}

impl Trouble {
    /// Of a request for an object.
    #[must_use]
    pub fn of(key: &Key, refused: Refused) -> Self {
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

    /// Something of this object is awaited.
    #[must_use]
    pub fn awaited(key: &Key, why: &str) -> Self {
        Self::Awaited(format!("{key} {why}"), LOOK_AGAIN)
    }

    /// Whether going on with other objects makes no sense.
    #[must_use]
    pub fn ends_all(&self) -> bool {
        matches!(self, Self::Away(_) | Self::Lost(_))
    }

    /// In words.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Away(why) => format!("the API server does not answer: {why}"),
            Self::Lost(lost) => lost.to_string(),
            Self::Wrong(why) | Self::Failed(why) | Self::Awaited(why, _) => why.clone(),
        }
    }
}

/// One error for all troubles of a ManagedResource: the gravest says who has to act.
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
        // The pause is the cluster's, not that of each ManagedResource.
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
    Error::not_ready(waits.min().unwrap_or(LOOK_AGAIN), words)
}
