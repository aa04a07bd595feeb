//! The right to act: all requests that leave the process need a [`Permit`].
//!
//! ```
//! # async fn example(permit: permit::Permit) -> Result<(), permit::NotPermitted> {
//! permit.check()?; // may I, at this moment?
//! permit.guard(async { /* work that takes no step without the right */ }).await?;
//! permit.effect(async { /* changes state outside: a clean end waits for the effect */ }).await?;
//! # Ok(()) }
//! ```
//!
//! This crate promises:
//! - A permit ends once and is never revived. A process that gets the right again receives a new permit, and
//!   reads the state again before acting.
//! - The clock is read *before* each step of guarded work and before each request leaves. A process may be
//!   stopped (SIGSTOP, a frozen cgroup, a suspended machine). When the process resumes, timers and work are
//!   ready at the same moment, and the process takes no step then ([`Permit::guard`], [`Fence`], [`Clock`]).
//! - A clean end has two steps. First the permit is *closed*: no work begins any more, while requests under
//!   way are answered ([`Issuer::close`], [`Settling`]). Then the permit is *ended*. A loss ends the permit
//!   at once ([`Issuer::end`]).
//! - [`Permit::and`] of several permits is valid while all permits are valid: the earliest deadline, and the
//!   first end.
//! - A request that may change state is not delivered after the end of the permit. Connections of
//!   [`PermittedConnector`] discard unsent bytes of the kernel, and give up unacknowledged bytes after
//!   [`UNACKNOWLEDGED_FOR`].
//!
//! No permit of this kind can take back bytes that have reached the peer or a proxy, or notice a stop between
//! the clock reading and the very next instruction. The issuer leaves time for the first case: a successor
//! waits longer than the validity. In the second case the target must refuse the write.
//!
//! | file | purpose |
//! |---|---|
//! | `permit` | the right held by work: check, guard, and |
//! | `effects` | work that changes state outside the process |
//! | `layer` | the same for requests of clients |
//! | `connection` | connections that discard unsent bytes when a permit ends |
//! | `proxy` | connections through the proxy of the environment (feature `object-store`) |
//! | `store` | the same for requests to object stores (feature `object-store`) |
//! | `bucket`, `bucket_xml` | S3 listings and removals for every key and version (feature `object-store`) |
//! | `aws_partition` | domains of AWS by region (feature `object-store`) |
//! | `aws_secret` | keys of a Secret that name credentials outside the Secret (feature `object-store`) |
//! | `web_identity` | keys of a role, issued for a token (feature `object-store`) |
//! | `web_identity_secret` | the keys of a backup Secret that name a role (feature `object-store`) |
//! | `web_identity_answer` | answers and failures of the token service (feature `object-store`) |
//! | `creation` | creation of an object that must not exist yet (feature `object-store`) |
//! | `issuer` | the issuer's side of a right: extend, close, settle, end |
//! | `under_way` | effects that have left and are not answered |
//! | `grant` | the state shared by issuer and permits |
//! | `clock` | monotonic time that counts suspension |
//! | `host_clock` | the clock of the host, which shows pauses of the guest |

#[cfg(feature = "object-store")]
mod aws_partition;
#[cfg(feature = "object-store")]
mod aws_secret;
#[cfg(feature = "object-store")]
mod bucket;
#[cfg(feature = "object-store")]
mod bucket_xml;
mod clock;
mod connection;
#[cfg(feature = "object-store")]
mod creation;
mod effects;
mod grant;
mod host_clock;
mod issuer;
mod layer;
mod permit;
#[cfg(feature = "object-store")]
mod proxy;
#[cfg(feature = "object-store")]
mod store;
mod under_way;
#[cfg(feature = "object-store")]
mod web_identity;
#[cfg(feature = "object-store")]
mod web_identity_answer;
#[cfg(feature = "object-store")]
mod web_identity_secret;

#[cfg(feature = "object-store")]
pub use aws_partition::aws_domain;
#[cfg(feature = "object-store")]
pub use aws_secret::external_credentials;
#[cfg(feature = "object-store")]
pub use bucket::{Bucket, Listed, REMOVED_AT_ONCE};
#[cfg(feature = "object-store")]
pub use bucket_xml::{ListedObject, Position, RefusedRemoval};
pub use clock::{Clock, Moment};
pub use connection::{
    PermittedConnector, PermittedStream, UNACKNOWLEDGED_FOR, Unanswered, deliver_unsent, discard_unsent,
};
#[cfg(feature = "object-store")]
pub use creation::create_object;
pub use grant::NotPermitted;
pub use host_clock::{HostClock, HostClockKind, UNNOTICED_PAUSE};
pub use issuer::{Issuer, Settling};
pub use layer::{Fence, Fenced};
pub use permit::Permit;
#[cfg(feature = "object-store")]
pub use store::{ConnectionPool, StoreConnector};
pub use under_way::FINISH_WITHIN;
#[cfg(feature = "object-store")]
pub use web_identity::WebIdentity;
#[cfg(feature = "object-store")]
pub use web_identity_answer::{WebIdentityCause, WebIdentityError};
#[cfg(feature = "object-store")]
pub use web_identity_secret::{WebIdentityKeys, WebIdentityRole};

#[cfg(test)]
mod tests;
