//! Conditions and constraints have several writers, and each writer changes only the writer's own entries of
//! a list. For the API server, the list is a single field. So every change is a read, a change and a write
//! that fails after a concurrent write.

use api::meta::Condition;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{
    client::apply::{FieldManager, Object},
    error::{Explain, Result},
};

/// Maximum conflicts in a row. More than the number of writers: the gardenlet's flow, the gardenlet's care
/// and the garden-controller-manager.
const ATTEMPTS: usize = 5;

/// Changes `status.<field>` (`conditions` or `constraints`) of an object and writes the list if an entry
/// changed. A missing object is success, because no conditions are needed. Returns whether a write happened.
pub async fn change<K: Object>(
    manager: FieldManager,
    api: &Api<K>,
    name: &str,
    field: &str,
    change: impl Fn(&mut Vec<Condition>) + Send + Sync,
) -> Result<bool> {
    let doing = || format!("could not write the {field} of {} {name}", K::kind(&()));
    let mut collision = None;
    for _ in 0..ATTEMPTS {
        let Some(object) = api.get_opt(name).await.context(doing())? else {
            return Ok(false);
        };
        let body = serde_json::to_value(&object)
            .map_err(|e| crate::Error::bug(format!("{} does not serialise", K::kind(&()))).caused_by(e))?;
        let old: Vec<Condition> = match body.pointer(&format!("/status/{field}")) {
            Some(list) => serde_json::from_value(list.clone()).map_err(|e| {
                crate::Error::bug(format!("status.{field} is not a list of conditions")).caused_by(e)
            })?,
            None => Vec::new(),
        };
        let mut new = old.clone();
        change(&mut new);
        if new == old {
            return Ok(false);
        }
        let patch = json!({
            "metadata": {"resourceVersion": object.resource_version(), "uid": object.uid()},
            "status": {field: new},
        });
        let params = PatchParams {
            field_manager: Some(manager.0.to_owned()),
            ..PatchParams::default()
        };
        match api.patch_status(name, &params, &Patch::Merge(patch)).await {
            Ok(_) => return Ok(true),
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(false),
            Err(kube::Error::Api(status)) if status.is_conflict() => {
                collision = Some(kube::Error::Api(status));
            }
            Err(error) => return Err(error).context(doing()),
        }
    }
    collision.map_or(Ok(false), |error| Err(error).context(doing()))
}
