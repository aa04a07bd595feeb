//! The shared parts of every process, in folders by function. [`process`] is the start and stop of a process
//! with logs, health and metrics. [`client`] connects to the three kinds of cluster, writes by server-side
//! apply, and waits. [`controller`] runs reconcilers. [`workload`] builds Deployments. [`bounds`] limits the
//! memory that an answer of an API server can take.
//!
//! A controller author writes [`controller::Reconciler::apply`] and [`controller::Reconciler::cleanup`]. The
//! [`controller::runner`] provides finalizer, span, back-off, metrics, events and shutdown.
//!
//! [`Error`], [`Result`] and [`clock`] stay at the root, because every folder and nearly every file of the
//! processes uses these.

pub mod bounds;
pub mod client;
pub mod clock;
pub mod controller;
pub mod error;
mod error_message;
pub mod process;
pub mod workload;

pub use error::{Error, ErrorMessage, Result};
