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
//! | `issuer` | the issuer's side of a right: extend, close, settle, end |
//! | `under_way` | effects that have left and are not answered |
//! | `grant` | the state shared by issuer and permits |
//! | `clock` | monotonic time that counts suspension |
//! | `host_clock` | the clock of the host, which shows pauses of the guest |

mod clock;
mod connection;
mod effects;
mod grant;
mod host_clock;
mod issuer;
mod layer;
mod permit;
mod under_way;

pub use clock::{Clock, Moment};
pub use connection::{
    PermittedConnector, PermittedStream, UNACKNOWLEDGED_FOR, Unanswered, deliver_unsent, discard_unsent,
};
pub use grant::NotPermitted;
pub use host_clock::{HostClock, HostClockKind, UNNOTICED_PAUSE};
pub use issuer::{Issuer, Settling};
pub use layer::{Fence, Fenced};
pub use permit::Permit;
pub use under_way::FINISH_WITHIN;

#[cfg(test)]
mod tests;
