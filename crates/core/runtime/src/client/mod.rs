//! Access to clusters: connections that need a permit, server-side apply, waits on a watch, and the objects
//! that a watch follows.

pub mod apply;
mod clusters;
mod connection;
mod credentials;
pub mod informer;
mod multiplexed;
mod pooled;
mod unprocessed;
pub mod wait;
pub mod wait_progress;

pub use clusters::{Cluster, Garden, Seed, Shoot};
pub use connection::{Connection, load_config};
pub use credentials::Credentials;
pub use permit::Permit;
