//! A shoot whose seed is dead, cut off or stuck is given to the seed that is wanted, without the help of the
//! one that has it (R17-05, R17-20). Both seeds must say in DNS whose their shoots are
//! (`spec.settings.ownerChecks`), or nothing here happens: without a fence two control planes could write.
//!
//! The seed that has a shoot keeps the shoot in a new epoch where a person with the verb `renew-ownership`
//! asks for that with `shoot.gardener.cloud/renew-ownership=true`.
//!
//! Consent comes first, as `status.ownership.approval`: from somebody with the verb `force-restore`, who
//! annotates the Shoot with `shoot.gardener.cloud/force-restore` (`true`, or `source-is-off`), or from this
//! controller after a configured silence of the source's Lease. The hand-over is one write of its own on
//! exactly the Shoot that was judged.
//!
//! Promises: the annotation works once, and is taken away whether it was heeded or not. An approval is for
//! one source, one destination and one epoch, and for an hour. All that let it be given is looked at again
//! before it is used. Silence is what this process has seen by its own clock while the garden answered:
//! neither its own start nor an outage of the garden makes a seed look dead.
//!
//! | file | what |
//! |---|---|
//! | `sightings` | since when Leases and operations have not changed, as seen from here |
//! | `seen` | the same of this process: the watch of Leases |
//! | `obstacle` | why a shoot may not be taken over |
//! | `servers` | whether the seeds ask the same DNS servers, and whether all processes ask |
//! | `next_step` | the steps of the controller, and the requests of people |
//! | `approval` | consent, as it is recorded |
//! | `decision` | what is next |
//! | `renewal` | what is next where a person asks that the seed keep the shoot in a new epoch |
//! | `statement` | what is next where a person states that former seeds of a claimed shoot are off |
//! | `change` | the writes, each conditional |
//! | `controller` | reads, and does it |

mod approval;
mod change;
mod controller;
mod decision;
pub(crate) mod host_clock;
mod next_step;
mod obstacle;
mod renewal;
mod seen;
pub(crate) mod servers;
mod sightings;
mod statement;

pub use controller::run;
