//! May a move begin, whereto, and with which specification? The constraint `ReadyForMigration` and
//! `status.migration` of a Shoot whose `spec.seedName` and `status.seedName` differ.
//!
//! Promises: before a move is approved nothing but the constraint is written (I8). `True` means that the
//! destination could take the shoot now, and that the move can end there; `False` names what is in the way
//! and what to do. Constraint and approval are one write, on the version of the Shoot that was judged: no
//! approval lands on a newer specification. A seed acts on no move that `status.migration` does not name. The
//! constraint goes when no move is wanted any more, the approval when the move has ended or was called off;
//! both are worked out anew whenever the Shoot or a seed changes.
//!
//! | file | what |
//! |---|---|
//! | `preflight` | the obstacles, in the order in which people mend them |
//! | `extensions` | what the shoot needs of providers, and what the destination has |
//! | `seed_defaults` | what a seed puts into a shoot and another one must put there too |
//! | `holds` | what holds back a planned move and no takeover: the list of the next rows |
//! | `source_entry` | whether the source BackupEntry of the move before is gone |
//! | `source` | what the gardenlet of the source reports that would stop a move half-way |
//! | `eligibility` | whether the destination may host the shoot: taints, selectors, versions of gardenlets |
//! | `pause` | whether the Shoot or one of its seeds holds back new work |
//! | `pending_edit` | whether the source has reconciled the present specification |
//! | `force` | which holds a request by force overrides |
//! | `forced_move` | the planned move as the answer to a request by force |
//! | `capacity` | how many shoots a seed may have |
//! | `dry_run` | the same judgement before any edit, asked for by annotation |
//! | `crowd` | how many may be on their way to a seed at a time |
//! | `approval` | what becomes of `status.migration`, and when a shoot is handed on |
//! | `reading` | what a verdict needs is read, and what follows is written on exactly that |
//! | `change` | all of it as one conditional write |
//! | `former_seeds` | entries of seeds that are gone |

mod approval;
mod capacity;
mod change;
mod controller;
mod crowd;
mod dry_run;
mod eligibility;
mod extensions;
mod force;
mod forced_move;
mod former_seeds;
mod holds;
mod pause;
mod pending_edit;
mod preflight;
mod reading;
mod seed_defaults;
mod source;
mod source_entry;

pub(crate) use approval::travels;
pub use approval::{Decision, HandOn, decide};
pub use change::{Change, change};
pub use controller::run;
pub use extensions::Extensions;
pub(crate) use forced_move::{ForcedMove, awaits_force, forced_move};
pub use preflight::{ALLOW_DIFFERENT_PROVIDER, Move, Verdict, judge, wanted_move};
pub(crate) use reading::{read, write};
