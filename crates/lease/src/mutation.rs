//! Ways to break the election on purpose, for the simulation (`simulation`): a test that cannot fail proves
//! nothing.

/// A rule of the protocol that is switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// The time of a hold counts from the answer to a write instead of from its sending.
    TimeAfterWrite,
    /// What a read found counts as seen from before the read.
    SeenBeforeRead,
    /// The lock is given back while writes are under way.
    NoDrain,
    /// A candidate that finds no Lease makes one at once.
    NoWaitWithoutLease,
}
