//! Ways to break the owner check on purpose, for the simulation (`simulation`): a test that cannot fail
//! proves nothing.

/// A rule of the protocol that is switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// An answer is good from when it was heard instead of from when its question was sent.
    TimeFromAnswer,
    /// Unknown extends like Owned.
    UnknownExtends,
    /// Epochs are not compared.
    EpochIgnored,
    /// The second witness is not asked: silence of the record is Unknown.
    OneWitness,
    /// A deleted identity ends the epoch by itself.
    DeletionAlone,
}
