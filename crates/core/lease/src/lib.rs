//! Leader election on `coordination.k8s.io/v1` Leases.
//!
//! ```no_run
//! # async fn example(
//! #     client: kube::Client,
//! #     shutdown: tokio_util::sync::CancellationToken,
//! # ) -> Result<(), lease::Lost> {
//! let metrics = lease::Metrics::default();
//! let lock = lease::Lock::new(client, "garden", "gardenlet", lease::identity());
//! let elector = lease::Elector::new(lock, lease::Timing::default(), metrics);
//! elector
//!     .with_lease(shutdown, |permit| async move { /* controllers, whose clients carry permit.layer() */ })
//!     .await?;
//! # Ok(()) }
//! ```
//!
//! This crate promises:
//! - At most one process works at any time, by each process's own monotonic clock. Work is dropped when the
//!   lock could not be renewed for the renew deadline. A candidate takes the lock only after the longer lease
//!   duration without a change. No time stamp of another machine is ever used in a comparison
//!   ([`observation`]).
//! - After the loss of the lock, the work is not polled and no fenced request leaves, also in a process that
//!   was stopped and resumed ([`permit`]; that crate states the limits of any such lock).
//! - A clean end releases the lock, after the work was dropped and the work's fenced writes under way were
//!   answered. If a write is not answered within 3 s, the lock expires instead. The lock is renewed
//!   meanwhile.
//! - A *lost* lock is never released: writes under way may still be carried out. The time until a candidate
//!   may take the lock (lease duration minus renew deadline) covers these writes.
//! - The record is client-go's (`tools/leaderelection` of Kubernetes 1.34): either side can take over from
//!   the other.
//! - Candidates continue through outages of the API server; a holder ends with an error (RK-33).
//!
//! | file | purpose |
//! |---|---|
//! | `election_record`, `observation`, `decision` | pure: content of a Lease, observation, next step |
//! | `lock`, `terms`, `timing` | the identity of a lock, the terms of all holders, the durations |
//! | `identity` | the identity of a candidate |
//! | `candidate`, `tenure`, `elector` | waiting for a lock, holding the lock, and work under the lock |
//! | `participant`, `ended` | shared: the process in the election, and the end of an election |
//! | `store`, `view`, `announce` | the Lease at the API server, Events |
//! | `metrics`, `families` | the state of all locks, and the metrics of Prometheus (feature `metrics`) |
//! | `mutation` | faults for the simulation, so that the simulation can fail |

mod announce;
mod candidate;
pub mod decision;
mod election_record;
mod elector;
mod ended;
#[cfg(feature = "metrics")]
mod families;
mod identity;
mod lock;
mod metrics;
mod mutation;
pub mod observation;
mod participant;
mod store;
mod tenure;
mod terms;
mod timing;
mod view;

pub use election_record::ElectionRecord;
pub use elector::Elector;
pub use ended::{Ended, Lost};
pub use identity::identity;
pub use lock::Lock;
pub use metrics::Metrics;
pub use participant::WallClock;
pub use terms::LockTerms;
pub use timing::{Timing, TimingError};

#[cfg(test)]
mod decision_tests;
#[cfg(test)]
mod election_record_tests;
#[cfg(test)]
mod elector_tests;
#[cfg(test)]
mod simulation;
