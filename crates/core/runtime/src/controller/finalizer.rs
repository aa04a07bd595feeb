//! Sets and removes a finalizer without touching foreign finalizers.

use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{
    client::apply::Object,
    error::{Explain, Result},
};

/// Adds the finalizer to the object. Returns the object as written, or `None` without a write.
pub async fn ensure<K: Object>(api: &Api<K>, object: &K, finalizer: &str) -> Result<Option<K>> {
    if object.finalizers().iter().any(|f| f == finalizer) {
        return Ok(None);
    }
    let mut finalizers = object.finalizers().to_vec();
    finalizers.push(finalizer.to_owned());
    write(api, object, &finalizers).await
}

/// Removes the finalizer. No effect without the finalizer, or when the object is gone.
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
    write(api, object, &finalizers).await.map(drop)
}

/// As [`remove`]; false where a concurrent write has changed the object since the read.
pub async fn try_remove<K: Object>(api: &Api<K>, object: &K, finalizer: &str) -> Result<bool> {
    let kept: Vec<_> = object
        .finalizers()
        .iter()
        .filter(|f| *f != finalizer)
        .cloned()
        .collect();
    if kept.len() == object.finalizers().len() {
        return Ok(true);
    }
    match patch(api, object, &kept).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(true),
        Err(kube::Error::Api(status)) if status.is_conflict() => Ok(false),
        Err(error) => Err(error).context(format_args!(
            "could not write the finalizers of {} {}",
            K::kind(&()),
            object.name_any()
        )),
    }
}

/// Removes all finalizers: for objects whose controller must not act any more (RX-22).
pub async fn remove_all<K: Object>(api: &Api<K>, object: &K) -> Result<()> {
    if object.finalizers().is_empty() {
        Ok(())
    } else {
        write(api, object, &[]).await.map(drop)
    }
}

/// With the resourceVersion, two writers of the list conflict instead of overwriting each other.
async fn write<K: Object>(api: &Api<K>, object: &K, finalizers: &[String]) -> Result<Option<K>> {
    match patch(api, object, finalizers).await {
        Ok(written) => Ok(Some(written)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(error).context(format_args!(
            "could not write the finalizers of {} {}",
            K::kind(&()),
            object.name_any()
        )),
    }
}

async fn patch<K: Object>(api: &Api<K>, object: &K, finalizers: &[String]) -> Result<K, kube::Error> {
    let body = json!({"metadata": {"finalizers": finalizers, "resourceVersion": object.resource_version(), "uid": object.uid()}});
    api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(body))
        .await
}
