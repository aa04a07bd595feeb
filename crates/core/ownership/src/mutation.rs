//! Deliberate faults of the owner check for the simulation (`simulation`), which must detect each fault.

/// A rule of the protocol that is switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// An answer is valid from the arrival of the answer instead of from the sending of the question.
    TimeFromAnswer,
    /// Unknown extends like Owned.
    UnknownExtends,
    /// Epochs are not compared.
    EpochIgnored,
    /// The second witness is not asked: silence of the record is Unknown.
    OneWitness,
    /// A deleted identity alone ends the epoch.
    DeletionAlone,
}
