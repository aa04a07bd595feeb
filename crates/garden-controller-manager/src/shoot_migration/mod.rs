//! May a move begin? The constraint `ReadyForMigration` of a Shoot whose `spec.seedName` and `status.seedName` differ.
//!
//! Promises: nothing but the constraint is written (I8). `True` means that the destination could take the shoot now;
//! `False` names what is in the way and what to do. The gardenlet of the source waits for `True`. The constraint goes when
//! no move is wanted any more, and is worked out anew whenever the Shoot or a seed changes.

mod controller;
mod preflight;

pub use controller::run;
pub use preflight::{ALLOW_DIFFERENT_PROVIDER, Facts, Verdict, judge, wanted_move};
