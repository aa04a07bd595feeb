//! Events of watches.

use std::sync::Arc;

use crate::object::Owner;

/// The ManagedResources with objects in a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The seed: all ManagedResources of class `seed`.
    Seed,
    /// A shoot: the ManagedResources without a class in this namespace.
    Shoot(Arc<str>),
}

impl Scope {
    /// Whether the cluster is the seed.
    #[must_use]
    pub fn in_seed(&self) -> bool {
        *self == Self::Seed
    }

    /// The ManagedResource in an origin annotation; `None` for an origin outside this scope.
    #[must_use]
    pub fn owner(&self, origin: &str) -> Option<Owner> {
        let owner = Owner::of_origin(origin, self.in_seed())?;
        match self {
            Self::Seed => Some(owner),
            Self::Shoot(namespace) => (owner.namespace == **namespace).then_some(owner),
        }
    }

    /// Whether the objects of this ManagedResource are in this cluster.
    #[must_use]
    pub fn contains(&self, owner: &Owner) -> bool {
        match self {
            Self::Seed => owner.in_seed,
            Self::Shoot(namespace) => !owner.in_seed && owner.namespace == **namespace,
        }
    }
}

/// An observation of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An object differs from the applied state: another writer has changed the object, or the object is
    /// gone.
    Drifted(Owner),
    /// The health of an object has changed.
    Judged(Owner),
    /// All objects of a kind were listed, or the listing has failed.
    Listed(Scope),
    /// A watch was lost: the API server may be unreachable.
    Lost(Scope),
}

/// Receives events.
pub type Tell = Arc<dyn Fn(Event) + Send + Sync>;
