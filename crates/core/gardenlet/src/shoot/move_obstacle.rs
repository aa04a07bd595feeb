//! The obstacle to a move: a report in the Shoot, and the error of the attempt.

use std::time::Duration;

use api::{constants::condition::READY_FOR_MIGRATION, gardencore::Shoot};
use placement::{approval, is_move_wanted};
use runtime::{Error, Result, clock};

use super::{
    operation::{report::write_report, status},
    watched::ready_for_migration,
};
use crate::context::Context;

/// Requeue interval for a Shoot that waits for its destination. A change of the constraint wakes the
/// controller earlier.
const WAIT_FOR_DESTINATION: Duration = Duration::from_secs(60);

/// Reports in `lastErrors` why a move cannot begin. Such a move changes no further field (I8). `false` after
/// a concurrent write.
///
/// # Errors
/// The garden does not answer, or refuses the write.
pub(super) async fn report(context: &Context, shoot: &Shoot) -> Result<bool> {
    if !is_move_wanted(shoot) || approval(shoot).is_some() {
        return Ok(true);
    }
    let constraint = shoot
        .status
        .as_ref()
        .and_then(|status| status.constraint(READY_FOR_MIGRATION));
    let obstacle =
        constraint.and_then(|constraint| status::move_cannot_begin(shoot, constraint, &clock::now_k8s()));
    write_report(context, shoot, obstacle).await
}

/// The error of a move that waits for its approval (R7-46, I8).
pub(super) fn not_approved(shoot: &Shoot) -> Error {
    let why = match ready_for_migration(shoot) {
        Some((false, message)) => {
            format!("destination Seed is not available to host the control plane: {message}")
        }
        _ => "waiting for confirmation that destination Seed is available (constraint ReadyForMigration, status.migration)"
            .to_owned(),
    };
    Error::not_ready(WAIT_FOR_DESTINATION, why)
}
