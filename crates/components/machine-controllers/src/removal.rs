//! Deletes exactly the object that was read. The controller of the object deletes the dependents and keeps a
//! finalizer, so that no deletion waits for a garbage collector.

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Preconditions, PropagationPolicy},
};
use runtime::{Result, client::apply::Object, error::Explain as _};

/// Deletes this object, not a later object of the same name. An object that is gone already is success.
pub async fn delete<K: Object>(api: &Api<K>, object: &K) -> Result<()> {
    let exactly = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        preconditions: Some(Preconditions {
            uid: object.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    let name = object.name_any();
    match api.delete(&name, &exactly).await {
        Ok(_) => Ok(()),
        // A conflict is success, too: the name belongs to a new object, and a concurrent write wakes the
        // controller again.
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        Err(error) => Err(error).context(format_args!("could not delete {} {name}", K::kind(&()))),
    }
}
