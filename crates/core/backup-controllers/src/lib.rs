//! The backup controllers: they copy BackupBuckets and BackupEntries of the garden into a seed, whose
//! provider acts on the copies, and copy the provider's status back.
//!
//! | part | acts on | guarantees |
//! |---|---|---|
//! | [`backup_bucket`] | BackupBucket | the seed's bucket, made by its provider |
//! | [`backup_entry`] | BackupEntry | the location of a shoot's backups, handed over without loss |
//!
//! Their home is the gardenlet, and a provider can run the controllers as a guest
//! (docs/understand/leader-migration.md). The controllers may move between these hosts at any time. So **the
//! field manager is always [`MANAGER`], and the finalizer is always the same, in every host**. Server-side
//! apply reverts only fields of its own field manager. Under the name of the host, every move would leave
//! fields behind that the next host cannot revert and that have no other owner. A finalizer with the name of
//! the host would never be removed.
//!
//! The lock under which a host starts the controllers decides which host runs them. No host keeps state in
//! memory that the next host would need.

pub mod backup_bucket;
pub mod backup_entry;
mod context;
mod extension_object;
mod failure;

use runtime::client::apply::FieldManager;

pub use context::Context;

/// Field manager in every host: the name of the controllers' home.
pub const MANAGER: FieldManager = FieldManager("gardenlet");
