//! The annotation `gardener.cloud/operation` of a Shoot, by which a user requests an operation.

use std::sync::Arc;

use api::{constants::OPERATION, gardencore::Shoot};
use kube::{Api, ResourceExt};
use runtime::{Result, client::Cluster as _};
use serde_json::json;

use crate::context::{Context, MANAGER};

/// Removes the annotation that requests an operation, as the operation begins now. A request during the
/// operation is a request for a further run. `None` after a concurrent write: the next pass decides again.
///
/// The first write of the status is bound to the version of the Shoot that is returned here. A write that
/// ignored concurrent writes would hide the removal of the finalizer from the first write of the status.
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
