//! Whose the shoot is, asked for as long as work for it lasts (R17-13, R17-14, R17-60..62;
//! docs/understand/ownership.md is the protocol).
//!
//! Off unless the Seed in the Cluster says otherwise; then nothing of this is done or kept.
//!
//! What this promises
//! - Whatever an actuator does for a shoot, but for `migrate`, is done under the right of its owner besides
//!   that of the lock: it begins after an authority of the zone, or the process beside etcd, has said that
//!   this seed has the shoot in its present epoch, and it is dropped, with its sleeps and its requests, when
//!   that is not so any more.
//! - One check for a shoot and epoch in a process, whatever works for it at the same time. Nobody asks while
//!   nobody works.
//! - What was written in another epoch than the shoot is in is not taken for what is wanted now.
//! - What was lost stays lost in that epoch for as long as the process lives: nobody is asked again.
//!
//! The checks themselves are those of crate `owner-checks`, which other processes share.
//!
//! | file | what |
//! |---|---|
//! | `scope` | for which operations the right of an owner counts |
//! | `epoch` | whether an object is of the present epoch |
//! | `checks` | the checks of a process, and what they have refused |

mod checks;
mod epoch;
mod scope;

pub use checks::OwnerChecks;
pub(crate) use {epoch::written_in, scope::concerns};
