//! Decides whether a move may begin, its destination and its specification: the constraint
//! `ReadyForMigration` and `status.migration` of a Shoot whose `spec.seedName` and `status.seedName` differ.
//!
//! Guarantees: before a move is approved only the constraint is written (I8). `True` means that the
//! destination could take the shoot now, and that the move can end there; `False` names the obstacle and the
//! remedy. Constraint and approval are a single write, conditional on the judged version of the Shoot: no
//! approval lands on a newer specification. A seed executes no move that `status.migration` does not name.
//! The constraint is removed when no move is requested any more, the approval when the move has ended or was
//! cancelled. Both are computed again whenever the Shoot or a seed changes.
//!
//! | file | content |
//! |---|---|
//! | `preflight` | the obstacles, in the order of the repair by users, and the passing obstacles |
//! | `extensions` | the providers that the shoot needs, and the extensions of the destination |
//! | `seed_defaults` | the values from a seed that the destination must provide equally |
//! | `planned_move_checks` | the list of the checks that a takeover skips: the rows up to `pending_edit` |
//! | `former_source_entry` | whether the source BackupEntry of the move before is gone |
//! | `source` | the reports of the source's gardenlet that would stop a move half-way |
//! | `source_bucket` | whether the bucket with the backups of the shoot is ready |
//! | `eligibility` | whether the destination may host the shoot: taints, selectors, versions of gardenlets |
//! | `pause` | whether the Shoot or a seed of the move holds back new work |
//! | `pending_edit` | whether the source has reconciled the present specification |
//! | `force` | the checks that a request by force overrides |
//! | `forced_move` | the planned move as the answer to a request by force |
//! | `capacity` | how many shoots a seed may have |
//! | `dry_run` | the same verdict before any edit, requested by annotation |
//! | `migration_slots` | how many shoots may be on their way to a seed at a time |
//! | `slot_shares` | the shares of sources and projects in these slots |
//! | `slot_uses` | the changes of a Shoot that leave a slot to a waiting shoot |
//! | `approval` | the content of `status.migration`, and the hand-on of a shoot |
//! | `reading` | reads the inputs of a verdict, and writes the result on exactly the read version |
//! | `returning` | whether a former seed may be the destination |
//! | `change` | the result as a single conditional write |
//! | `too_large` | the verdict if the API server refuses the approval for the size of the Shoot |
//! | `former_seeds` | entries of deleted Seeds |
//! | `move_metrics` | wanted moves, takeovers and former seeds as metrics |
//! | `controller` | the reconcile loop |

mod approval;
mod capacity;
mod change;
mod controller;
mod dry_run;
mod eligibility;
mod extensions;
mod force;
mod forced_move;
mod former_seeds;
mod former_source_entry;
mod migration_slots;
mod move_metrics;
mod pause;
mod pending_edit;
mod planned_move_checks;
mod preflight;
mod reading;
mod returning;
mod seed_defaults;
mod slot_shares;
mod slot_uses;
mod source;
mod source_bucket;
mod too_large;

pub(crate) use approval::travels;
pub use approval::{Decision, HandOn, decide};
pub use change::{Change, change};
pub use controller::run;
pub(crate) use dry_run::{is_name as is_seed_name, judge_unrequested};
pub use extensions::Extensions;
pub(crate) use forced_move::{ForcedMove, awaits_force, forced_move};
pub use preflight::{ALLOW_DIFFERENT_PROVIDER, Move, Obstacle, Verdict, judge, wanted_move};
pub(crate) use reading::{cloud_profile, read, write};
