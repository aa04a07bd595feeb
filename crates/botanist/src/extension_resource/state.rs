//! Puts the state of an extension object from the ShootState into its status (RX-12, RX-31, RX-33).

use api::{
    gardencore::{ExtensionResourceState, ShootState},
    meta::{CrossVersionObjectReference, ResourceData},
};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use runtime::{Cluster, Result, error::Context};
use serde_json::json;

use super::ShootExtension;
use crate::{Botanist, FIELD_MANAGER, configuration_problem};

/// Puts the state in, unless the object has one: that came from an earlier run, or is newer.
pub(super) async fn put_in<K: ShootExtension>(botanist: &Botanist, api: &Api<K>, object: &K) -> Result<()> {
    let status = object.default_status();
    if status.is_some_and(|status| status.state.is_some() || !status.resources.is_empty()) {
        return Ok(());
    }
    let Some(shoot_state) = botanist.shoot_state().await? else {
        return Ok(());
    };
    let Some(entry) = entry_for(&shoot_state, &K::kind(&()), &object.name_any(), object.purpose()) else {
        return Ok(());
    };
    if entry.state.is_none() && entry.resources.is_empty() {
        return Ok(());
    }
    for reference in &entry.resources {
        deploy_resource(botanist, resource_for(&shoot_state, &reference.resource_ref)?).await?;
    }
    let mut status = json!({});
    if let Some(state) = &entry.state {
        status["state"] = state.0.clone();
    }
    if !entry.resources.is_empty() {
        status["resources"] = json!(entry.resources);
    }
    FIELD_MANAGER
        .merge_status(api, &object.name_any(), &status)
        .await
        .map(|_| ())
}

/// The entry of an object: by kind, name and purpose.
fn entry_for<'a>(
    state: &'a ShootState,
    kind: &str,
    name: &str,
    purpose: Option<&str>,
) -> Option<&'a ExtensionResourceState> {
    state.spec.extensions.iter().find(|entry| {
        entry.kind == kind && entry.name.as_deref() == Some(name) && entry.purpose.as_deref() == purpose
    })
}

/// The content of an object that a state refers to. A state without it would be worthless, so that its absence is told.
fn resource_for<'a>(
    state: &'a ShootState,
    reference: &CrossVersionObjectReference,
) -> Result<&'a ResourceData> {
    let found = state.spec.resources.iter().find(|resource| {
        resource.kind == reference.kind
            && resource.name == reference.name
            && resource.api_version.as_deref().unwrap_or("v1")
                == reference.api_version.as_deref().unwrap_or("v1")
    });
    found.ok_or_else(|| {
        configuration_problem(format!(
            "ShootState {} does not hold {} {}, which the state of an extension refers to: put it into spec.resources",
            state.name_any(),
            reference.kind,
            reference.name
        ))
    })
}

/// Creates the object again in the shoot's namespace. One that is there is left alone.
async fn deploy_resource(botanist: &Botanist, resource: &ResourceData) -> Result<()> {
    let (object, kind) = object_of(resource, &botanist.namespace)?;
    let (type_, _) = kube::discovery::pinned_kind(botanist.seed.client(), &kind)
        .await
        .context(format_args!("this seed does not know the kind {}", resource.kind))?;
    let api: Api<DynamicObject> =
        Api::namespaced_with(botanist.seed.client().clone(), &botanist.namespace, &type_);
    if api
        .get_opt(&resource.name)
        .await
        .context(format_args!("could not read {}", resource.name))?
        .is_some()
    {
        return Ok(());
    }
    api.patch(
        &resource.name,
        &PatchParams::apply(FIELD_MANAGER.0).force(),
        &Patch::Apply(&object),
    )
    .await
    .context(format_args!(
        "could not restore {} {}",
        resource.kind, resource.name
    ))
    .map(|_| ())
}

/// The object for this seed: without what the other seed's server knew of it.
fn object_of(resource: &ResourceData, namespace: &str) -> Result<(serde_json::Value, GroupVersionKind)> {
    let api_version = resource.api_version.as_deref().unwrap_or("v1");
    let kind = match api_version.split_once('/') {
        Some((group, version)) => GroupVersionKind::gvk(group, version, &resource.kind),
        None => GroupVersionKind::gvk("", api_version, &resource.kind),
    };
    let mut value = resource.data.0.clone();
    let Some(fields) = value.as_object_mut() else {
        return Err(configuration_problem(format!(
            "the content of {} {} in the ShootState is no object: put its former content back",
            resource.kind, resource.name
        )));
    };
    let kept = |key: &str| {
        fields
            .get("metadata")
            .and_then(|metadata| metadata.get(key))
            .cloned()
    };
    let mut metadata = json!({"name": resource.name, "namespace": namespace});
    for key in ["labels", "annotations"] {
        if let Some(kept) = kept(key).filter(|kept| !kept.is_null()) {
            metadata[key] = kept;
        }
    }
    fields.remove("status");
    fields.insert("apiVersion".into(), json!(api_version));
    fields.insert("kind".into(), json!(resource.kind));
    fields.insert("metadata".into(), metadata);
    Ok((value, kind))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn state() -> ShootState {
        serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {
                "extensions": [
                    {"kind": "Infrastructure", "name": "web", "state": {"networkID": "n1"}},
                    {"kind": "OperatingSystemConfig", "name": "web", "purpose": "provision", "state": {"a": 1}},
                ],
                "resources": [{"kind": "Secret", "apiVersion": "v1", "name": "key", "data": {
                    "metadata": {"name": "key", "namespace": "elsewhere", "uid": "u", "labels": {"a": "b"}},
                    "type": "Opaque", "data": {"k": "dg=="}, "status": {}
                }}],
            },
        }))
        .unwrap()
    }

    #[test]
    fn an_entry_is_found_by_kind_name_and_purpose() {
        let state = state();
        assert!(entry_for(&state, "Infrastructure", "web", None).is_some());
        assert!(entry_for(&state, "Infrastructure", "other", None).is_none());
        assert!(entry_for(&state, "OperatingSystemConfig", "web", None).is_none());
        assert!(entry_for(&state, "OperatingSystemConfig", "web", Some("provision")).is_some());
    }

    #[test]
    fn a_carried_object_loses_what_the_other_seed_knew_of_it() {
        let state = state();
        let reference = CrossVersionObjectReference {
            api_version: None,
            kind: "Secret".into(),
            name: "key".into(),
        };
        let (object, kind) = object_of(resource_for(&state, &reference).unwrap(), "shoot--dev--web").unwrap();
        assert_eq!(
            object,
            json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"k": "dg=="},
                "metadata": {"name": "key", "namespace": "shoot--dev--web", "labels": {"a": "b"}}})
        );
        assert_eq!(kind.group, "");
    }

    #[test]
    fn a_missing_object_is_told() {
        let reference = CrossVersionObjectReference {
            api_version: None,
            kind: "Secret".into(),
            name: "gone".into(),
        };
        let message = resource_for(&state(), &reference).unwrap_err().to_string();
        assert!(message.contains("does not hold Secret gone"), "{message}");
    }
}
