//! Finalizers, set and removed without touching those of others.

use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{
    apply::Object,
    error::{Context, Result},
};

/// Makes sure that the object carries the finalizer. Does nothing where it does.
pub async fn ensure<K: Object>(api: &Api<K>, object: &K, finalizer: &str) -> Result<()> {
    if object.finalizers().iter().any(|f| f == finalizer) {
        return Ok(());
    }
    let mut finalizers = object.finalizers().to_vec();
    finalizers.push(finalizer.to_owned());
    write(api, object, &finalizers).await
}

/// Takes the finalizer away. Does nothing where it is not, or where the object is gone.
pub async fn remove<K: Object>(api: &Api<K>, object: &K, finalizer: &str) -> Result<()> {
    if !object.finalizers().iter().any(|f| f == finalizer) {
        return Ok(());
    }
    let finalizers: Vec<_> = object
        .finalizers()
        .iter()
        .filter(|f| *f != finalizer)
        .cloned()
        .collect();
    write(api, object, &finalizers).await
}

/// Takes all finalizers away: for objects whose own controller must not act any more (RX-22).
pub async fn remove_all<K: Object>(api: &Api<K>, object: &K) -> Result<()> {
    if object.finalizers().is_empty() {
        Ok(())
    } else {
        write(api, object, &[]).await
    }
}

/// The resourceVersion makes two writers of the list collide instead of overwriting each other.
async fn write<K: Object>(api: &Api<K>, object: &K, finalizers: &[String]) -> Result<()> {
    let name = object.name_any();
    let body = json!({"metadata": {"finalizers": finalizers, "resourceVersion": object.resource_version(), "uid": object.uid()}});
    match api
        .patch(&name, &PatchParams::default(), &Patch::Merge(body))
        .await
    {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(error).context(format_args!(
            "could not write the finalizers of {} {name}",
            K::kind(&())
        )),
    }
}
