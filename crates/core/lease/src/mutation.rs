//! Deliberate faults of the election for the simulation (`simulation`), so that the simulation can fail.

/// A rule of the protocol that is switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// The time of a hold counts from the answer to a write instead of from the sending.
    TimeAfterWrite,
    /// The result of a read counts as seen before the read.
    SeenBeforeRead,
    /// The lock is released while writes are under way.
    NoDrain,
    /// A candidate that finds no Lease creates the Lease at once.
    NoWaitWithoutLease,
}
