//! What owners leave at the two witnesses: the two names in DNS, and `ownership.json` in a bucket. Pure functions from what was
//! read to what is written; each write is conditional ([`Conditional`]).

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

impl<S: Clone + PartialEq> Record<S> {
    /// The update of a new owner. None where that epoch is there already, or a later one.
    pub fn claim(&self, seed: S, epoch: i64) -> Option<Conditional<Self>> {
        (self.epoch < Some(epoch)).then(|| self.to(Some(seed), Some(epoch)))
    }

    /// The update of an owner that leaves: its epoch stays (R17-50). None where the record is not its own.
    pub fn leave(&self, seed: &S, epoch: i64) -> Option<Conditional<Self>> {
        self.is_of(seed, epoch).then(|| self.to(None, Some(epoch)))
    }

    /// The update of an owner whose shoot is deleted.
    pub fn delete(&self, seed: &S, epoch: i64) -> Option<Conditional<Self>> {
        self.is_of(seed, epoch).then(|| self.to(None, None))
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

    /// What the sidecar of an epoch that has ended writes. None where there is nothing to say: a new owner was faster, or the
    /// object is gone; a sidecar never creates it.
    #[must_use]
    pub fn seal(now: Option<&Self>, epoch: i64) -> Option<Conditional<Option<Self>>> {
        let owned = Self {
            epoch,
            mark: Mark::Owned,
        };
        (now == Some(&owned)).then(|| Self::write(now, epoch, Mark::Sealed))
    }

    /// What a new owner writes into the bucket of its source, also where the object is missing: the owner before it may have died
    /// before it wrote it.
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

    fn write(now: Option<&Self>, epoch: i64, mark: Mark) -> Conditional<Option<Self>> {
        Conditional {
            tests: now.copied(),
            becomes: Some(Self { epoch, mark }),
        }
    }
}
