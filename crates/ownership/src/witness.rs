//! The second witness: whom to ask where the record says nothing.

use std::time::Duration;

use futures::future::BoxFuture;

use crate::saying::Loss;

/// What a second witness says of a shoot. Whoever asks it has compared the shoot's uid.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Testimony {
    /// This epoch has its owner.
    Owned {
        /// Which one.
        epoch: i64,
        /// For how long at most, where the witness passes on what it was told itself (a sidecar's own
        /// permit).
        left: Option<Duration>,
    },
    /// The owner of this epoch has stopped for good.
    Sealed {
        /// Which one.
        epoch: i64,
    },
    /// A new owner has announced this epoch and not begun it.
    Claimed {
        /// Which one.
        epoch: i64,
    },
    /// It can be asked, but has nothing on the shoot. That is no loss: what was cleaned away names no other
    /// owner.
    Missing,
    /// It cannot be asked, or what it says cannot be read.
    Silent(String),
}

impl Testimony {
    /// The loss that it means to the owner of an epoch, if it means one.
    #[must_use]
    pub fn loss(&self, mine: i64) -> Option<Loss> {
        match *self {
            Self::Sealed { epoch } if epoch == mine => Some(Loss::Sealed),
            Self::Owned { epoch, .. } | Self::Sealed { epoch } | Self::Claimed { epoch } if epoch > mine => {
                Some(Loss::LaterEpoch(epoch))
            }
            _ => None,
        }
    }
}

/// What a process that asks by itself says to those whose second witness it is: never more than it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relayed {
    /// Its epoch has its owner.
    Owned {
        /// For how long its own permit is still good.
        left: Duration,
    },
    /// Its epoch is lost.
    Sealed,
    /// It was told nothing that is still good.
    Unknown,
}

impl Relayed {
    /// What is to be said. `left`: of the own permit, if there is one.
    #[must_use]
    pub fn of(is_lost: bool, left: Duration) -> Self {
        if is_lost {
            Self::Sealed
        } else if left.is_zero() {
            Self::Unknown
        } else {
            Self::Owned { left }
        }
    }

    /// How that is written. What is left is written beside it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Owned { .. } => "Owned",
            Self::Sealed => "Sealed",
            Self::Unknown => "Unknown",
        }
    }

    /// What was written. A word that nobody knows says nothing.
    #[must_use]
    pub fn read(word: &str, left: Duration) -> Self {
        match word {
            "Sealed" => Self::Sealed,
            "Owned" => Self::Owned { left },
            _ => Self::Unknown,
        }
    }

    /// What it means to whoever has asked. None: nothing.
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

/// Someone who knows of ownership besides DNS, and whom a destination changes before its fence begins: the
/// object `ownership.json` in the bucket for a backup process, the Shoot in the garden for a gardenlet, the
/// backup process for actuators and machine controllers.
pub trait SecondWitness: Send + Sync {
    /// Asks. It must read what is there at this moment: a cache would extend a right that has ended. It may
    /// take as long as it likes; whoever asks stops waiting.
    fn ask(&self) -> BoxFuture<'_, Testimony>;

    /// Whether the owner's gardenlet has reported that it recorded phase `Sealing` of this epoch. Beside a
    /// deleted identity that ends the epoch without a question to this witness; beside anything else it means
    /// nothing.
    fn has_passed_sealing(&self, _epoch: i64) -> bool {
        false
    }
}

/// Nobody: where there is no second witness, or until there is one.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWitness;

impl SecondWitness for NoWitness {
    fn ask(&self) -> BoxFuture<'_, Testimony> {
        Box::pin(async { Testimony::Silent("there is none".to_owned()) })
    }
}
