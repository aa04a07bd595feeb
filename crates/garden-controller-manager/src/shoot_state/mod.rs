//! Makes the ShootState of each Shoot, keeps it, and takes the carried keys out of it when they are not needed any more.
//!
//! It is made empty: the seed that a shoot is on fills it, and no seed may make or delete one. A restore reads it until its
//! very end. Were it gone before the restore is recorded as succeeded, an error in between would leave a shoot that can
//! never be restored again (gardener/gardener#11222). Promises: it is there as long as its Shoot; what it holds stays from
//! the beginning of a migration to the recorded success of the restore that follows; after that the keys are in no garden.

mod controller;
mod making;
mod protection;

pub use protection::{FINALIZER, is_spent, needs_protection};

use crate::Context;

/// Runs both controllers until shutdown: one by Shoot, for what is missing, and one by ShootState, for what is deleted.
pub async fn run(context: Context) {
    futures::join!(making::run(context.clone()), controller::run(context));
}
