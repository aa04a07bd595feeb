//! The seed's bucket: a BackupBucket of the garden becomes a BackupBucket in the seed, whose provider makes
//! the bucket.
//!
//! Guarantees: the provider must act only after a change, and its status is copied back. The credentials go
//! only into the namespace `garden` of the seed. A bucket is deleted only with its BackupBucket, and only
//! when no BackupEntry of any seed names the bucket.

mod controller;
pub(crate) mod credentials;
mod decision;

pub use controller::run;
