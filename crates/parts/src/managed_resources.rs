//! ManagedResources: objects that a resource manager keeps in the shoot or in the seed. In a move their objects in the
//! shoot stay (RX-02, RX-23).

use futures::future::try_join_all;
use kube::{
    ResourceExt,
    core::{ApiResource, GroupVersionKind},
};
use runtime::{Result, wait};
use serde_json::json;

use crate::{
    Stay, dynamic,
    verbs::{Destroy, Tasks},
};

/// All ManagedResources in the shoot's namespace.
#[derive(Debug)]
pub struct ManagedResources;

impl ManagedResources {
    /// "Configuring Managed Resources objects to be kept in the Shoot".
    pub async fn keep_objects(stay: &Stay) -> Result<()> {
        let (kind, api) = (kind(), stay.any_api(&kind()));
        for object in dynamic::list(&api, &kind).await? {
            dynamic::merge(
                &api,
                &kind,
                &object.name_any(),
                &json!({"spec": {"keepObjects": true}}),
            )
            .await?;
        }
        Ok(())
    }
}

impl Destroy for ManagedResources {
    const TASKS: Tasks = [
        "Deleting all Managed Resources from the Shoot's namespace",
        "Waiting until ManagedResources are deleted",
    ];

    async fn destroy(stay: &Stay) -> Result<()> {
        let (kind, api) = (kind(), stay.any_api(&kind()));
        for object in dynamic::list(&api, &kind).await? {
            dynamic::delete(&api, &kind, &object.name_any(), None).await?;
        }
        Ok(())
    }

    async fn gone(stay: &Stay) -> Result<()> {
        let (kind, api) = (kind(), stay.any_api(&kind()));
        let all = dynamic::list(&api, &kind).await?;
        let names: Vec<_> = all.iter().map(ResourceExt::name_any).collect();
        let timeout = stay.settings.timeouts.managed_resources;
        try_join_all(names.iter().map(|name| wait::until_gone(&api, name, timeout)))
            .await
            .map(|_| ())
    }
}

fn kind() -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("resources.gardener.cloud", "v1alpha1", "ManagedResource"),
        "managedresources",
    )
}
