//! Who owns the shoot, asked while etcd serves (R17-13, R17-14, R17-40..49; docs/understand/ownership.md is
//! the protocol).
//!
//! Off unless its flags are given. etcd then listens on loopback and clients pass the gate in this process.
//!
//! What this promises
//! - No byte passes the gate, in either direction, without a valid permit of ownership at that moment: also
//!   in a process that was stopped and woken.
//! - What was lost stays shut: the seal is on the disk before the final snapshot begins, and no restart opens
//!   the gate again in that epoch.
//! - Shutting the gate and 503 wait for neither bucket nor disk (R17-44). SIGTERM to etcd does not where
//!   nobody is confirmed; after a loss it waits for the final snapshot, and for a bucket that does not answer
//!   no longer than the fence.
//!
//! | file | what |
//! |---|---|
//! | `flags` | the command line, checked |
//! | `guardian`, `sealing` | asks, and does what follows by the crate `ownership` (`guard`); what follows a loss |
//! | `gate`, `pipe` | the way of clients to etcd |
//! | `events` | the etcd with the Events, behind a second gate |
//! | `marker` | the seal on the volume |
//! | `witness` | the bucket as second witness |
//! | `etcd_process` | SIGTERM to etcd |
//! | `told` | what probes and the relay are told |

mod etcd_process;
mod events;
mod flags;
mod gate;
mod guardian;
mod marker;
mod pipe;
mod sealing;
mod told;
mod witness;

pub use events::EventsTarget;
pub use flags::{OwnerArgs, OwnerCheck};
pub use gate::{Gate, GateTarget};
pub use guardian::{Desk, Guardian, SettingsUnder};
pub use marker::Marker;
pub use told::Told;
