//! Where a shoot's backups are: the garden's BackupEntry becomes one in the seed that is responsible for it.
//!
//! Promises
//! - Only one seed acts: the one in `status.seedName` until it has handed the entry over, then the one in
//!   `spec.seedName`.
//! - Handing over touches nothing in the bucket (I9): the provider is asked to migrate, the seed's objects
//!   go, and only then the status names the other seed. A crash in between is completed by the next run.
//! - A seed that an entry was taken from forgets it when nothing of the shoot is left there: until then its
//!   etcd may have to save what it acknowledged last (R17-46), and cannot be started anew without the
//!   credentials.
//! - Backups are deleted only when the Shoot is gone, the grace period is over, and the entry is not a
//!   `source-` one. The backups that a `source-` entry names are deleted only once a restore has said that
//!   they are copied (R17-30).

mod controller;
mod decision;
mod deletion;
mod object;
mod removal;

pub use controller::run;
pub use decision::{SOURCE_PREFIX, operation, responsible_seed};
