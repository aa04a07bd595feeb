//! What a ShootState may hold (R7-22, RX-33): exactly what a seed collects.
//!
//! The seed that wrote it may have been taken over, and the seed that reads it applies what it holds with the rights of its
//! own gardenlet. Therefore one function, [`check`], stands at both ends: what does not pass is not collected, and a
//! ShootState with one piece that does not pass is refused as a whole, before anything of it is applied. It promises that
//! a restore makes nothing but Secrets and ConfigMaps, in the shoot's namespace, under names that are no paths, without
//! owners and finalizers, and of types that no controller of the seed fills or acts on.

use std::collections::BTreeSet;

use api::{
    constants::{MANAGED_BY, MANAGER_IDENTITY},
    gardencore::{ExtensionResourceState, ShootState},
    meta::{CrossVersionObjectReference, ResourceData},
};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use runtime::{Error, Result};

use super::{
    content::{Referenced, referenced},
    entries,
};
use crate::{configuration_problem, secrets::config};

/// Kinds of extension objects that live in a shoot's namespace. A state of any other kind would be given to nobody.
const KINDS: &[&str] = &[
    "Bastion",
    "ContainerRuntime",
    "ControlPlane",
    "DNSRecord",
    "Extension",
    "Infrastructure",
    "Network",
    "OperatingSystemConfig",
    "SelfHostedShootExposure",
    "Worker",
];

/// Types of Kubernetes' own that only hold what they are given. All others of its domain are filled or acted on: one of type
/// `kubernetes.io/service-account-token` becomes a token for whatever service account it names.
const PLAIN_TYPES: &[&str] = &["tls", "ssh-auth", "basic-auth", "dockercfg", "dockerconfigjson"];

/// Whether this is what a seed collects. The error names the first piece that is not.
pub fn check(state: &ShootState) -> Result<()> {
    check_secrets(state)?;
    for entry in &state.spec.extensions {
        check_extension(state, entry)?;
    }
    check_resources(state)
}

/// The API's word for a reference's version, which may be left out.
pub(crate) fn version(api_version: Option<&str>) -> &str {
    api_version.unwrap_or("v1")
}

fn check_secrets(state: &ShootState) -> Result<()> {
    let mut names = BTreeSet::new();
    for entry in &state.spec.gardener {
        let what = format!("entry {:?} in spec.gardener", entry.name);
        if entry.type_ != entries::ENTRY_TYPE {
            return Err(refused(
                state,
                &what,
                &format!("its type is {:?}, not {:?}", entry.type_, entries::ENTRY_TYPE),
            ));
        }
        if !names.insert(&entry.name) {
            return Err(refused(state, &what, "there are two of that name"));
        }
    }
    for secret in entries::from_shoot_state(state)? {
        if let Some(why) = why_not_carried(&secret) {
            let what = format!("entry {:?} in spec.gardener", secret.name_any());
            return Err(refused(state, &what, &why));
        }
    }
    Ok(())
}

/// What keeps a Secret from being carried for its own sake, if anything.
fn why_not_carried(secret: &Secret) -> Option<String> {
    if !entries::is_carried(secret) {
        return Some("it has no label persist=true".into());
    }
    let name = secret.name_any();
    let is_material = [MANAGED_BY, MANAGER_IDENTITY]
        .iter()
        .any(|label| secret.labels().contains_key(*label));
    if config::DERIVED.contains(&name.as_str()) {
        return Some("each seed makes this Secret itself".into());
    }
    if is_material && !config::CARRIED.contains(&name.as_str()) {
        return Some("its labels say that the gardenlet made it, and it makes none of that name".into());
    }
    why_not_made(secret)
}

/// What keeps any Secret from being made in a shoot's namespace, if anything.
fn why_not_made(secret: &Secret) -> Option<String> {
    if !is_name(&secret.name_any()) {
        return Some("that is no name of an object".into());
    }
    let type_ = secret.type_.as_deref().unwrap_or("Opaque");
    (!is_plain(type_)).then(|| format!("Secrets of type {type_:?} are not carried"))
}

fn is_plain(type_: &str) -> bool {
    let Some((domain, name)) = type_.split_once('/') else {
        return type_ == "Opaque";
    };
    let of_kubernetes = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
    !of_kubernetes || domain == "kubernetes.io" && PLAIN_TYPES.contains(&name)
}

