//! Assigns a Shoot's BackupEntry to the seed to which the Shoot was handed over: `spec.seedName` of the entry
//! follows `status.seedName` of the Shoot (R7-47).
//!
//! The former seed then releases the entry, and the new seed takes over the entry. The controller does not
//! wait for a seed that lost the Shoot to a takeover. In that case the controller writes `status.seedName` of
//! the entry, and of the source BackupEntry (R7-02). No other user may change the field (policy
//! `backupentry-seed-name`). So backups never move before their shoot, nor to a different seed than their
//! shoot.
//!
//! A claimant that was passed over may create the source BackupEntry a moment after the assignment. The
//! controller checks once more, because the present claimant has no right to write such an entry.
//!
//! A source BackupEntry that such a seed was deleting after an earlier move is released: its finalizer is
//! removed, and an Event of the Shoot names the backups that may stay.

mod controller;
mod decision;

pub use controller::run;
pub use decision::{abandoned_on, destination, heir, is_taken};
