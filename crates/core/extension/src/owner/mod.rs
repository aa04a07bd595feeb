//! Checks the owner of the shoot for the duration of work (R17-13, R17-14, R17-60..62;
//! docs/understand/ownership.md describes the protocol).
//!
//! Off unless the Seed in the Cluster enables the checks; otherwise no check runs and no state is kept.
//!
//! Promises
//! - Every operation of an actuator for a shoot, except `migrate`, runs under the owner's permit in addition
//!   to the permit of the lock. The operation begins after an authoritative DNS server, or the process beside
//!   etcd, has reported that this seed owns the shoot in the present epoch. When the ownership ends, the
//!   operation is dropped, with all sleeps and requests.
//! - A process runs a single check for a shoot and epoch, for all concurrent work. Without work, no check
//!   runs.
//! - An object that was written in a different epoch does not count as the wanted state.
//! - A loss in an epoch is final for the lifetime of the process: no check is repeated.
//!
//! The checks come from crate `owner-checks`, which further processes share.
//!
//! | module | content |
//! |---|---|
//! | `scope` | the operations that need the owner's permit |
//! | `epoch` | whether an object is of the present epoch |
//! | `checks` | the checks of a process, and the count of refusals |

mod checks;
mod epoch;
mod scope;

pub use checks::OwnerChecks;
pub(crate) use epoch::written_in;
pub use scope::concerns;