/// As the API has it for most kinds. Checked here since a name becomes part of the path of a request.
fn is_name(name: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_outer = |c: char| c != '-' && is_inner(c);
    name.len() <= 253
        && name.split('.').all(|label| {
            label.starts_with(is_outer) && label.ends_with(is_outer) && label.chars().all(is_inner)
        })
}

fn check_extension(state: &ShootState, entry: &ExtensionResourceState) -> Result<()> {
    let name = entry.name.as_deref().unwrap_or_default();
    let what = format!("the state of {} {name:?} in spec.extensions", entry.kind);
    if !KINDS.contains(&entry.kind.as_str()) {
        return Err(refused(
            state,
            &what,
            "that is no kind of extension object in a shoot's namespace",
        ));
    }
    if !is_name(name) {
        return Err(refused(state, &what, "that is no name of an object"));
    }
    let same = |other: &&ExtensionResourceState| {
        (&other.kind, &other.name, &other.purpose) == (&entry.kind, &entry.name, &entry.purpose)
    };
    if state.spec.extensions.iter().filter(same).count() > 1 {
        return Err(refused(state, &what, "there are two of it"));
    }
    for reference in &entry.resources {
        let target = &reference.resource_ref;
        if !is_kind_of_object(target.api_version.as_deref(), &target.kind) {
            let why = format!(
                "it refers to {} {}, and only Secrets and ConfigMaps are carried",
                target.kind, target.name
            );
            return Err(refused(state, &what, &why));
        }
    }
    Ok(())
}

fn is_kind_of_object(api_version: Option<&str>, kind: &str) -> bool {
    version(api_version) == "v1" && matches!(kind, "Secret" | "ConfigMap")
}

fn check_resources(state: &ShootState) -> Result<()> {
    let mut names = BTreeSet::new();
    for resource in &state.spec.resources {
        let what = format!("{} {:?} in spec.resources", resource.kind, resource.name);
        if !is_kind_of_object(resource.api_version.as_deref(), &resource.kind) {
            return Err(refused(state, &what, "only Secrets and ConfigMaps are carried"));
        }
        if !is_name(&resource.name) {
            return Err(refused(state, &what, "that is no name of an object"));
        }
        if !names.insert((&resource.kind, &resource.name)) {
            return Err(refused(state, &what, "there are two of it"));
        }
        if !is_referred_to(&state.spec.extensions, resource) {
            return Err(refused(
                state,
                &what,
                "no state of an extension object refers to it",
            ));
        }
        let object = referenced(resource).map_err(|why| refused(state, &what, &why))?;
        if let Referenced::Secret(secret) = &object
            && let Some(why) = why_not_referenced(secret)
        {
            return Err(refused(state, &what, &why));
        }
    }
    Ok(())
}

/// An extension's Secret may be carried for its own sake too; it is never one of the gardenlet's.
fn why_not_referenced(secret: &Secret) -> Option<String> {
    let name = secret.name_any();
    let ours = [config::CARRIED, config::DERIVED]
        .iter()
        .any(|names| names.contains(&name.as_str()));
    if ours {
        return Some("that is a Secret of the gardenlet, not of an extension".into());
    }
    why_not_made(secret)
}

/// Whether a state refers to the object, so that it has a reason to be carried.
#[must_use]
pub fn is_referred_to(extensions: &[ExtensionResourceState], resource: &ResourceData) -> bool {
    extensions
        .iter()
        .flat_map(|entry| &entry.resources)
        .any(|reference| is_meant(&reference.resource_ref, resource))
}

/// Whether a reference means this object.
pub(crate) fn is_meant(reference: &CrossVersionObjectReference, resource: &ResourceData) -> bool {
    resource.kind == reference.kind
        && resource.name == reference.name
        && version(resource.api_version.as_deref()) == version(reference.api_version.as_deref())
}

fn refused(state: &ShootState, what: &str, why: &str) -> Error {
    configuration_problem(format!(
        "{what} of ShootState {} is nothing that a seed collects: {why}. Nothing of this ShootState is applied: put its \
         former content back",
        state.name_any()
    ))
}

#[cfg(test)]
#[path = "carried_tests.rs"]
mod tests;
