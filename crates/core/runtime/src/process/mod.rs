//! Start and stop of a process: logs, signals, tasks, the health endpoints and metrics.

pub mod condition_metrics;
pub mod external_requests;
mod lifecycle;
pub mod liveness;
mod log_filter;
pub mod metrics;
mod resource_metrics;

pub use lifecycle::{Awaiting, Health, Process, ProcessError, run};
