//! Tests of leader migration. Only `two_managers` needs real servers.
#![allow(clippy::unwrap_used, clippy::panic)]

mod both_locks;
mod defaults;
mod errors;
mod third_party;
mod two_managers;
