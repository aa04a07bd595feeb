//! Reports in the status of a Shoot outside of a flow.

use std::time::Duration;

use api::gardencore::Shoot;
use kube::{Api, ResourceExt as _};
use runtime::{Result, client::Cluster as _};
use serde_json::Value;

use crate::context::{Context, MANAGER};

/// Requeue interval after a concurrent write to the Shoot. Long enough for the cache to receive the write.
pub(crate) const CONFLICT_REQUEUE: Duration = Duration::from_millis(100);

/// Writes a report about this version of the Shoot into the status; `None` writes no report. `false` after a
/// concurrent write. Then the caller requeues after [`CONFLICT_REQUEUE`]: the concurrent write wakes no
/// controller if the write changes only conditions, errors or progress.
///
/// # Errors
/// The garden does not answer, or refuses the write.
pub(crate) async fn write_report(context: &Context, shoot: &Shoot, report: Option<Value>) -> Result<bool> {
    let Some(report) = report else {
        return Ok(true);
    };
    let api: Api<Shoot> = context.garden.namespaced(&shoot.namespace().unwrap_or_default());
    let written = MANAGER.try_merge_status_of(&api, shoot, &report).await?;
    Ok(written.is_some())
}
