//! Access to clusters: connections that need a permit, server-side apply, waits on a watch, and the objects
//! that a watch follows.
//!
//! | file | purpose |
//! |---|---|
//! | `connection` | the only place that creates clients; `clusters`: clients of garden, seed and shoot |
//! | `pooled`, `multiplexed` | a connection for each request under way, or a single connection |
//! | `unprocessed` | repeats requests that an API server has not processed |
//! | `credentials` | credentials that a user wrote |
//! | `apply` | server-side apply and merge patches, with a name of the writer |
//! | `wait`, `wait_progress` | waits for an object by a watch, and the reason of the present wait |
//! | `informer` | objects that a watch follows |

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
