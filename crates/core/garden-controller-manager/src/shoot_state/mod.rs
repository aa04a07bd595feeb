//! Creates and keeps the ShootState of each Shoot, and grants access only to the seed that owns the shoot.
//!
//! The ShootState is created empty: the owning seed fills and updates it, and no seed may create or delete a
//! ShootState. A restore reads the ShootState until its very end. Suppose that the ShootState were lost
//! before the restore is recorded as succeeded. An error in between would then leave a shoot that cannot be
//! restored any more (gardener/gardener#11222). Guarantees: the ShootState exists as long as its Shoot. Only
//! the seed in `status.seedName` can read its content, no other seed and no user. The keys for a preparation
//! are in an object of their own, which goes with the grant. A move cannot lose the ShootState. This process
//! watches metadata only, so it holds no keys.
//!
//! | file | content |
//! |---|---|
//! | `making` | creates missing ShootStates |
//! | `controller` | releases a ShootState in deletion; `protection`: whether the object is still needed |
//! | `owner` | whether a ShootState belongs to the Shoot of the same name |
//! | `rights` | the rights of seeds, by Shoot and by BackupEntry |
//! | `grants` | the ClusterRole and the RoleBinding of a grant; `grant_writes` writes both |
//! | `named_secrets` | the Secrets that the owner of a Shoot reads |
//! | `bounded` | the number of InternalSecrets that a ClusterRole names |
//! | `withdrawal` | the end of all grants of a seed |
//! | `ended_preparations` | deletes the keys of a preparation whose grant has ended |
//! | `seen` | the cached part of a ShootState |

mod bounded;
mod controller;
mod ended_preparations;
mod grant_writes;
mod grants;
mod making;
mod named_secrets;
mod owner;
mod protection;
mod rights;
mod seen;
mod withdrawal;

pub use protection::{FINALIZER, needs_protection};

use crate::Context;

/// Runs the controllers until shutdown: by Shoot, for missing objects and for rights, and by ShootState, for
/// deletions.
pub async fn run(context: Context) {
    futures::join!(
        making::run(context.clone()),
        rights::run(context.clone()),
        controller::run(context)
    );
}
