//! The annotation `gardener.cloud/operation` of a Shoot, by which a user requests an operation.

use std::sync::Arc;

use api::{constants::OPERATION, gardencore::Shoot};
use kube::{Api, ResourceExt};
use runtime::{Result, client::Cluster as _};
use serde_json::json;

use crate::context::{Context, MANAGER};

/// Removes the annotation that requests an operation, after the start of the operation was recorded. A
/// request during the operation is a request for a further run.
///
/// `None` after a concurrent write. Then the status has the start, and the Shoot still has the annotation:
/// the next pass records the start again, and removes the annotation.
///
/// `shoot`: the version on which the removal was decided. A write that ignored concurrent writes would hide
/// the removal of the finalizer, and would remove a later request.
///
/// # Errors
/// The garden does not answer, or refuses the write.
pub(crate) async fn take(context: &Context, shoot: Arc<Shoot>) -> Result<Option<Arc<Shoot>>> {
    if !shoot.annotations().contains_key(OPERATION) {
        return Ok(Some(shoot));
    }
    let api: Api<Shoot> = context.garden.namespaced(&shoot.namespace().unwrap_or_default());
    let taken = json!({"metadata": {"annotations": {OPERATION: null}}});
    let taken = MANAGER.try_merge_of(&api, shoot.as_ref(), &taken).await?;
    Ok(taken.map(Arc::new))
}
