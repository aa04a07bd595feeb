//! Deletes exactly what was looked at. Its dependents are nobody's business but its controller's, which keeps
//! a finalizer: no garbage collector is waited for.

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Preconditions, PropagationPolicy},
};
use runtime::{Result, apply::Object, error::Explain as _};

/// Deletes this object, not a later one of the same name. One that is gone already is success.
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
        // Of a conflict, too: it is another object. Who wrote at the same moment wakes the controller again.
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        Err(error) => Err(error).context(format_args!("could not delete {} {name}", K::kind(&()))),
    }
}
