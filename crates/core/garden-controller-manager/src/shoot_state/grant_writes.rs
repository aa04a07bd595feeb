//! Writes the ClusterRole and the RoleBinding of a seed for one namespace.

use k8s_openapi::api::rbac::v1::{ClusterRole, RoleBinding};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Preconditions},
};
use runtime::{Result, client::apply::Object, error::Explain as _};

use super::grants::{Grant, NamespaceMeta, Rights, binding, decode, role};
use crate::MANAGER;

/// Grants exactly these rights.
pub(super) async fn grant(
    bindings: &Api<RoleBinding>,
    roles: &Api<ClusterRole>,
    seed: &str,
    namespace: &NamespaceMeta,
    rights: &Rights,
) -> Result<()> {
    write(roles, &decode(role(seed, namespace, rights))?).await?;
    write(bindings, &decode(binding(seed, &namespace.name_any()))?).await
}

/// Applies the object, and replaces an object of this name that no write can make equal to `wanted`.
async fn write<K: Grant + Object>(api: &Api<K>, wanted: &K) -> Result<()> {
    let Err(error) = MANAGER.apply(api, wanted).await else {
        return Ok(());
    };
    if !delete_unlike(api, wanted).await? {
        return Err(error);
    }
    MANAGER.apply(api, wanted).await.map(drop)
}

/// Deletes an object of this name that no write can make equal to `wanted`: Kubernetes lets no user change a
/// roleRef, and policy `garden-controller-manager-role` refuses labels and aggregations of other writers.
/// Returns whether such an object was there.
async fn delete_unlike<K: Grant + Object>(api: &Api<K>, wanted: &K) -> Result<bool> {
    let (kind, name) = (K::kind(&()), wanted.name_any());
    let found = api.get_opt(&name).await;
    let found = found.context(format_args!("could not read {kind} {name}"))?;
    let Some(found) = found.filter(|found| found.is_unlike(wanted)) else {
        return Ok(false);
    };
    let namespace = found.namespace().unwrap_or_default();
    tracing::warn!(
        namespace,
        name,
        kind = &*kind,
        "an object of a reserved name is replaced"
    );
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: found.uid(),
            resource_version: found.resource_version(),
        }),
        ..DeleteParams::default()
    };
    let deleted = api.delete(&name, &params).await;
    deleted.context(format_args!("could not delete {kind} {name}"))?;
    Ok(true)
}
