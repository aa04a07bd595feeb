//! ManagedResources: objects that a resource manager applies in the shoot or in the seed. A move keeps the
//! objects in the shoot (RX-02, RX-23).
//!
//! The gardenlet acts only on ManagedResources that the gardenlet has created. The controller of an extension
//! deletes the ManagedResources of that extension, and decides about the objects. A remaining ManagedResource
//! of an extension blocks the deletion of the shoot: without the shoot's API the resource manager cannot
//! delete the objects.

use std::collections::BTreeSet;

use futures::future::try_join_all;
use kube::{
    ResourceExt,
    api::DynamicObject,
    core::{ApiResource, GroupVersionKind},
};
use runtime::{
    Error, Result,
    client::wait,
    workload::manifests::{ORIGIN, SEED_CLASS},
};
use serde_json::json;

use crate::{
    Residency,
    extensions::dynamic,
    task::{ExternalSystems, NONE, PartTask},
    verbs::{Destroy, Tasks},
};

/// Label `origin` of the gardenlet's ManagedResources.
pub(crate) const OWN_ORIGIN: &str = "gardener";
/// Name prefix of the gardenlet's ManagedResources. ManagedResources from a former version have no label
/// `origin`.
const OWN_PREFIX: &str = "shoot-core-";

/// The gardenlet's ManagedResources in the shoot's namespace.
#[derive(Debug)]
pub struct ManagedResources;

impl ManagedResources {
    /// [`Self::keep_objects`], as a task.
    pub const KEEP_OBJECTS: PartTask<Residency> = PartTask::new(
        "Configuring Managed Resources objects to be kept in the Shoot",
        NONE,
        |input| Box::pin(Self::keep_objects(input)),
    );
    /// [`Self::check_no_other`], as a task.
    pub const CHECK_NO_OTHER: PartTask<Residency> = PartTask::new(
        "Checking that no extension has objects in the Shoot",
        NONE,
        |input| Box::pin(Self::check_no_other(input)),
    );

    /// "Configuring Managed Resources objects to be kept in the Shoot".
    pub async fn keep_objects(residency: &Residency) -> Result<()> {
        keep_objects(residency, is_own).await
    }

    /// "Checking that no extension has objects in the Shoot": fails while an extension has a ManagedResource
    /// in the shoot without `keepObjects`. The error names these ManagedResources. After the stop of the
    /// shoot's API, the objects could not be deleted.
    pub async fn check_no_other(residency: &Residency) -> Result<()> {
        let left = selected(residency, holds_up).await?;
        if left.is_empty() {
            return Ok(());
        }
        Err(Error::transient(format!(
            "the shoot in namespace {} is not deleted while ManagedResources of extensions have objects in the shoot: {}. Their extensions have \
             to delete them; where an extension is gone for good, set spec.keepObjects to true",
            residency.namespace,
            left.join(", ")
        )))
    }

    /// The same check for the namespace of a departed shoot. The resource-manager lets go of a
    /// ManagedResource that is being deleted there, and keeps the objects in the shoot.
    pub async fn check_departed(residency: &Residency) -> Result<()> {
        let is_undeleted = |object: &DynamicObject| object.metadata.deletion_timestamp.is_none();
        let left = selected(residency, |object| holds_up(object) && is_undeleted(object)).await?;
        if left.is_empty() {
            return Ok(());
        }
        Err(Error::transient(format!(
            "namespace {} is not deleted after the departure of the shoot while it has ManagedResources of extensions: {}. Their extensions \
             have to delete them; where an extension is gone for good, delete them: the objects stay in the shoot",
            residency.namespace,
            left.join(", ")
        )))
    }

    /// The origins in the annotations of resource-manager on objects in the shoot, for all ManagedResources
    /// in the shoot's namespace.
    pub(crate) async fn origins_in_shoot(residency: &Residency) -> Result<BTreeSet<String>> {
        let names = selected(residency, |object| !is_in_seed(object)).await?;
        Ok(names
            .iter()
            .map(|name| format!("{}/{name}", residency.namespace))
            .collect())
    }
}

impl Destroy for ManagedResources {
    const TASKS: Tasks = [
        "Deleting all Managed Resources from the Shoot's namespace",
        "Waiting until ManagedResources are deleted",
    ];
    const TOUCHES: ExternalSystems = NONE;

    async fn destroy(residency: &Residency) -> Result<()> {
        destroy(residency, is_own).await
    }

    async fn gone(residency: &Residency) -> Result<()> {
        gone(residency, is_own).await
    }
}

