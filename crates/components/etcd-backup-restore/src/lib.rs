//! The process beside an etcd that keeps etcd's data when the etcd, its volume or its whole seed is gone.
//!
//! - `server` ([`server`], [`snapshotter`]): full snapshots on a schedule and on demand, deltas in between,
//!   garbage collection, and exactly one final snapshot when the shoot leaves the seed. With [`owner`]: only
//!   while the seed owns the shoot, and clients reach etcd only then.
//! - `initialize` ([`restore`]): before etcd starts, restores the newest consistent chain if the volume has
//!   no usable data; refuses, with the volume unchanged, when the chain cannot be trusted.
//! - `prepare` ([`restore::Prepare`]): before an etcd without backups starts, raises the revisions above all
//!   former revisions.
//! - `copy` ([`copy`]): copies the chain between two stores, verified, and may be repeated at will.
//! - `follow` ([`follow`]): keeps an etcd equal to the etcd of the seed that a shoot is about to leave.
//!
//! Guarantees: memory does not grow with the database. No object is trusted before its hash was checked. A
//! restore never ends below a revision that a snapshot promised. An object appears in a store as a whole or
//! not at all.
//!
//! | file | content |
//! |---|---|
//! | `cli` | the commands with the flags |
//! | `store_flags` | flags of stores; `etcd_flags`: of etcd; `flag_ranges`: bounds; `duration`: times |
//! | `server` | the HTTP interface |
//! | `schedule` | cron schedules |
//! | `snapshotter` | when and how snapshots are taken; `full`: a full snapshot; `delta`: a delta |
//! | `garbage` | the objects that garbage collection deletes |
//! | `chain` | the objects that make a database |
//! | `snapshot_name` | the names of objects; `compression`, `integrity`: the content |
//! | `store` | the bucket of an ownership epoch |
//! | `seal_note` | the seal of an epoch in the bucket; `restored_note`: the revision after a restore |
//! | `restore` | `initialize` and `prepare`, before etcd starts |
//! | `revisions` | how changes become revisions, for `restore` and `follow` |
//! | `copy` | `copy` |
//! | `follow` | `follow` |
//! | `owner` | the owner check, and the gate in front of etcd |
//! | `etcd` | the client for etcd |
//! | `error` | the error classes; `log`, `metrics`, `clock`: logs, metrics, wall clock |

pub mod chain;
pub mod cli;
pub mod clock;
pub mod compression;
pub mod copy;
pub mod delta;
pub mod duration;
pub mod error;
pub mod etcd;
pub mod etcd_flags;
pub mod flag_ranges;
pub mod follow;
pub mod full;
pub mod garbage;
pub mod integrity;
pub mod log;
pub mod metrics;
pub mod owner;
pub mod restore;
mod restored_note;
mod revisions;
pub mod schedule;
pub mod seal_note;
pub mod server;
pub mod snapshot_name;
pub mod snapshotter;
pub mod store;
pub mod store_flags;
