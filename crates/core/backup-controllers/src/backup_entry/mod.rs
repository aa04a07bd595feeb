//! The location of a shoot's backups: a BackupEntry of the garden becomes a BackupEntry in the responsible
//! seed.
//!
//! Guarantees
//! - Only a single seed acts: the seed in `status.seedName` until that seed has handed over the entry, then
//!   the seed in `spec.seedName`.
//! - A hand-over changes nothing in the bucket (I9). The provider migrates, the seed's objects are deleted,
//!   and only then the status names the destination. The next run completes a hand-over that a crash
//!   interrupted.
//! - A seed that lost an entry to a takeover releases the entry only when the shoot's namespace in that seed
//!   is gone. Until then its etcd may have to save its last acknowledged changes (R17-46), and needs the
//!   credentials to restart.
//! - Backups are deleted only when the Shoot is gone, the grace period is over, and the entry is not a
//!   `source-` entry. The backups that a `source-` entry names are deleted once a restore has reported that
//!   they are copied (R17-30), or when the Shoot is gone and the grace period is over.
//! - Each entry of a deleted shoot is deleted with its backups, also if no flow of the seed has begun with
//!   the entry.
//! - An entry of a preparation (`prepared-…`) gets no finalizer, no object in the seed and no status.

mod controller;
mod decision;
mod deletion;
mod object;
mod removal;
mod watched;

pub use controller::run;
pub use decision::{SOURCE_PREFIX, operation, responsible_seed};
