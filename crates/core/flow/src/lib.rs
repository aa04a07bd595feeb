//! Task graph engine: the order of a long operation, separate from the work of the steps.
//!
//! A flow file reads as prose: the file adds tasks to a [`Graph`], each with the tasks that have to end
//! before, and compiles the graph into a [`Flow`] that runs. The *work* of a task is defined by the caller;
//! this crate does not depend on Kubernetes.
//!
//! ```
//! use std::time::Duration;
//! use flow::{Graph, Retry, Task};
//!
//! # async fn doc() -> Result<(), flow::FlowError<String>> {
//! let backup = true;
//! let mut g = Graph::<String>::new("Shoot cluster preparation for migration");
//! let namespace = g.add(Task::new("Deploying Shoot namespace in Seed", || async { Ok(()) }));
//! let secrets = g.add(Task::new("Initializing secrets management", || async { Ok(()) }).after(namespace));
//! let _etcd = g.add(
//!     Task::new("Deploying main and events etcd", || async { Ok(()) })
//!         .after([namespace, secrets])
//!         .skip_if(!backup)
//!         .retry(Retry::until_timeout(Duration::from_secs(5), Duration::from_secs(30))),
//! );
//! let report = g.compile().run(|progress| println!("{} % {progress}", progress.percent)).await?;
//! assert_eq!(report.succeeded.len(), 3);
//! # Ok(())
//! # }
//! ```
//!
//! The engine promises:
//! - A dependency is a [`TaskId`], and an id exists only for a task that was added before. So an unknown
//!   dependency or a cycle cannot be written. `add` refuses an id of a different graph.
//! - A task starts as soon as all tasks before it have succeeded or were skipped. Independent tasks run in
//!   parallel, and continue when a parallel task fails; tasks after a failed task do not run.
//! - No task is spawned: the whole flow is a single future, and dropping the flow stops all work at once. A
//!   flow may therefore run under an ownership or lease guard.
//! - There is no undo and no log of past steps. Tasks are idempotent; after a failure the flow is built and
//!   run again.
//! - Each failed task is reported once, with the task's last error and name. The name is the task's identity
//!   in `status.lastErrors`, so a graph refuses a name twice.
//! - Statuses show an error as `{}`; logs show an error as `{:#}`, where an error type can print causes too.
//!
//! `crates/dev/flow-drill` is the test driver that fails and repeats a flow at every single task.

mod current;
mod draw;
mod expected;
mod graph;
mod intercept;
mod metrics;
mod observer;
mod outcome;
mod progress;
mod retry;
mod run;
mod task;

#[cfg(test)]
mod tests;

pub use current::current_task;
pub use graph::{Flow, Graph};
pub use intercept::{Interceptor, TaskRef, Undisturbed};
pub use metrics::TaskMetrics;
pub use observer::TaskEnd;
pub use outcome::{Cause, FlowError, Report, TaskFailure};
pub use progress::Progress;
pub use retry::Retry;
pub use task::{Task, TaskId};
