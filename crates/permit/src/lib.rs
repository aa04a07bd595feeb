//! The right to act: whatever leaves the process goes through a [`Permit`].
//!
//! ```
//! # async fn example(permit: permit::Permit) -> Result<(), permit::NotPermitted> {
//! permit.check()?; // may I, at this moment?
//! permit.guard(async { /* work that takes no step without the right */ }).await?;
//! permit.effect(async { /* changes something outside: a clean end waits for it */ }).await?;
//! # Ok(()) }
//! ```
//!
//! What this crate promises
//! - A permit ends once and does not come back. Who gets the right again is given a new one, and reads again
//!   what he acts on.
//! - The clock is looked at *before* each step of guarded work and before each request leaves: a process that
//!   was stopped (SIGSTOP, a frozen cgroup, a suspended machine) finds its timers and its work ready at one
//!   moment when it goes on, and takes no step then ([`Permit::guard`], [`Fence`], [`Clock`]).
//! - A clean end has two steps. First the permit is *closed*: nothing begins any more, while what has left is
//!   answered ([`Issuer::close`], [`Settling`]). Then it is *ended*. A loss ends it at once
//!   ([`Issuer::end`]).
//! - [`Permit::and`] of several is good while all of them are: the earliest deadline, and the first end.
//!
//! - A request that may change something is not delivered after its permit: connections of
//!   [`PermittedConnector`] throw away what the kernel has not sent, and give up what is not acknowledged
//!   after [`UNACKNOWLEDGED_FOR`].
//!
//! What no permit of this kind can do: take back bytes that have reached the other side or a proxy, or notice
//! a stop between the look at the clock and the very next instruction. Whoever issues permits leaves time for
//! the first (what a successor waits beyond the validity); for the second a write must be refused by its
//! target.
//!
//! | file | what |
//! |---|---|
//! | `permit` | what work holds: check, guard, and |
//! | `effects` | what work changes outside |
//! | `layer` | the same for requests of clients |
//! | `connection` | connections that throw away what is not sent when a permit ends |
//! | `proxy` | connections through the proxy that the environment names (feature `object-store`) |
//! | `store` | the same for requests to object stores (feature `object-store`) |
//! | `bucket`, `bucket_xml` | listings and removals of the S3 protocol for every key and version (feature `object-store`) |
//! | `creation` | creation of an object that must not exist yet (feature `object-store`) |
//! | `issuer` | what whoever gives the right holds: extend, close, settle, end |
//! | `under_way` | what has left and is not answered |
//! | `grant` | the state that all of them look at |
//! | `clock` | monotonic time that counts suspension |
//! | `host_clock` | the clock of the host, which shows that the guest was paused |

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

#[cfg(test)]
mod tests;
