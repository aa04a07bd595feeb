//! Takeover: gives a shoot whose seed is dead, cut off or stuck to the wanted seed, without the help of the
//! owner (R17-05, R17-20). Both seeds must have owner checks (`spec.settings.ownerChecks`), or there is no
//! takeover: without a fence two control planes could write.
//!
//! The owner keeps the shoot in a new epoch if an operator with the verb `renew-ownership` requests that with
//! `shoot.gardener.cloud/renew-ownership=true`.
//!
//! The approval comes first, as `status.ownership.approval`. It comes from an operator with the verb
//! `force-restore`, who annotates the Shoot with `shoot.gardener.cloud/force-restore` (`true`, or
//! `source-is-off`). Or it comes from this controller after a configured silence of the source's Lease. The
//! hand-over is a separate write, conditional on exactly the judged Shoot.
//!
//! Guarantees: the annotation works once, and is removed whether it was accepted or refused. An approval is
//! valid for a single source, destination and epoch, and for an hour. Every condition of the approval is
//! checked again before its use. Silence is measured with this process's own clock while the garden answers.
//! So neither a start of this process nor an outage of the garden makes a seed look dead.
//!
//! | file | content |
//! |---|---|
//! | `sightings` | how long Leases and operations have been unchanged, as seen by this process |
//! | `seen` | the sightings of this process: the watch of Leases |
//! | `obstacle` | why a shoot may not be taken over |
//! | `host_clock` | whether permits end while a hypervisor pauses a machine of the source |
//! | `servers` | whether the seeds use the same DNS servers, and whether all processes have an owner check |
//! | `source_credentials` | whether the credentials of the bucket of the source exist |
//! | `next_step` | the steps of the controller, and the requests of operators |
//! | `approval` | the recorded approval |
//! | `decision` | the next step |
//! | `renewal` | the next step after the request that the seed keep the shoot in a new epoch |
//! | `statement` | the next step after the statement that former seeds of a claimed shoot are off |
//! | `change` | the writes, each conditional |
//! | `too_large` | the report of a takeover that the API server refuses for the size of the Shoot |
//! | `controller` | reads, and executes the step |

mod approval;
mod change;
mod controller;
mod decision;
pub(crate) mod host_clock;
pub(crate) mod next_step;
mod obstacle;
mod renewal;
mod seen;
pub(crate) mod servers;
mod sightings;
mod source_credentials;
mod statement;
mod too_large;

pub use controller::run;
