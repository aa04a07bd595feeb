//! The ownership of a shoot in this seed: the permit of an operation, the writer of the status of
//! the Shoot, the loss of the shoot, and leftovers of an earlier residency.

pub(crate) mod data_loss;
pub(crate) mod missed_takeover;
pub(crate) mod owner_permit;
pub(crate) mod ownership_lost;
pub(crate) mod status_writer;
pub(crate) mod unsaved_changes;