/// All ManagedResources in the namespace of a shoot with a forced deletion. The API of the shoot may be dead,
/// so that no extension could delete the objects.
#[derive(Debug)]
pub struct ForcedManagedResources;

impl ForcedManagedResources {
    /// [`Self::keep_objects`], as a task.
    pub const KEEP_OBJECTS: PartTask<Residency> = PartTask::new(
        "Configuring Managed Resources objects to be kept in the Shoot",
        NONE,
        |input| Box::pin(Self::keep_objects(input)),
    );

    /// "Configuring Managed Resources objects to be kept in the Shoot".
    pub async fn keep_objects(residency: &Residency) -> Result<()> {
        keep_objects(residency, |_| true).await
    }
}

impl Destroy for ForcedManagedResources {
    const TASKS: Tasks = ManagedResources::TASKS;
    const TOUCHES: ExternalSystems = NONE;

    async fn destroy(residency: &Residency) -> Result<()> {
        destroy(residency, |_| true).await
    }

    async fn gone(residency: &Residency) -> Result<()> {
        gone(residency, |_| true).await
    }
}

/// Objects in the seed are never kept: such objects would stay for ever.
async fn keep_objects(residency: &Residency, which: fn(&DynamicObject) -> bool) -> Result<()> {
    let (kind, api) = (kind(), residency.any_api(&kind()));
    let keep = json!({"spec": {"keepObjects": true}});
    for name in selected(residency, |object| which(object) && !is_in_seed(object)).await? {
        dynamic::merge(&api, &kind, &name, &keep).await?;
    }
    Ok(())
}

async fn destroy(residency: &Residency, which: fn(&DynamicObject) -> bool) -> Result<()> {
    let (kind, api) = (kind(), residency.any_api(&kind()));
    for name in selected(residency, which).await? {
        dynamic::delete(&api, &kind, &name, None).await?;
    }
    Ok(())
}

async fn gone(residency: &Residency, which: fn(&DynamicObject) -> bool) -> Result<()> {
    let api = residency.any_api(&kind());
    let timeout = residency.settings.timeouts.managed_resources;
    let names = selected(residency, which).await?;
    try_join_all(names.iter().map(|name| wait::until_gone(&api, name, timeout)))
        .await
        .map(|_| ())
}

/// Names of the selected ManagedResources in the shoot's namespace.
async fn selected(residency: &Residency, which: impl Fn(&DynamicObject) -> bool) -> Result<Vec<String>> {
    let kind = kind();
    let all = dynamic::list(&residency.any_api(&kind), &kind).await?;
    Ok(all
        .iter()
        .filter(|object| which(object))
        .map(ResourceExt::name_any)
        .collect())
}

fn is_own(object: &DynamicObject) -> bool {
    match object.labels().get(ORIGIN) {
        Some(origin) => origin == OWN_ORIGIN,
        None => object.name_any().starts_with(OWN_PREFIX),
    }
}

/// A ManagedResource of an extension, with objects in the shoot that a deletion would delete.
fn holds_up(object: &DynamicObject) -> bool {
    !is_own(object) && !is_in_seed(object) && !keeps(object)
}

fn keeps(object: &DynamicObject) -> bool {
    object.data["spec"]["keepObjects"] == true
}

fn is_in_seed(object: &DynamicObject) -> bool {
    object.data["spec"]["class"] == SEED_CLASS
}

fn kind() -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("resources.gardener.cloud", "v1alpha1", "ManagedResource"),
        "managedresources",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::Value;

    use super::*;

    fn resource(name: &str, labels: &Value, class: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
            "metadata": {"name": name, "labels": labels}, "spec": {"class": class},
        }))
        .unwrap()
    }

    #[test]
    fn what_the_gardenlet_has_written_is_told_from_what_extensions_have() {
        for (name, labels, own) in [
            ("shoot-core-coredns", json!({}), true),
            ("extension-controlplane-shoot", json!({}), false),
            (
                "extension-controlplane-shoot",
                json!({"origin": "provider-x"}),
                false,
            ),
            ("shoot-core-addon", json!({"origin": "provider-x"}), false),
            ("anything", json!({"origin": "gardener"}), true),
        ] {
            let resource = resource(name, &labels, &Value::Null);
            assert_eq!(is_own(&resource), own, "{resource:?}");
        }
        assert!(is_in_seed(&resource("a", &json!({}), &json!("seed"))));
        assert!(!is_in_seed(&resource("a", &json!({}), &Value::Null)));
    }
}
