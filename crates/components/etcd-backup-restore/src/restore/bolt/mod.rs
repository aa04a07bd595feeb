//! The parts of the file format of etcd's database (bbolt) that a restore needs.
//!
//! The file consists of pages. The first two pages hold the meta data, all later pages the nodes of B+ trees:
//! a tree for each bucket, and a tree of all buckets. A page that no tree refers to is free. No running etcd
//! ever shares a file with this code, and etcd's own tools check the written file before an etcd opens it.

mod database;
mod head;
mod node;
mod page;
mod tail;

pub(super) use database::Database;
pub(super) use head::fault;
pub(super) use tail::Tail;
