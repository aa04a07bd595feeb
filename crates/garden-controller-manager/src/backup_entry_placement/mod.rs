//! Gives a Shoot's BackupEntry to the seed that the Shoot was handed over to: `spec.seedName` of the entry follows
//! `status.seedName` of the Shoot (R7-47).
//!
//! The seed that has the entry then lets go of it, and the other takes it. Nobody else may change the field (policy
//! `backupentry-seed-name`), so that backups never go before their shoot, nor to another seed than their shoot.

mod controller;
mod decision;

pub use controller::run;
pub use decision::destination;
