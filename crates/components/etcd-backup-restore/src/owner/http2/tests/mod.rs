#![allow(clippy::unwrap_used, clippy::panic)]
//! The gate as a proxy, between a client and an etcd that the tests play.

mod cuts;
mod fixture;
mod pausing;
mod permits;
mod pings;
mod prepared;
mod prepared_share;
mod raw;
mod streams;
mod tls;
