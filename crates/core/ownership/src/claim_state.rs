//! The consequence of answers and the clock, without a process: the pure part of `tracker`, over any type of
//! moment.

use std::ops::Add;
use std::time::Duration;

use crate::judgement::Answer;
use crate::record_verdict::OwnershipLoss;
use crate::settings::Terms;

/// The state of a seed's claim to a shoot in an epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClaimState<M> {
    /// Not confirmed yet, or not recently enough.
    Unconfirmed,
    /// Confirmed.
    Owner {
        /// The end of the right: no work may be done from this moment on.
        until: M,
    },
    /// Not the owner any more, for ever in this epoch.
    Lost(OwnershipLoss),
}

impl<M: Copy + Ord + Add<Duration, Output = M>> ClaimState<M> {
    /// The state at this moment: an expired right is Unconfirmed.
    pub(crate) fn at(self, now: M) -> Self {
        match self {
            Self::Owner { until } if until <= now => Self::Unconfirmed,
            other => other,
        }
    }

    /// Applies an answer to a question that was sent at `asked`.
    pub(crate) fn apply_answer(self, now: M, asked: M, answer: &Answer, terms: &Terms) -> Self {
        match (self.at(now), answer) {
            // The first loss is final: later answers do not replace the reason.
            (lost @ Self::Lost(_), _) => lost,
            (_, Answer::Lost(loss)) => Self::Lost(loss.clone()),
            (state, Answer::Unknown(_)) => state,
            (state, Answer::Owned { at_most }) => state.owned(now, asked + terms.good_for(*at_most)),
        }
    }

    fn owned(self, now: M, until: M) -> Self {
        match self {
            // An answer never shortens a validity that an earlier answer gave.
            Self::Owner { until: held } => Self::Owner {
                until: held.max(until),
            },
            // The answer came too late: its validity is already over.
            other if until <= now => other,
            _ => Self::Owner { until },
        }
    }
}
