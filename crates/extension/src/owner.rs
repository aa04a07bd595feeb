//! Whose the shoot is, asked for as long as work for it lasts (R17-13, R17-14, R17-60..62; docs/ownership.md is the protocol).
//!
//! Off unless the Seed in the Cluster says otherwise; then nothing of this is done or kept.
//!
//! What this promises
//! - Whatever an actuator does for a shoot, but for `migrate`, is done under the right of its owner besides that of the lock: it
//!   begins after an authority of the zone, or the process beside etcd, has said that this seed has the shoot in its present
//!   epoch, and it is dropped, with its sleeps and its requests, when that is not so any more.
//! - One check for a shoot and epoch in a process, whatever works for it at the same time. Nobody asks while nobody works.
//! - What was written in another epoch than the shoot is in is not taken for what is wanted now.
//! - What was lost stays lost in that epoch for as long as the process lives: nobody is asked again.
//!
//! | file | what |
//! |---|---|
//! | `scope` | for which operations the right of an owner counts |
//! | `epoch` | whether an object is of the present epoch |
//! | `asking` | who is asked, and about what (crate `owner-checks`) |
//! | `book` | which shoots are asked for, and which were lost |
//! | `tenure` | the right of an owner, for who works under it |
//! | `checks` | the checks of a process |

mod asking;
mod book;
mod checks;
mod epoch;
mod scope;
mod tenure;

pub use checks::OwnerChecks;
pub(crate) use {
    asking::{Ask, Begun},
    checks::Patience,
    epoch::written_in,
    scope::concerns,
    tenure::{Refusal, Tenure},
};
