//! What watches tell.

use std::sync::Arc;

use crate::object::Owner;

/// Whose objects a cluster holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The seed: of all ManagedResources of class `seed`.
    Seed,
    /// A shoot: of those in its namespace.
    Shoot(Arc<str>),
}

impl Scope {
    /// Whether it is the seed.
    #[must_use]
    pub fn in_seed(&self) -> bool {
        *self == Self::Seed
    }

    /// The ManagedResource that an object says it comes from; none for one that is not ours.
    #[must_use]
    pub fn owner(&self, origin: &str) -> Option<Owner> {
        let owner = Owner::of_origin(origin, self.in_seed())?;
        match self {
            Self::Seed => Some(owner),
            Self::Shoot(namespace) => (owner.namespace == **namespace).then_some(owner),
        }
    }

    /// Whether the objects of this one are here.
    #[must_use]
    pub fn holds(&self, owner: &Owner) -> bool {
        match self {
            Self::Seed => owner.in_seed,
            Self::Shoot(namespace) => !owner.in_seed && owner.namespace == **namespace,
        }
    }
}

/// What a watch has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An object is not as it was applied: changed by somebody, or gone.
    Drifted(Owner),
    /// An object is as healthy as it was not before.
    Judged(Owner),
    /// All objects of a kind were listed, or cannot be.
    Listed(Scope),
    /// A watch was lost: the API server may be away.
    Lost(Scope),
}

/// Is told of events.
pub type Tell = Arc<dyn Fn(Event) + Send + Sync>;
