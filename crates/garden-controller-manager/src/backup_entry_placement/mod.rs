//! Gives a Shoot's BackupEntry to the seed that the Shoot was handed over to: `spec.seedName` of the entry
//! follows `status.seedName` of the Shoot (R7-47).
//!
//! The seed that has the entry then lets go of it, and the other takes it. A seed from which the Shoot was
//! taken over is not waited for: `status.seedName` of the entry, and of the one that names the source's
//! backups, is written here then (R7-02). Nobody else may change the field (policy `backupentry-seed-name`),
//! so that backups never go before their shoot, nor to another seed than their shoot.
//!
//! A source BackupEntry that such a seed was deleting after an earlier move is released: its finalizer is
//! removed, and an Event of the Shoot names the backups that may stay.

mod controller;
mod decision;

pub use controller::run;
pub use decision::{abandoned_on, destination, heir, is_taken};
