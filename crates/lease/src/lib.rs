//! Leader election on `coordination.k8s.io/v1` Leases.
//!
//! ```no_run
//! # async fn example(client: kube::Client, shutdown: tokio_util::sync::CancellationToken) -> Result<(), lease::Lost> {
//! let metrics = lease::Metrics::default();
//! let lock = lease::Lock::new(client, "garden", "gardenlet", lease::identity());
//! let elector = lease::Elector::new(lock, lease::Timing::default(), metrics);
//! elector.with_lease(shutdown, |permit| async move { /* controllers, whose clients carry permit.layer() */ }).await?;
//! # Ok(()) }
//! ```
//!
//! What this crate promises
//! - At most one process works at any time, by each process's own monotonic clock: work is dropped when the
//!   lock could not be renewed for the renew deadline, and nobody else takes it before he saw no change for
//!   the lease duration, which is longer. No time stamp of another machine is ever compared with anything
//!   ([`observation`]).
//! - The work is not polled, and no fenced request leaves, after the lock was lost: also in a process that
//!   was stopped and goes on later ([`permit`]; what is beyond any lock of this kind is said there).
//! - A clean end gives the lock back, after the work was dropped and its fenced writes under way were
//!   answered. If one is not answered within 3 s, the lock is left to run out instead. The lock is renewed
//!   meanwhile.
//! - A lock that was *lost* is never given back: writes under way may still be carried out, and the time
//!   until others may take it (lease duration less renew deadline) is theirs.
//! - The record is client-go's (`tools/leaderelection` of Kubernetes 1.34): either side can take over from
//!   the other.
//! - Candidates go on through outages of the API server; a holder ends with an error (RK-33).
//!
//! | file | what |
//! |---|---|
//! | `record`, `observation`, `decision` | the pure middle: what a Lease says, what was seen, what to do |
//! | `lock`, `terms`, `timing` | which lock, what all its holders must agree on, and for how long one holds it |
//! | `candidate`, `tenure`, `elector` | waiting for a lock, holding it, and work under it |
//! | `participant`, `outcome` | what these share: who takes part, and how it ends |
//! | `store`, `view`, `announce`, `metrics` | the Lease at the API server, Events, numbers |

mod announce;
mod candidate;
pub mod decision;
mod elector;
mod ended;
mod identity;
mod lock;
mod metrics;
mod mutation;
pub mod observation;
mod participant;
mod record;
mod store;
mod tenure;
mod terms;
mod timing;
mod view;

pub use elector::Elector;
pub use ended::{Ended, Lost};
pub use identity::identity;
pub use lock::Lock;
pub use metrics::Metrics;
pub use participant::WallClock;
pub use record::Record;
pub use timing::{Timing, TimingError};

#[cfg(test)]
mod decision_tests;
#[cfg(test)]
mod elector_tests;
#[cfg(test)]
mod record_tests;
#[cfg(test)]
mod simulation;
