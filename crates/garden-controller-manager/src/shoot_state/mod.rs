//! Keeps a ShootState while a move needs it, by a finalizer of its own.
//!
//! A restore reads the ShootState until its very end. Were it deleted before the restore is recorded as succeeded, an
//! error in between would leave a shoot that can never be restored again (gardener/gardener#11222). The gardenlet of the
//! destination asks for the deletion; this controller lets it happen only when the record is there.

mod controller;
mod protection;

pub use controller::run;
pub use protection::{FINALIZER, needs_protection};
