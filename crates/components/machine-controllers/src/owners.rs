//! Ownership of sets and Machines. A restored object has no owner, or an owner that was deleted on the former
//! seed. The labels of such an object name the owner. The object is adopted before any count, so that no
//! object is created twice (gardener/gardener#5471).

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use kube::{
    Resource, ResourceExt,
    core::{Selector, SelectorExt as _},
};
use runtime::{Error, Result};
use serde_json::{Value, json};

/// The relation of an object to a possible owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerRelation {
    /// The object belongs to the owner.
    Own,
    /// The object belongs to the owner after an adoption.
    Orphan,
    /// The object belongs to a different owner, or to no owner here.
    No,
}

/// A valid selector. A selector that selects everything would take the objects of different owners.
pub fn selector(of: &str, selector: Option<&LabelSelector>) -> Result<Selector> {
    let parsed = selector.cloned().unwrap_or_default().try_into();
    let usable = parsed.ok().filter(|parsed: &Selector| !parsed.selects_all());
    usable.ok_or_else(|| {
        Error::config(
            api::meta::ErrorCode::ErrConfigurationProblem,
            format!("spec.selector of {of} selects everything or cannot be understood: correct it"),
        )
    })
}

/// The relation of `object` to `owner`. `living`: the uids of all possible owners that exist.
pub fn find_owner_relation<O: Resource<DynamicType = ()>>(
    object: &ObjectMeta,
    owner: &O,
    selector: &Selector,
    living: &BTreeSet<String>,
) -> OwnerRelation {
    let selected = selector.matches(
        object
            .labels
            .as_ref()
            .unwrap_or(&std::collections::BTreeMap::new()),
    );
    match controller_reference(object) {
        Some(reference) if Some(&reference.uid) == owner.meta().uid.as_ref() => OwnerRelation::Own,
        // An owner of a different kind is not judged here, alive or not.
        Some(reference) if reference.kind != O::kind(&()) || living.contains(&reference.uid) => {
            OwnerRelation::No
        }
        _ if selected => OwnerRelation::Orphan,
        _ => OwnerRelation::No,
    }
}

/// The merge patch that makes `owner` the owner of an object.
pub fn adoption_patch<O: Resource<DynamicType = ()>>(object: &ObjectMeta, owner: &O) -> Value {
    let others = object.owner_references.iter().flatten();
    let mut owners: Vec<_> = others
        .filter(|reference| reference.controller != Some(true))
        .cloned()
        .collect();
    owners.push(owner_reference(owner));
    json!({"metadata": {"ownerReferences": owners}})
}

/// A reference to an owner. The reference does not block the deletion of the owner: that needs the right to
/// update the finalizers of the owner, where admission plugin `OwnerReferencesPermissionEnforcement` is on.
/// The finalizer of the owner already waits for the owned objects.
pub fn owner_reference<O: Resource<DynamicType = ()>>(owner: &O) -> OwnerReference {
    OwnerReference {
        api_version: O::api_version(&()).into_owned(),
        kind: O::kind(&()).into_owned(),
        name: owner.name_any(),
        uid: owner.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(false),
    }
}

fn controller_reference(object: &ObjectMeta) -> Option<&OwnerReference> {
    let owners = object.owner_references.as_ref()?;
    owners.iter().find(|owner| owner.controller == Some(true))
}

#[cfg(test)]
#[path = "owners_tests.rs"]
mod tests;
