//! Makes the ShootState of each Shoot, keeps it, and lets the seed that has the shoot get at it, and no
//! other.
//!
//! It is made empty: the seed that a shoot is on fills it and keeps it up to date, and no seed may make or
//! delete one. A restore reads it until its very end. Were it gone before the restore is recorded as
//! succeeded, an error in between would leave a shoot that can never be restored again
//! (gardener/gardener#11222). Promises: it is there as long as its Shoot; what it holds is readable by the
//! seed in `status.seedName`, and by no other seed and no user; a move cannot lose it. This process watches
//! metadata only: it holds nobody's keys.

mod controller;
mod making;
mod protection;
mod rights;
mod seen;

pub use protection::{FINALIZER, needs_protection};

use crate::Context;

/// Runs the controllers until shutdown: by Shoot, for what is missing and for rights, and by ShootState, for
/// what is deleted.
pub async fn run(context: Context) {
    futures::join!(
        making::run(context.clone()),
        rights::run(context.clone()),
        controller::run(context)
    );
}
