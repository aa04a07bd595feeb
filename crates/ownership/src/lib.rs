//! Who owns a shoot: the owner record at its authorities, a second witness, and the permit that follows.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # async fn example(second: Arc<dyn ownership::SecondWitness>) -> Result<(), Box<dyn std::error::Error>> {
//! let claim = ownership::Claim::new("owner.demo.dev.internal.example.org", "seed-a", 1)?;
//! let terms = ownership::Terms::new(ownership::Settings::default())?;
//! let authorities = ownership::Authorities::named("internal.example.org", ["192.0.2.1:53".parse()?])?;
//! let witnesses = ownership::Witnesses {
//!     authorities: Arc::new(authorities),
//!     wire: Arc::new(ownership::Network),
//!     second,
//! };
//! let watch = ownership::Watch::new(claim, terms, witnesses, permit::Clock::default())?;
//! let reports = watch.reports(); // Owner(permit), Unconfirmed or Lost
//! let lost = watch.run().await; // polled beside whatever acts under the permit
//! # Ok(()) }
//! ```
//!
//! What this crate promises
//! - No permit of an epoch is good when the fence of its successor has passed ([`Terms::fence`]): an answer
//!   is good for the validity from when its question was *sent*, by a clock that counts suspension, and a
//!   destination changes every witness before it begins to wait. The simulation in this crate runs that, and
//!   breaks one rule after the other.
//! - One silent witness ends nothing. When both are silent the permit ends with its validity, without grace,
//!   and there is a new one when a witness says Owned again (R17-47..49, docs/understand/decisions/0019).
//! - What was lost stays lost: after Lost there is no permit in this epoch any more.
//! - Only answers of authorities count, and only such as can be a record of ours. All that is wrong with a
//!   record or an answer makes its server silent; it never means Lost.
//! - It knows no Kubernetes: it works when every API server is gone.
//!
//! | file | what |
//! |---|---|
//! | `claim`, `settings`, `given` | what a seed says of itself; intervals and bounds; these as people write them |
//! | `question`, `reply`, `saying`, `agreement`, `judgement` | the pure middle, in this order: a name asked for, one answer, one authority, all authorities, both witnesses |
//! | `wire`, `authorities`, `lookup` | sockets, which servers, and both questions to all of them |
//! | `witness` | the second witness |
//! | `stance`, `tenure`, `watch` | what follows, the permit that goes with it, and the loop around both |
//! | `shown` | when a destination's fence may begin, and when a source may end its epoch |
//! | `phase`, `marks`, `conditional` | what stands in the garden, in DNS and in buckets, and who may write what next |
//! | `gates` | the end of an epoch, and when the next one may open etcd and touch clouds |
//! | `guard` | what the sidecar beside etcd does when it hears of the ownership |
//! | `operation` | the identity of an operation in logs, Events and status |
//! | `revisions` | what an owner leaves out, and how many changes were lost |
//!
//! `model` explores all of it exhaustively, `simulation` runs the watch under faults.

mod agreement;
mod authorities;
mod claim;
mod conditional;
mod fence_servers;
mod gates;
mod given;
mod guard;
mod judgement;
mod lookup;
mod marks;
mod mutation;
mod operation;
mod phase;
mod question;
mod reply;
mod revisions;
mod saying;
mod settings;
mod shown;
mod stance;
mod tenure;
mod watch;
mod wire;
mod witness;

#[cfg(test)]
mod model;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

pub use authorities::{Authorities, AuthoritiesError};
pub use claim::{Claim, ClaimError, epoch_of, is_identity};
pub use conditional::Conditional;
pub use fence_servers::{AskedServers, fence_servers};
pub use gates::{Evidence, SealStep, Sealed, Wait, forwards, keeps_data, may_act, may_open};
pub use given::{GivenError, flag_of};
pub use guard::{Duty, Guard, Told, hear};
pub use judgement::{Answer, OWNED_BY_BUCKET_ALONE};
pub use marks::{Barred, Mark, Object, Record};
pub use operation::operation_id;
pub use phase::{Approval, Chain, Ownership, Phase, Refused, Stay, Step, Writer};
pub use question::{Heard, Question};
pub use revisions::{LEFT_OUT, LEFT_OUT_WITHIN_EPOCH, changes_between};
pub use saying::Loss;
pub use settings::{Settings, SettingsError, Silence, Terms};
pub use shown::{check_before_sealing, shown_by_all};
pub use tenure::{Checked, Standing};
pub use watch::{Report, Watch, Witnesses};
pub use wire::{Flow, Network, Transport, Wire};
pub use witness::{NoWitness, Relayed, SecondWitness, Testimony};
