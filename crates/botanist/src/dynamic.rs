//! Objects of the seed whose kind is known by name only: of extensions, or of a group that a seed need not serve.

use std::{sync::Mutex, time::Duration};

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PropagationPolicy},
    core::ApiResource,
    runtime::wait::await_condition,
};
use runtime::{Cluster, Error, Result, error::Context, wait::Look};
use serde_json::{Value, json};

use crate::{Botanist, FIELD_MANAGER};

impl Botanist {
    /// The objects of a kind in the shoot's namespace.
    pub(crate) fn any_api(&self, kind: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.seed.client().clone(), &self.namespace, kind)
    }
}

/// All objects of a kind. Where the server does not know the kind there are none.
pub(crate) async fn list(api: &Api<DynamicObject>, kind: &ApiResource) -> Result<Vec<DynamicObject>> {
    match api.list(&ListParams::default()).await {
        Ok(list) => Ok(list.items),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error).context(format_args!("could not list objects of kind {}", kind.kind)),
    }
}

/// Merges fields into an object. That it is gone is success.
pub(crate) async fn merge(
    api: &Api<DynamicObject>,
    kind: &ApiResource,
    name: &str,
    body: &Value,
) -> Result<()> {
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.0.to_owned()),
        ..PatchParams::default()
    };
    match api.patch(name, &params, &Patch::Merge(body)).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => other
            .context(format_args!("could not change {} {name}", kind.kind))
            .map(|_| ()),
    }
}

/// Deletes an object. That it is gone is success.
pub(crate) async fn delete(
    api: &Api<DynamicObject>,
    kind: &ApiResource,
    name: &str,
    dependents: Option<PropagationPolicy>,
) -> Result<()> {
    let params = DeleteParams {
        propagation_policy: dependents,
        ..DeleteParams::default()
    };
    match api.delete(name, &params).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => other
            .context(format_args!("could not delete {} {name}", kind.kind))
            .map(|_| ()),
    }
}

/// Takes all finalizers away, so that nobody acts on the deletion any more (RX-22).
pub(crate) async fn strip_finalizers(
    api: &Api<DynamicObject>,
    kind: &ApiResource,
    object: &DynamicObject,
) -> Result<()> {
    if object.finalizers().is_empty() {
        return Ok(());
    }
    merge(
        api,
        kind,
        &object.name_any(),
        &json!({"metadata": {"finalizers": null}}),
    )
    .await
}

/// Watches one object until `look` says so, like `runtime::wait::until` for kinds that are known at compile time.
pub(crate) async fn until(
    api: Api<DynamicObject>,
    name: &str,
    timeout: Duration,
    look: impl FnMut(Option<&DynamicObject>) -> Look + Send,
) -> Result<()> {
    let last = Mutex::new((look, Look::Wait("it was not seen yet".into())));
    let condition = |object: Option<&DynamicObject>| {
        let Ok(mut last) = last.lock() else { return true };
        let seen = (last.0)(object);
        let stop = !matches!(seen, Look::Wait(_));
        last.1 = seen;
        stop
    };
    let ended = tokio::time::timeout(timeout, await_condition(api, name, condition)).await;
    let (_, seen) = last
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    match (ended, seen) {
        (_, Look::Fail(error)) => Err(error),
        (Ok(watched), Look::Done) => watched.map(|_| ()).map_err(Error::from),
        (Ok(watched), Look::Wait(why)) => {
            Err(watched.err().map_or_else(|| Error::transient(why), Error::from))
        }
        (Err(_), Look::Done) => Ok(()),
        (Err(_), Look::Wait(why)) => Err(Error::not_ready(
            Duration::from_secs(5),
            format!("{name} was not ready within {timeout:?}: {why}"),
        )),
    }
}

/// Waits until an object is gone.
pub(crate) async fn until_gone(api: Api<DynamicObject>, name: &str, timeout: Duration) -> Result<()> {
    until(api, name, timeout, |object| match object {
        None => Look::Done,
        Some(object) if object.metadata.deletion_timestamp.is_none() => {
            Look::Wait("it is not being deleted".into())
        }
        Some(object) => Look::Wait(format!("it waits for {}", object.finalizers().join(", "))),
    })
    .await
}
