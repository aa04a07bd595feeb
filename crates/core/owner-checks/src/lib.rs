//! Confirms that a shoot still belongs to this seed, and runs work only while the confirmation is valid
//! (R17-13, R17-60..63). docs/understand/ownership.md describes the protocol; the crate `ownership` judges
//! the answers.
//!
//! This crate promises:
//! - The inputs of a check come from a single place: the Cluster that a gardenlet writes. A process for a
//!   single shoot receives the inputs as flags, so a new epoch starts a new process.
//! - [`while_owned`] drops the work, with sleeps and requests, when the right ends. A new right starts the
//!   work again. A lost shoot stays lost until the process ends.
//!
//! | file | purpose |
//! |---|---|
//! | `claim` | the inputs of a check: name, identity, zone, authorities, epoch, intervals |
//! | `terms` | intervals and bounds from a Seed |
//! | `flags` | the same inputs as flags of a process |
//! | `sidecar` | the second witness: the process beside etcd |
//! | `owner_watch` | work that runs, and restarts, while this seed owns the shoot |
//! | `once` | work that is done a single time under that right |
//! | `shared` | a shared check for all work on a shoot in a process, and the lost shoots |

mod claim;
mod flags;
mod once;
mod owner_watch;
mod shared;
mod sidecar;
mod terms;

pub use claim::{OwnerClaim, epoch};
pub use flags::OwnerFlags;
pub use once::{NotOwned, once_owned};
pub use owner_watch::while_owned;
pub use shared::{CheckSource, OwnershipError, OwnershipRight, Patience, RunningCheck, SharedChecks};
pub use sidecar::{AUTHORITY, Sidecar, SidecarTrust, URL};
pub use terms::{is_fenced_by, needed_fence, settings, terms};

/// Reason of the Event by which a process reports that this seed has lost the shoot.
pub const OWNERSHIP_LOST: &str = "OwnershipLost";
