//! Ownership of the shoot: claims, the owner record, the fence of an earlier owner, the departure, and
//! losses.

pub(crate) mod applied_terms;
pub(crate) mod claim;
pub(crate) mod conflicts;
pub(crate) mod data_loss;
pub(crate) mod departure;
pub(crate) mod fence;
pub(crate) mod fence_clock;
pub(crate) mod fence_servers;
pub(crate) mod hand_over;
pub(crate) mod opened_epoch;
pub(crate) mod owner_claim;
pub(crate) mod owner_record;
pub(crate) mod owner_terms;
pub(crate) mod writers;
