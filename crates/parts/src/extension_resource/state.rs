//! Puts the state of an extension object from the ShootState into its status (RX-12, RX-31, RX-33).

use api::{
    gardencore::{ExtensionResourceState, ShootState},
    meta::{CrossVersionObjectReference, ResourceData},
};
use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use runtime::{Cluster, Result, error::Explain};
use serde_json::json;

use super::kind::ShootExtension;
use crate::{
    FIELD_MANAGER, Facts, Stay, configuration_problem,
    shoot_state::{Referenced, carried, referenced},
};

/// Puts the state in, unless the object has one: that came from an earlier run, or is newer.
pub(super) async fn put_in<K: ShootExtension>(f: &Facts, api: &Api<K>, object: &K) -> Result<()> {
    let status = object.default_status();
    if status.is_some_and(|status| status.state.is_some() || !status.resources.is_empty()) {
        return Ok(());
    }
    let Some(shoot_state) = f.shoot_state().await? else {
        return Ok(());
    };
    let Some(entry) = entry_for(&shoot_state, &K::kind(&()), &object.name_any(), object.purpose()) else {
        return Ok(());
    };
    if entry.state.is_none() && entry.resources.is_empty() {
        return Ok(());
    }
    for reference in &entry.resources {
        deploy_resource(f, resource_for(&shoot_state, &reference.resource_ref)?).await?;
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
    let found = state
        .spec
        .resources
        .iter()
        .find(|resource| carried::is_meant(reference, resource));
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
async fn deploy_resource(stay: &Stay, resource: &ResourceData) -> Result<()> {
    match referenced(resource).map_err(configuration_problem)? {
        Referenced::Secret(secret) => make(stay, *secret).await,
        Referenced::ConfigMap(map) => make(stay, *map).await,
    }
}

async fn make<K>(stay: &Stay, mut object: K) -> Result<()>
where
    K: runtime::apply::Object + Resource<Scope = NamespaceResourceScope>,
{
    object.meta_mut().namespace = Some(stay.namespace.clone());
    let (api, name): (Api<K>, _) = (stay.seed.namespaced(&stay.namespace), object.name_any());
    let found = api
        .get_opt(&name)
        .await
        .context(format_args!("could not read {} {name}", K::kind(&())))?;
    if found.is_none() {
        FIELD_MANAGER.apply(&api, &object).await?;
    }
    Ok(())
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
