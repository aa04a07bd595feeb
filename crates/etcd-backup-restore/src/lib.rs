//! The process beside an etcd that keeps its data when the etcd, its volume or its whole seed is gone.
//!
//! - `server` ([`server`], [`snapshotter`]): full snapshots on a schedule and on demand, deltas in between,
//!   garbage collection, and exactly one final snapshot when the shoot leaves the seed. With [`owner`]: only
//!   while the seed owns the shoot, and clients reach etcd only then.
//! - `initialize` ([`restore`]): before etcd starts, puts back the newest consistent chain if the volume has
//!   no usable data; refuses, with the volume untouched, when the chain cannot be trusted.
//! - `copy` ([`copy`]): brings the chain from one store to another, verified, and may be repeated at will.
//!
//! Promises: memory does not grow with the database; nothing is trusted before its hash was checked; a
//! revision that a snapshot promised is never undercut by a restore; an object appears in a store as a whole
//! or not at all.

pub mod bounds;
pub mod chain;
pub mod cli;
pub mod clock;
pub mod compression;
pub mod copy;
pub mod delta;
pub mod duration;
pub mod error;
pub mod etcd;
pub mod full;
pub mod garbage;
pub mod integrity;
pub mod log;
pub mod metrics;
pub mod owner;
pub mod restore;
mod restored_note;
pub mod schedule;
pub mod seal_note;
pub mod server;
pub mod snapshot_name;
pub mod snapshotter;
pub mod store;
