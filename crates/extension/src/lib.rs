//! The provider contract: what a gardenlet may expect from whoever looks after an extension object, written
//! once.
//!
//! A provider writes an [`Actuator`] for a kind: `reconcile`, `delete`, `migrate`, `restore`, and where the
//! default does not do, `force_delete`. Everything else is here and the same for all kinds and all providers:
//! which object is acted on and when ([`operation`]), in which order annotations, finalizers and status are
//! written ([`reconciler`], [`status`]), the shoot's context ([`Context`]), how a forced deletion lets go
//! ([`forced`]), what a seed may do for a shoot at all ([`role`], [`owner`]), what `migrate` must not take
//! away ([`cleanup`]), and the sign of life ([`heartbeat`]). For a Worker a provider says only what its
//! machines are ([`worker`]), for a ControlPlane only which processes it has ([`control_plane`]), for a
//! SubnetIsolation only how a zone's network is closed ([`subnet_isolation`]). That an actuator keeps the
//! contract is shown by [`contract`].
//!
//! The protocol, which a gardenlet and an actuator author can rely on
//!
//! | the object carries | what happens | annotation | finalizer |
//! |---|---|---|---|
//! | `gardener.cloud/operation: reconcile` | `reconcile` | removed at the beginning (RX-13) | set before |
//! | `gardener.cloud/operation: migrate` | `migrate`, also while it is being deleted (RX-10) | removed at the end | all removed after |
//! | `gardener.cloud/operation: restore` | `restore` with `status.state` as it is (RX-12, RX-31) | removed at the end | set before |
//! | `gardener.cloud/operation: wait-for-state` | nothing at all | stays | none |
//! | a deletion timestamp and our finalizer | `delete` | stays | removed after |
//! | the same and `confirmation.gardener.cloud/force-deletion: true` (or its deleted shoot does) | `force_delete` | stays | removed after |
//! | none of these, last operation not `Succeeded` | that operation again | | |
//! | a last operation `Migrate` that succeeded | nothing but `migrate` and `restore`; a deletion touches nothing outside | | |
//!
//! Where the seed checks owners ([`owner`]), all but `migrate` wait until it is confirmed that the shoot is
//! this seed's, and stop when it is not any more: nothing of the table happens then (R17-03, R17-60).
//!
//! Each operation writes `status.lastOperation` as `Processing` before it acts and as `Succeeded` or `Error`
//! after. State and referenced resources are written together with the success (RX-30, RX-33), and with that
//! of `migrate` for the last time (RX-11). A crash between any two of these steps leads to the operation
//! being run again, never to its loss: so every call of an actuator may be repeated (I5), and may be dropped
//! at any await.

pub mod actuator;
pub mod cleanup;
pub mod context;
pub mod contract;
pub mod control_plane;
pub mod controller;
pub mod forced;
pub mod heartbeat;
pub mod interrupt;
pub mod kind;
pub mod operation;
mod outcome;
pub mod owner;
pub mod reconciler;
mod refusal;
pub mod role;
pub mod status;
pub mod subnet_isolation;
mod work;
pub mod worker;

pub use actuator::Actuator;
pub use context::Context;
pub use forced::Released;
pub use operation::Decision;
pub use outcome::Outcome;
pub use owner::OwnerChecks;
pub use placement::Operation;
pub use reconciler::ExtensionReconciler;
pub use role::Role;
