//! Ownership of a shoot: the owner record at the zone's authorities, a second witness, and the resulting
//! permit.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # async fn example(second: Arc<dyn ownership::SecondWitness>) -> Result<(), Box<dyn std::error::Error>> {
//! let claim = ownership::OwnershipClaim::new("owner.demo.dev.internal.example.org", "seed-a", 1)?;
//! let terms = ownership::Terms::new(ownership::Settings::default())?;
//! let authorities = ownership::Authorities::named("internal.example.org", ["192.0.2.1:53".parse()?])?;
//! let witnesses = ownership::Witnesses {
//!     authorities: Arc::new(authorities),
//!     wire: Arc::new(ownership::Network),
//!     second,
//! };
//! let watch = ownership::Watch::new(claim, terms, witnesses, permit::Clock::default())?;
//! let reports = watch.reports(); // Owner(permit), Unconfirmed or Lost
//! let lost = watch.run().await; // polled beside the work under the permit
//! # Ok(()) }
//! ```
//!
//! This crate promises:
//! - No permit of an epoch is valid when the fence of the following owner has passed ([`Terms::fence`]). An
//!   answer is valid for the validity, counted from the *sending* of the question, by a clock that counts
//!   suspension. A destination changes every witness before the destination begins to wait. The simulation in
//!   this crate runs that, and breaks each rule in turn.
//! - A single silent witness ends no permit. When both are silent, the permit ends with the validity, without
//!   grace. A later Owned of a witness brings a new permit (R17-47..49, docs/understand/decisions/0019).
//! - A loss is final: after Lost there is no permit in this epoch any more.
//! - Only answers of authorities count, and only valid owner records. Any fault of a record or an answer
//!   makes the server silent; a fault never means Lost.
//! - The crate does not depend on Kubernetes, and works when every API server is gone.
//!
//! From bytes to the answer: `Reply` (one name), `RecordVerdict` (one server), `DnsVerdict` (all servers of
//! the zone). `DnsVerdict` decides alone, or together with the `Testimony` of the second witness; the result
//! is the `Answer`. The second witness is the bucket for the process beside etcd, the Shoot in the garden for
//! a gardenlet, and the process beside etcd for all other processes.
//!
//! | file | purpose |
//! |---|---|
//! | `claim`, `settings` | the claim of a seed; intervals and bounds |
//! | `overrides` | settings as users write these |
//! | `question`, `reply` | pure: a question for a name, the answer of a server for a name |
//! | `record_verdict`, `dns_verdict` | pure: the verdict of a single authority, of all authorities |
//! | `judgement` | pure: the answer of both witnesses |
//! | `wire`, `authorities`, `lookup` | sockets, the servers to ask, and both questions to all servers |
//! | `witness` | the second witness |
//! | `claim_state`, `tracker`, `watch` | the consequence of answers, the permit, and the loop around both |
//! | `fence_servers` | the name servers that must show a destination before the fence begins |
//! | `witness_checks` | the start of a destination's fence, and the end of a source's epoch |
//! | `phase`, `marks`, `conditional` | records in garden, DNS and buckets, and the permitted next writes |
//! | `cut` | the cut of a live move; no process calls the cut yet |
//! | `preparation` | the grant to prepare, and the removal of a preparation |
//! | `gates` | the end of an epoch, and when the next epoch may open etcd and change clouds |
//! | `sidecar_state` | the reaction of the sidecar beside etcd to reports |
//! | `operation` | the identity of an operation in logs, Events and status |
//! | `mutation` | the switches that break a rule in tests |
//! | `revisions` | the revisions that an owner skips, and the number of lost changes |
//!
//! `model` explores the whole protocol exhaustively, `simulation` runs the watch under faults.

mod authorities;
mod claim;
mod claim_state;
mod conditional;
mod cut;
mod dns_verdict;
mod fence_servers;
mod gates;
mod judgement;
mod lookup;
mod marks;
mod mutation;
mod operation;
mod overrides;
mod phase;
mod preparation;
mod question;
mod record_verdict;
mod reply;
mod revisions;
mod settings;
mod sidecar_state;
mod tracker;
mod watch;
mod wire;
mod witness;
mod witness_checks;

#[cfg(test)]
mod model;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

pub use authorities::{Authorities, AuthoritiesError};
pub use claim::{ClaimError, OwnershipClaim, epoch_of, is_identity};
pub use conditional::Conditional;
pub use cut::{
    AttemptMarks, BucketMark, CutProgress, CutStep, CutWait, FollowProof, FollowedEnd, FollowedWait,
    GateRoute, HistoryDigest, LiveOwnership, SealedAttempt, SourceMark, destination_route, forwarded_epoch,
    is_given_up, may_begin_cut, may_follow, may_open_live, may_open_source, record_testimony, source_route,
};
pub use dns_verdict::HandOverTestimony;
pub use fence_servers::{AskedServers, fence_servers};
pub use gates::{Evidence, SealProgress, SealStep, Wait, forwards, keeps_data, may_act, may_open};
pub use judgement::{Answer, OWNED_BY_BUCKET_ALONE};
pub use marks::{ClaimRefusal, Mark, OwnershipObject, Record};
pub use operation::operation_id;
pub use overrides::{OverrideError, flag_of};
pub use phase::{Approval, Chain, Ownership, Phase, Refused, SeedEpoch, Step, Writer};
pub use preparation::{
    NamespaceMark, PreparationGrant, PreparationStep, may_remove_prepared, next_preparation_step,
};
pub use question::{Question, ServerResponse};
pub use record_verdict::OwnershipLoss;
pub use revisions::{LEFT_OUT, LEFT_OUT_WITHIN_EPOCH, changes_between};
pub use settings::{SHORTEST_FENCE_SECONDS, Settings, SettingsError, Silence, Terms};
pub use sidecar_state::{SidecarAction, SidecarEvent, SidecarState, next_state};
pub use tracker::{Checked, Standing};
pub use watch::{Report, Watch, Witnesses};
pub use wire::{Flow, Network, Transport, Wire};
pub use witness::{NoWitness, RelayedAnswer, SecondWitness, Testimony};
pub use witness_checks::{ask_hand_over, check_before_sealing, check_owned_elsewhere, shown_by_all};
