//! The provider contract: the behaviour that a gardenlet may expect from the controller of an extension
//! object, in one place.
//!
//! A provider writes an [`Actuator`] for a kind: `reconcile`, `delete`, `migrate`, `restore` and, where the
//! default does not suffice, `force_delete`. This crate provides the rest, for all kinds and all providers:
//! - [`operation`]: decides when to act on an object.
//! - [`reconciler`], [`status`]: the order of writes to annotations, finalizers and status.
//! - [`Context`]: the shoot's context.
//! - [`forced`]: the end of a forced deletion.
//! - [`role`], [`owner`]: the operations that a seed may run for a shoot.
//! - [`cleanup`]: the objects that `migrate` must not remove.
//! - [`heartbeat`]: the heartbeat of the process.
//!
//! For a Worker, a provider describes only the machines ([`worker`]). For a ControlPlane, a provider
//! describes only the processes ([`control_plane`]), and for a SubnetIsolation only how a zone's network is
//! closed ([`subnet_isolation`]). The test crate `extension-contract` proves that an actuator
//! keeps the contract.
//!
//! The protocol, for authors of a gardenlet or an actuator. Precedence: `wait-for-state` and `migrate` come
//! before a deletion, and a deletion comes before `restore` and `reconcile`.
//! - `gardener.cloud/operation: reconcile` runs `reconcile`. The annotation is removed at the beginning
//!   (RX-13). The finalizer is set before.
//! - `gardener.cloud/operation: migrate` runs `migrate`, also during a deletion (RX-10). The annotation is
//!   removed at the end. All finalizers are removed afterwards.
//! - `gardener.cloud/operation: restore` runs `restore` with `status.state` as found (RX-12, RX-31). The
//!   annotation is removed at the end. The finalizer is set before.
//! - `gardener.cloud/operation: wait-for-state` runs no operation. The annotation stays, and no finalizer is
//!   set.
//! - A deletion timestamp and the provider's finalizer run `delete`. The annotation stays. The finalizer is
//!   removed afterwards.
//! - The same with `confirmation.gardener.cloud/force-deletion: true` on the object or on the deleted shoot
//!   runs `force_delete`. The annotation stays. The finalizer is removed afterwards.
//! - Without these, a last operation that is not `Succeeded` runs again.
//! - After a successful `Migrate`, only `migrate` and `restore` run; a deletion touches no outside resource.
//!
//! Where the seed checks owners ([`owner`]), all operations except `migrate` wait until the seed's ownership
//! of the shoot is confirmed. The operations stop when the ownership ends, and then no entry of the list
//! applies (R17-03, R17-60).
//!
//! Each operation writes `status.lastOperation` as `Processing` before the operation acts and as `Succeeded`
//! or `Error` afterwards. State and referenced resources are written together with the success (RX-30,
//! RX-33), and for the last time with the success of `migrate` (RX-11). After a crash between any two of
//! these steps, the operation is run again and never lost. So every call of an actuator may be repeated (I5),
//! and may be dropped at any await.

pub mod actuator;
pub mod cleanup;
pub mod context;
pub mod control_plane;
pub mod controller;
pub mod forced;
pub mod heartbeat;
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
