//! The controllers of backups: they carry BackupBuckets and BackupEntries of the garden into a seed, whose
//! provider acts on them, and carry its answer back.
//!
//! | part | acts on | promises |
//! |---|---|---|
//! | [`backup_bucket`] | BackupBucket | the seed's bucket, by way of its provider |
//! | [`backup_entry`] | BackupEntry | the place of a shoot's backups, handed over to another seed without loss |
//!
//! Their home is the gardenlet, and a provider can run them as guests (docs/understand/leader-migration.md).
//! They may move from one to the other and back at any time, so **who writes is always [`MANAGER`], and the
//! finalizer is always the same, whichever process they run in**. Server-side apply takes back only what its
//! own field manager has written: under the name of the host, every move would leave fields behind that the
//! next host cannot take back and nobody else owns. A finalizer by the name of the host would never be
//! removed.
//!
//! Which of two processes runs them is not decided here but by the lock under which their host starts them;
//! neither keeps anything in memory that the next one would need.

pub mod backup_bucket;
pub mod backup_entry;
mod context;
mod extension_object;
mod failure;

use runtime::apply::FieldManager;

pub use context::Context;

/// Who writes, in every host: the name of the controllers' home.
pub const MANAGER: FieldManager = FieldManager("gardenlet");
