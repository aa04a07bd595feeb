//! The seed's bucket: the garden's BackupBucket becomes one in the seed, whose provider makes the bucket.
//!
//! Promises: the provider is asked only when something changed, and its answer is copied back; the
//! credentials go only into the namespace `garden` of the seed; a bucket is taken away only with its
//! BackupBucket.

mod controller;
pub(crate) mod credentials;
mod decision;

pub use controller::run;
