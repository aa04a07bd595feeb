//! The shared parts of every process: start and stop, the three kinds of cluster, the controller runner,
//! error classes, server-side apply, events and metrics.
//!
//! A controller author writes [`Reconciler::apply`] and [`Reconciler::cleanup`]. The [`runner`] provides
//! finalizer, span, back-off, metrics, events and shutdown.

pub mod apply;
pub mod awaited;
mod bounded;
pub mod clock;
pub mod clusters;
pub mod conditions;
mod connect;
mod credentials;
pub mod error;
pub mod events;
pub mod failing;
mod few;
pub mod finalizer;
pub mod follow;
mod kept_alive;
mod log_filter;
pub mod manifests;
pub mod metrics;
mod multiplexed;
pub mod process;
pub mod rollout;
pub mod runner;
mod skim;
mod survey;
mod variable;
pub mod wait;
pub mod words;
pub mod workload;

pub use clusters::{Cluster, Garden, Seed, Shoot};
pub use connect::{Connection, load_config};
pub use credentials::Credentials;
pub use error::{Error, Result};
pub use events::Events;
pub use few::{Few, FewEntries};
pub use permit::Permit;
pub use process::Process;
pub use runner::{Next, Reconciler};
pub use survey::survey;
pub use variable::Variable;
