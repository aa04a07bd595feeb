//! Whether a shoot is still this seed's: what is asked, who is asked, and what runs only while the answer is
//! yes (R17-13, R17-60..63; docs/understand/ownership.md is the protocol, the crate `ownership` the
//! judgement).
//!
//! What this promises
//! - What is to be asked comes from one place, the Cluster that a gardenlet hands over, and reaches a process
//!   by its flags: a new epoch is a new process.
//! - Work under [`while_owned`] is dropped when the right ends, with its sleeps and its requests, and begun
//!   anew under a new one. What is lost is lost for as long as the process lives.
//!
//! | file | what |
//! |---|---|
//! | `claim` | what is asked: name, identity, zone, authorities, epoch, and how often |
//! | `terms` | intervals and bounds, as a Seed gives them |
//! | `flags` | the same as flags of a process |
//! | `sidecar` | the second witness: the process beside etcd |
//! | `held` | what runs while the shoot is this seed's, again and again |
//! | `once` | what is done once under that right |
//! | `shared` | one check for all that is done for a shoot in a process, and what was lost |

mod claim;
mod flags;
mod held;
mod once;
mod shared;
mod sidecar;
mod terms;

pub use claim::{OwnerClaim, epoch};
pub use flags::OwnerFlags;
pub use held::while_owned;
pub use once::{NotOwned, once_owned};
pub use shared::{Ask, Begun, Patience, Refusal, SharedChecks, Tenure};
pub use sidecar::{AUTHORITY, KnownBy, Sidecar, URL};
pub use terms::{is_fenced_by, needed_fence, settings, terms};

/// Reason of the Event by which whoever acts for a shoot tells that this seed has lost it.
pub const OWNERSHIP_LOST: &str = "OwnershipLost";
