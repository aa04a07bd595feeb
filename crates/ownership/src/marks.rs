//! What owners leave at the two witnesses: the two names in DNS, and `ownership.json` in a bucket. Pure
//! functions from what was read to what is written; each write is conditional ([`Conditional`]).

use crate::conditional::Conditional;
use crate::witness::Testimony;

/// Both names of the owner record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record<S> {
    /// The owner.
    pub identity: Option<S>,
    /// Its epoch.
    pub epoch: Option<i64>,
}

/// Why a new owner does not write the record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Barred<S> {
    /// An owner without an epoch: it is no record of ours, or half of one.
    NoEpoch {
        /// Who stands there.
        identity: S,
    },
    /// The shoot went on elsewhere.
    LaterEpoch {
        /// Which one stands there.
        epoch: i64,
        /// Beside whom.
        identity: Option<S>,
    },
    /// An epoch has one owner, and this one has another.
    AnotherOwner {
        /// Who stands there.
        identity: S,
    },
    /// The owner of this epoch has left, for ever.
    Ended,
}

impl<S: Clone + PartialEq> Record<S> {
    /// The update of a new owner. None where the record is its own already.
    ///
    /// # Errors
    /// The record is not to become its own, now or ever.
    pub fn claim(&self, seed: S, epoch: i64) -> Result<Option<Conditional<Self>>, Barred<S>> {
        match (self.epoch, self.identity.clone()) {
            (None, Some(identity)) => Err(Barred::NoEpoch { identity }),
            (Some(later), identity) if later > epoch => Err(Barred::LaterEpoch {
                epoch: later,
                identity,
            }),
            (Some(stood), None) if stood == epoch => Err(Barred::Ended),
            (Some(stood), Some(identity)) if stood == epoch => {
                if identity == seed {
                    Ok(None)
                } else {
                    Err(Barred::AnotherOwner { identity })
                }
            }
            _ => Ok(Some(self.to(Some(seed), Some(epoch)))),
        }
    }

    /// The update of an owner that leaves: its epoch stays (R17-50). None where the record is not its own.
    pub fn leave(&self, seed: &S, epoch: i64) -> Option<Conditional<Self>> {
        self.is_of(seed, epoch).then(|| self.to(None, Some(epoch)))
    }

    /// The update of an owner whose shoot is deleted: what is left of earlier epochs goes, too, unless
    /// somebody else's name stands there. None where nothing of that is there.
    pub fn delete(&self, seed: &S, epoch: i64) -> Option<Conditional<Self>> {
        let is_over = self.epoch.is_some_and(|stood| stood <= epoch);
        let is_nobody_elses = self.identity.as_ref().is_none_or(|identity| identity == seed);
        (is_over && is_nobody_elses).then(|| self.to(None, None))
    }

    fn is_of(&self, seed: &S, epoch: i64) -> bool {
        self.identity.as_ref() == Some(seed) && self.epoch == Some(epoch)
    }

    fn to(&self, identity: Option<S>, epoch: Option<i64>) -> Conditional<Self> {
        Conditional {
            tests: self.clone(),
            becomes: Self { identity, epoch },
        }
    }
}

/// What `ownership.json` says of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// It has its owner.
    Owned,
    /// Its owner has stopped for good.
    Sealed,
    /// A new owner announces it, in the bucket of its source.
    Claimed,
}

/// The content of `ownership.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    /// Of which epoch.
    pub epoch: i64,
    /// What of it.
    pub mark: Mark,
}

impl Object {
    /// What the object says as a second witness.
    #[must_use]
    pub fn testimony(object: Option<&Self>) -> Testimony {
        match object {
            None => Testimony::Missing,
            Some(&Self { epoch, mark }) => match mark {
                Mark::Owned => Testimony::Owned { epoch, left: None },
                Mark::Sealed => Testimony::Sealed { epoch },
                Mark::Claimed => Testimony::Claimed { epoch },
            },
        }
    }

    /// What the sidecar of an epoch that has ended writes. None where there is nothing to say: a new owner
    /// was faster, or the object is gone; a sidecar never creates it. Nor where the epoch was only claimed:
    /// nobody has opened it, and whoever comes next finds there where the data are.
    #[must_use]
    pub fn seal(now: Option<&Self>, epoch: i64) -> Option<Conditional<Option<Self>>> {
        let owned = Self {
            epoch,
            mark: Mark::Owned,
        };
        (now == Some(&owned)).then(|| Self::write(now, epoch, Mark::Sealed))
    }

    /// What a new owner writes into the bucket of its source, also where the object is missing: the owner
    /// before it may have died before it wrote it.
    #[must_use]
    pub fn claim(now: Option<&Self>, epoch: i64) -> Option<Conditional<Option<Self>>> {
        now.is_none_or(|object| object.epoch < epoch)
            .then(|| Self::write(now, epoch, Mark::Claimed))
    }

    /// What a new owner writes into its own bucket before it opens etcd.
    #[must_use]
    pub fn own(now: Option<&Self>, epoch: i64) -> Option<Conditional<Option<Self>>> {
        let claimed = Self {
            epoch,
            mark: Mark::Claimed,
        };
        now.is_none_or(|object| object.epoch < epoch || *object == claimed)
            .then(|| Self::write(now, epoch, Mark::Owned))
    }

    /// The epoch whose end lies beside the object. In a place that is only announced to a new owner that is
    /// what it has found there (`origin`), if it knew.
    #[must_use]
    pub fn holds(self, origin: Option<i64>) -> Option<i64> {
        match self.mark {
            Mark::Owned | Mark::Sealed => Some(self.epoch),
            Mark::Claimed => origin,
        }
    }

    fn write(now: Option<&Self>, epoch: i64, mark: Mark) -> Conditional<Option<Self>> {
        Conditional {
            tests: now.copied(),
            becomes: Some(Self { epoch, mark }),
        }
    }
}
