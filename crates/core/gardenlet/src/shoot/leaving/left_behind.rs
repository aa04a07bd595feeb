//! External resources that a forced deletion leaves behind, reported in `lastErrors`, in Events of the Shoot
//! and in the log.
//!
//! The write that begins a forced deletion records the leftovers of a move. After that write the status no
//! longer shows the move, and deleted machines look like machines that were never restored.

use api::gardencore::Shoot;
use kube::ResourceExt;
use parts::{machines_lost_by_force, tenant};
use placement::{Journey, Operation, journey, last_errors::named_left_behind, names};
use runtime::Result;
use tracing::warn;

use super::leave;
use crate::Context;

/// Reason of the Events.
const LEFT_BEHIND: &str = "LeftBehind";

/// Resources that a forced deletion cannot remove: the extension objects of the former seed have released the
/// external resources.
pub(crate) async fn of_move(context: &Context, shoot: &Shoot, operation: Operation) -> Result<Vec<String>> {
    let id = names::recorded_technical_id(shoot);
    let Some(id) = id.filter(|_| operation == Operation::ForceDelete && journey(shoot) != Journey::Settled)
    else {
        return Ok(Vec::new());
    };
    let residency = leave::residency(context, id.to_owned(), tenant(shoot));
    let mut left = vec![outside(id)];
    left.extend(machines_lost_by_force(&context.garden, &residency, shoot).await?);
    Ok(left)
}

/// Reports the resources that the deletion leaves behind.
pub(crate) async fn report(context: &Context, begun: &Shoot, left: &[String]) {
    for what in left {
        warn!(shoot = begun.name_any(), what, "left behind by a forced deletion");
    }
    context.garden_events.warnings(begun, LEFT_BEHIND, left).await;
}

/// Reports all leftovers again at the end of a forced deletion, because `lastErrors` is deleted with the
/// Shoot. Events from the beginning may be gone after an hour.
pub(crate) async fn report_at_end(context: &Context, deleted: &Shoot, operation: Operation) {
    if operation == Operation::ForceDelete {
        let left = named_left_behind(deleted);
        context.garden_events.warnings(deleted, LEFT_BEHIND, &left).await;
    }
}

fn outside(id: &str) -> String {
    format!(
        "The deletion was forced in the middle of a move, when no seed held what the shoot has outside: look in the account of the \
         provider for networks, machines and load balancers of {id}, and in DNS for the names of the shoot, and delete them by hand. \
         Backups in both buckets are deleted after their grace period. A BackupEntry whose seed is lost stays, and Event \
         BackupEntryWaitsForSeed of the entry names the bucket"
    )
}
