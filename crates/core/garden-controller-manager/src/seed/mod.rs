//! The life cycle of seeds in the garden.
//!
//! A gardenlet renews its seed's Lease. When the gardenlet falls silent, this controller reports that in the
//! Seed's condition `GardenletReady`; the recovered gardenlet sets the condition to `True`. Silence is
//! measured with this process's own monotonic clock, from the last observed change of the Lease: clocks of
//! two machines are never compared. After a second period of silence the health conditions of the seed's
//! Shoots turn `Unknown` as well.
//!
//! A finalizer of this process keeps a Seed in deletion while Shoots or BackupEntries need the Seed.
//!
//! The condition `OwnerServersAgree` warns of Seeds with different DNS servers for the owner records of the
//! same zone.
//!
//! | file | purpose |
//! |---|---|
//! | `controller`, `liveness` | silence of a seed's Lease, and the conditions of the Seed |
//! | `shoot_conditions` | conditions of Shoots in a silent seed |
//! | `condition_metrics` | conditions of Seeds as a metric |
//! | `protection` | the finalizer `core.gardener.cloud/seed`: what a Seed in deletion waits for |
//! | `namespace` | the namespace of the Seed in the garden |
//! | `owner_servers_agree` | the condition `OwnerServersAgree`: the decision, written by `controller` |

mod condition_metrics;
mod controller;
mod liveness;
mod namespace;
mod owner_servers_agree;
mod protection;
mod shoot_conditions;

use futures::future::join;

pub use liveness::{Liveness, Observations};
pub use shoot_conditions::report_unknown;

/// Runs the controllers until shutdown.
pub async fn run(context: crate::Context) {
    join(controller::run(context.clone()), protection::run(context)).await;
}
