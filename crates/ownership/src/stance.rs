//! What follows from answers and the clock, without a process: the pure middle of `tenure`, over any kind of
//! moment.

use std::ops::Add;
use std::time::Duration;

use crate::judgement::Answer;
use crate::saying::Loss;
use crate::settings::Terms;

/// How a seed stands to a shoot in one epoch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stance<M> {
    /// Not confirmed yet, or not for too long.
    Unconfirmed,
    /// Confirmed.
    Owner {
        /// Nothing may be done from this moment on.
        until: M,
    },
    /// Not the owner any more, for ever in this epoch.
    Lost(Loss),
}

impl<M: Copy + Ord + Add<Duration, Output = M>> Stance<M> {
    /// The stance at this moment: what is over is over.
    pub(crate) fn at(self, now: M) -> Self {
        match self {
            Self::Owner { until } if until <= now => Self::Unconfirmed,
            other => other,
        }
    }

    /// Draws the consequence of an answer to a question that was sent at `asked`.
    pub(crate) fn hear(self, now: M, asked: M, answer: &Answer, terms: &Terms) -> Self {
        match (self.at(now), answer) {
            // The first loss is the one that counts.
            (lost @ Self::Lost(_), _) => lost,
            (_, Answer::Lost(loss)) => Self::Lost(loss.clone()),
            (stance, Answer::Unknown(_)) => stance,
            (stance, Answer::Owned { at_most }) => stance.owned(now, asked + terms.good_for(*at_most)),
        }
    }

    fn owned(self, now: M, until: M) -> Self {
        match self {
            // An answer never takes back what an earlier one gave.
            Self::Owner { until: held } => Self::Owner {
                until: held.max(until),
            },
            // It came too late to be good for anything.
            other if until <= now => other,
            _ => Self::Owner { until },
        }
    }
}
