//! The second witness, asked where the record gives no valid answer.

use std::time::Duration;

use futures::future::BoxFuture;

use crate::record_verdict::OwnershipLoss;

/// The testimony of a second witness about a shoot. The implementation of the witness has compared the
/// shoot's uid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Testimony {
    /// This epoch has an owner.
    Owned {
        /// The epoch.
        epoch: i64,
        /// Upper bound of the validity, where the witness relays an answer (a sidecar's own permit).
        left: Option<Duration>,
    },
    /// The owner of this epoch has stopped for good.
    Sealed {
        /// The epoch.
        epoch: i64,
    },
    /// A new owner has announced this epoch and not begun the epoch.
    Claimed {
        /// The epoch.
        epoch: i64,
    },
    /// The witness is reachable, but has no entry for the shoot. That is not a loss: a deleted object names
    /// no new owner.
    Missing,
    /// The witness is unreachable, or the response is invalid.
    Silent(String),
}

impl Testimony {
    /// The loss that the testimony proves to the owner of an epoch, if any.
    #[must_use]
    pub fn loss(&self, mine: i64) -> Option<OwnershipLoss> {
        match *self {
            Self::Sealed { epoch } if epoch == mine => Some(OwnershipLoss::Sealed),
            Self::Owned { epoch, .. } | Self::Sealed { epoch } | Self::Claimed { epoch } if epoch > mine => {
                Some(OwnershipLoss::LaterEpoch(epoch))
            }
            _ => None,
        }
    }
}

/// The response of a process with a check of its own to the processes that use the process as second witness.
/// Never claims more than the process's own permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RelayedAnswer {
    /// The epoch has an owner.
    Owned {
        /// The remaining validity of the process's own permit.
        left: Duration,
    },
    /// The epoch is lost.
    Sealed,
    /// The process has no valid answer.
    Unknown,
}

impl RelayedAnswer {
    /// The response to give. `left`: the remaining validity of the process's own permit, zero without a
    /// permit.
    #[must_use]
    pub fn from_permit(is_lost: bool, left: Duration) -> Self {
        if is_lost {
            Self::Sealed
        } else if left.is_zero() {
            Self::Unknown
        } else {
            Self::Owned { left }
        }
    }

    /// The response as text. The remaining validity is written in a separate field.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Owned { .. } => "Owned",
            Self::Sealed => "Sealed",
            Self::Unknown => "Unknown",
        }
    }

    /// Parses the text of a response. An unknown text is `Unknown`.
    #[must_use]
    pub fn read(word: &str, left: Duration) -> Self {
        match word {
            "Sealed" => Self::Sealed,
            "Owned" => Self::Owned { left },
            _ => Self::Unknown,
        }
    }

    /// The testimony for the process that asked; `None` for `Unknown`.
    #[must_use]
    pub fn testimony(self, epoch: i64) -> Option<Testimony> {
        match self {
            Self::Owned { left } => Some(Testimony::Owned {
                epoch,
                left: Some(left),
            }),
            Self::Sealed => Some(Testimony::Sealed { epoch }),
            Self::Unknown => None,
        }
    }
}

/// A witness of ownership besides DNS. A destination changes this witness before the destination's fence
/// begins. The witness is the object `ownership.json` in the bucket for a backup process, and the Shoot in
/// the garden for a gardenlet. For actuators and machine controllers the witness is the backup process.
pub trait SecondWitness: Send + Sync {
    /// Asks the witness. The implementation must read the present state: a cache would extend a right that
    /// has ended. The call may take any time; the caller sets the bound.
    fn ask(&self) -> BoxFuture<'_, Testimony>;

    /// Whether the owner's gardenlet has reported that the gardenlet recorded phase `Sealing` of this epoch.
    /// Beside a deleted identity that report ends the epoch without a question to this witness. Beside any
    /// other answer the report has no meaning.
    fn sealing_was_reported(&self, _epoch: i64) -> bool {
        false
    }
}

/// No second witness, or none yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWitness;

impl SecondWitness for NoWitness {
    fn ask(&self) -> BoxFuture<'_, Testimony> {
        Box::pin(async { Testimony::Silent("there is none".to_owned()) })
    }
}
