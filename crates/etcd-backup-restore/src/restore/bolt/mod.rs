//! The file format of etcd's database (bbolt), as far as a restore needs it.
//!
//! A file of pages. The first two hold the meta data, the others the nodes of B+ trees: one tree for each
//! bucket, and one of all buckets. A page that no tree refers to is free. Nothing here is shared with a
//! running etcd: a file is either its or ours, and what was written is judged by etcd's own tools before an
//! etcd gets it.

mod database;
mod head;
mod node;
mod page;
mod tail;

pub(super) use database::Database;
pub(super) use head::fault;
pub(super) use tail::Tail;
