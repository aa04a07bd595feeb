//! The preparation of a seed for a shoot that a different seed serves: pure decisions
//! (docs/understand/decisions/0052).
//!
//! A preparation is no step of the protocol: no phase, no epoch and no permit follows from a grant. The
//! decisions keep the removal of a preparation away from a control plane. `model` explores all orders of the
//! processes, and switches each rule off in turn.

use crate::phase::SeedEpoch;

#[cfg(test)]
mod model;

/// The right of a seed to prepare.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PreparationGrant<S> {
    /// The seed that had the shoot at the time of the grant, in this epoch.
    pub source: SeedEpoch<S>,
    /// The seed that may prepare.
    pub destination: S,
}

impl<S: PartialEq> PreparationGrant<S> {
    /// Whether the grant counts while this seed has the shoot. Each hand-over and each takeover begins an
    /// epoch, and so ends the grant in the same write.
    #[must_use]
    pub fn is_valid(&self, now: &SeedEpoch<S>) -> bool {
        self.source == *now && self.destination != now.seed
    }
}

/// The namespace of a shoot in the seed that prepares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NamespaceMark {
    /// There is no namespace.
    Absent,
    /// A flow of an owner has begun in the namespace, or an unknown writer has created the namespace.
    Unmarked,
    /// The seed has created the namespace under a grant of this epoch, and no flow of an owner has begun.
    PreparedIn(i64),
}

/// The next step of a seed with a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreparationStep {
    /// Create the namespace with the mark, in a single write that fails if the namespace exists.
    Create,
    /// The namespace is prepared.
    Keep,
    /// A preparation under an earlier grant is removed first.
    Wait,
    /// No existing namespace gets the mark: the namespace may have a control plane.
    Refuse,
}

/// The next step under a grant of this epoch.
#[must_use]
pub fn next_preparation_step(found: NamespaceMark, epoch: i64) -> PreparationStep {
    match found {
        NamespaceMark::Absent => PreparationStep::Create,
        NamespaceMark::PreparedIn(mark) if mark == epoch => PreparationStep::Keep,
        NamespaceMark::PreparedIn(_) => PreparationStep::Wait,
        NamespaceMark::Unmarked => PreparationStep::Refuse,
    }
}

/// Whether a namespace with the mark of this epoch may be removed, exactly as the namespace was read before
/// the garden. `is_resident`: the seed has the shoot, or still cleans up after a residency. `granted`: the
/// epoch of the valid grant of the seed.
#[must_use]
pub fn may_remove_prepared(mark: i64, is_resident: bool, granted: Option<i64>) -> bool {
    !is_resident && granted != Some(mark)
}
