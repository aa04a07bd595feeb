//! Objects of the seed whose kind is known only at run time: of extensions, or of an API group that a seed
//! may not serve.

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PropagationPolicy},
    core::{ApiResource, Request},
};
use runtime::{Result, client::Cluster, error::Explain};
use serde_json::{Value, json};

use crate::{FIELD_MANAGER, Residency};

impl Residency {
    /// The objects of a kind in the shoot's namespace.
    pub(crate) fn any_api(&self, kind: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.seed.client().clone(), &self.namespace, kind)
    }
}

/// All objects of a kind. Empty when the server does not know the kind.
pub(crate) async fn list(api: &Api<DynamicObject>, kind: &ApiResource) -> Result<Vec<DynamicObject>> {
    match api.list(&ListParams::default()).await {
        Ok(list) => Ok(list.items),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error).context(format_args!("could not list objects of kind {}", kind.kind)),
    }
}

/// Merges fields into an object. A missing object is a success.
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

/// Deletes an object. A missing object is a success. The answer, which may be the object, is not parsed:
/// users of a shoot create objects that are too large or too deep to parse.
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
    let asked = match Request::new(api.resource_url()).delete(name, &params) {
        Ok(request) => api.clone().into_client().request_text(request).await,
        Err(error) => Err(kube::Error::BuildRequest(error)),
    };
    match asked {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => other
            .context(format_args!("could not delete {} {name}", kind.kind))
            .map(drop),
    }
}

/// Removes all finalizers, so that no controller acts on the deletion any more (RX-22).
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
