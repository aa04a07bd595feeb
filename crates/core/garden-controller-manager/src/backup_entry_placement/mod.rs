//! Creates the objects that name backups, and assigns the objects to seeds. No seed creates such an object:
//! a seed could plant backups for a later takeover, or block a name.
//!
//! - The BackupBucket of each Seed with backups.
//! - The BackupEntry of each Shoot with a seed. `spec` follows `status.seedName` of the Shoot (R7-47).
//! - The source BackupEntry (R17-22, R17-23), while a shoot is restored from the bucket of a different seed.
//! - The BackupEntry of a preparation, for the destination of a valid grant. No restore reads this entry, and
//!   the entry goes with the grant.
//!
//! After a hand-over the order is fixed. The controller records in the Shoot the bucket with the data
//! (`status.ownership.sourceBucket`), and after that assigns the entry to the new seed and its bucket. The
//! former seed then releases the entry, and the new seed takes over the entry. The controller does not wait
//! for a seed that lost the Shoot to a takeover. In that case the controller writes `status.seedName` of both
//! entries (R7-02). No other user may change these fields (policies `backupentry-spec`, `shoot-ownership`).
//! So backups never move before their shoot, nor to a different seed than their shoot.
//!
//! The assigned seed acts on an entry only after its flow has written the owner record (R17-21), see
//! [`api::constants::BACKUP_ENTRY_ASSIGNED_IN_EPOCH`].
//!
//! The source entry is created before the assignment of the own entry. So from the hand-over to the end of
//! the restore at least one entry names the bucket with the data, also after a crash, and after a deletion of
//! the Shoot. The rights to credentials of buckets, the end of a Seed and the end of a BackupBucket rely on
//! that.
//!
//! The end of a source entry is recorded at the own entry, by an annotation that no seed can change. In that
//! epoch no source entry is created again, so a seed gets the credentials of a former seed only once.
//!
//! An entry that a seed does not release after a planned hand-over is taken when the seed is lost: the former
//! seed has stopped and has proved its final snapshot.
//!
//! A source BackupEntry that a seed was deleting before a takeover is released: its finalizer is removed, and
//! an Event of the Shoot names the backups that may stay. Entries in deletion that wait for a lost seed are
//! reported (`lost_seed.rs`).
//!
//! | file | content |
//! |---|---|
//! | `bucket` | the BackupBucket of each Seed |
//! | `entries` | the BackupEntries of a Shoot: the next step of the own entry |
//! | `source_entry` | the next write to the source BackupEntry |
//! | `source` | the bucket from which a shoot is restored |
//! | `decision` | the seed to which a BackupEntry belongs |
//! | `lost_seed` | the report of entries in deletion that wait for a lost seed |
//! | `prepared_entry` | the next write to the BackupEntry of a preparation |
//! | `preparation` | watches, reads and writes of that entry |
//! | `controller` | watches, reads and writes of the own and the source entry |

mod bucket;
mod controller;
mod decision;
mod entries;
mod lost_seed;
mod preparation;
mod prepared_entry;
#[cfg(test)]
mod protocol_tests;
mod source;
mod source_entry;

use crate::Context;

pub use decision::{abandoned_on, destination, former_host, heir, is_lost, is_taken, responsible_seed};

/// Runs the controllers until shutdown.
pub async fn run(context: Context) {
    futures::join!(
        controller::run(context.clone()),
        bucket::run(context.clone()),
        preparation::run(context.clone()),
        lost_seed::run(context)
    );
}
