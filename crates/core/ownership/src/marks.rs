//! The marks that owners leave at the two witnesses: the two names in DNS, and `ownership.json` in a bucket.
//! Pure functions from the state read to the state written; each write is conditional ([`Conditional`]).

use crate::conditional::Conditional;
use crate::witness::Testimony;

/// Both names of the owner record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record<S> {
    /// The identity of the owner.
    pub identity: Option<S>,
    /// The epoch of the owner.
    pub epoch: Option<i64>,
}

/// The reason why a new owner does not write the record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClaimRefusal<S> {
    /// An identity without an epoch: the record is foreign, or incomplete.
    NoEpoch {
        /// The identity in the record.
        identity: S,
    },
    /// The record has a later epoch.
    LaterEpoch {
        /// The epoch in the record.
        epoch: i64,
        /// The identity in the record.
        identity: Option<S>,
    },
    /// An epoch has a single owner, and the record names another seed for this epoch.
    AnotherOwner {
        /// The identity in the record.
        identity: S,
    },
    /// The owner of this epoch has left, for ever.
    Ended,
}

impl<S: Clone + PartialEq> Record<S> {
    /// The update of a new owner; `None` where the record already shows this owner.
    ///
    /// # Errors
    /// The record must not be changed to this owner, now or ever.
    pub fn claim(&self, seed: S, epoch: i64) -> Result<Option<Conditional<Self>>, ClaimRefusal<S>> {
        match (self.epoch, self.identity.clone()) {
            (None, Some(identity)) => Err(ClaimRefusal::NoEpoch { identity }),
            (Some(later), identity) if later > epoch => Err(ClaimRefusal::LaterEpoch {
                epoch: later,
                identity,
            }),
            (Some(stood), None) if stood == epoch => Err(ClaimRefusal::Ended),
            (Some(stood), Some(identity)) if stood == epoch => {
                if identity == seed {
                    Ok(None)
                } else {
                    Err(ClaimRefusal::AnotherOwner { identity })
                }
            }
            _ => Ok(Some(self.to(Some(seed), Some(epoch)))),
        }
    }

    /// The update of a leaving owner: the identity is deleted and the epoch stays (R17-50). `None` where the
    /// record does not show this owner.
    pub fn leave(&self, seed: &S, epoch: i64) -> Option<Conditional<Self>> {
        self.is_of(seed, epoch).then(|| self.to(None, Some(epoch)))
    }

    /// The update of an owner whose shoot is deleted. Leftovers of earlier epochs are deleted too, unless the
    /// record names another seed. `None` where no such value exists.
    pub fn delete(&self, seed: &S, epoch: i64) -> Option<Conditional<Self>> {
        let is_not_later = self.epoch.is_some_and(|stood| stood <= epoch);
        let names_no_other_seed = self.identity.as_ref().is_none_or(|identity| identity == seed);
        (is_not_later && names_no_other_seed).then(|| self.to(None, None))
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

/// The state of an epoch in `ownership.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// The epoch has an owner.
    Owned,
    /// The owner of the epoch has stopped for good.
    Sealed,
    /// A new owner announces the epoch, in the bucket of the source.
    Claimed,
}

/// The content of `ownership.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OwnershipObject {
    /// The epoch.
    pub epoch: i64,
    /// The state of the epoch.
    pub mark: Mark,
}

impl OwnershipObject {
    /// The testimony of the object as a second witness.
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

    /// The write of the sidecar of an epoch that has ended. `None` if a new owner was faster or the object is
    /// missing, because a sidecar never creates the object. Also `None` if the epoch was only claimed: that
    /// epoch was never opened, and the next owner finds the place of the data in the object.
    #[must_use]
    pub fn seal(now: Option<&Self>, epoch: i64) -> Option<Conditional<Option<Self>>> {
        let owned = Self {
            epoch,
            mark: Mark::Owned,
        };
        (now == Some(&owned)).then(|| Self::write(now, epoch, Mark::Sealed))
    }

    /// The write of a new owner into the bucket of the source. The object is created if missing, because the
    /// owner before may have died without writing the object.
    #[must_use]
    pub fn claim(now: Option<&Self>, epoch: i64) -> Option<Conditional<Option<Self>>> {
        now.is_none_or(|object| object.epoch < epoch)
            .then(|| Self::write(now, epoch, Mark::Claimed))
    }

    /// The write of a new owner into that owner's bucket, before etcd opens.
    #[must_use]
    pub fn own(now: Option<&Self>, epoch: i64) -> Option<Conditional<Option<Self>>> {
        let claimed = Self {
            epoch,
            mark: Mark::Claimed,
        };
        now.is_none_or(|object| object.epoch < epoch || *object == claimed)
            .then(|| Self::write(now, epoch, Mark::Owned))
    }

    /// The epoch whose data are in the folder of the object. A claim changes no data: the folder has the data
    /// of the epoch that the claim found there (`origin`), if known.
    #[must_use]
    pub fn data_epoch(self, origin: Option<i64>) -> Option<i64> {
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
