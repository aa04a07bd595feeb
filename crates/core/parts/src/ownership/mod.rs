//! Ownership of the shoot: claims, the owner record, the fence of an earlier owner, the departure, and
//! losses.
//!
//! | file | content |
//! |---|---|
//! | `claim` | the steps of a destination, from the hand-over until the seed acts like an owner |
//! | `departure` | the phases of a source while the shoot leaves |
//! | `hand_over` | the confirmation of a planned hand-over by the owner record |
//! | `fence` | the wait for former owners; `fence_clock`: the start; `fence_servers`: the DNS servers |
//! | `owner_record` | the owner record; `owner_claim`: name, identity and servers |
//! | `owner_terms` | intervals and bounds of owner checks; `applied_terms` records both in the Shoot |
//! | `opened_epoch` | the note in the seed that the data of an epoch are chosen |
//! | `data_loss` | the bounds of a loss after a takeover |
//! | `writers` | the processes that write to a shoot, which a move stops |
//! | `conflicts` | the bound of a conditional write that is repeated |

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
