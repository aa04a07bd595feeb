//! Provider X, a third-party provider without the conventions of this project. Provider X has a carried
//! Secret that names a different manager, and ManagedResources of both classes without a label `origin`. The
//! names of the Deployments contain names of the control plane, and a kind of extension objects is unknown to
//! every gardenlet. The Extension has the type [`TYPE`] and goes through the same flows as every further
//! Extension (`guest`).

use anyhow::{Context as _, ensure};
use api::constants::{OPERATION, operation};
use api::resources::ManagedResource;
use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::garden;
use crate::scenario::{Drilled, ShootScenario};
use crate::subject::transient;

/// Type of the Extension that stands for the provider.
pub const TYPE: &str = "provider-x";
const NAME: &str = "provider-x";
/// The Secret that is carried.
const KEYS: &str = "provider-x-keys";
const RESOURCES: [&str; 2] = ["provider-x-shoot", "provider-x-seed"];
/// Names that contain those of processes that must stop before a hand-over.
pub const DEPLOYMENTS: [&str; 2] = ["x-controller-manager-helper", "kube-apiserver-audit-x"];
const FINALIZER: &str = "provider-x.example.org/firewall";

fn firewall() -> ApiResource {
    let kind = GroupVersionKind::gvk("extensions.gardener.cloud", "v1alpha1", "Firewall");
    ApiResource::from_gvk_with_plural(&kind, "firewalls")
}

/// Installs the kind in a seed, and runs the kind's controller until `tasks` is dropped.
pub async fn install(tasks: &mut JoinSet<()>, seed: &Client) -> anyhow::Result<()> {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "firewalls.extensions.gardener.cloud"},
        "spec": {
            "group": "extensions.gardener.cloud", "scope": "Namespaced",
            "names": {"kind": "Firewall", "plural": "firewalls", "singular": "firewall", "listKind": "FirewallList"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}}}],
        },
    }))?;
    testkit::apply_crds(seed, &[definition]).await?;
    let (seed, kind) = (seed.clone(), firewall());
    let all: Api<DynamicObject> = Api::all_with(seed.clone(), &kind);
    tasks.spawn(async move {
        let mut changed = watcher(all, watcher::Config::default()).default_backoff().boxed();
        while let Some(event) = changed.next().await {
            // A write that collides is repeated at the next change.
            let _ = match event {
                Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => {
                    act(&seed, &object).await.map_err(anyhow::Error::from)
                }
                // Released before the deletion: the ManagedResources go late, when the shoot has left.
                Ok(watcher::Event::Delete(object)) => {
                    withdraw(&seed, &object.namespace().unwrap_or_default()).await
                }
                _ => Ok(()),
            };
        }
    });
    Ok(())
}

/// The extension contract for each kind: `migrate` releases the object, and a deletion removes the finalizer.
/// With the object, the provider removes all of the provider's objects in the namespace. A seed that a shoot
/// has left waits for the removal.
async fn act(seed: &Client, object: &DynamicObject) -> kube::Result<()> {
    let api: Api<DynamicObject> =
        Api::namespaced_with(seed.clone(), &object.namespace().unwrap_or_default(), &firewall());
    let (name, params) = (object.name_any(), PatchParams::default());
    let migrates = object.annotations().get(OPERATION).map(String::as_str) == Some(operation::MIGRATE);
    if migrates {
        let status = json!({"status": {"lastOperation": {
            "type": "Migrate", "state": "Succeeded", "progress": 100, "description": "released",
            "lastUpdateTime": "2026-01-01T00:00:00Z",
        }}});
        api.patch_status(&name, &params, &Patch::Merge(status)).await?;
    }
    let is_deleted = object.metadata.deletion_timestamp.is_some();
    if is_deleted
        && withdraw(seed, &object.namespace().unwrap_or_default())
            .await
            .is_err()
    {
        // Tried again at the next change: the finalizer stays.
        return Ok(());
    }
    if migrates || is_deleted {
        let released = json!({"metadata": {"finalizers": null, "annotations": {(OPERATION): null}}});
        api.patch(&name, &params, &Patch::Merge(released)).await?;
    }
    Ok(())
}

/// Writes the provider's objects into a shoot's namespace. `number`: the provider's outside thing, named in
/// the carried Secret.
pub async fn plant(seed: &Client, namespace: &str, number: u32, sleeps: bool) -> anyhow::Result<()> {
    let metadata = |name: &str| json!({"name": name, "namespace": namespace});
    let labelled = json!({"name": KEYS, "namespace": namespace, "labels": {
        "persist": "true", "managed-by": "secrets-manager", "manager-identity": NAME,
    }});
    let resource = |name: &str, spec: Value| {
        json!({"apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
            "metadata": metadata(name), "spec": spec})
    };
    let references = json!([{"name": "managedresource-provider-x"}]);
    let objects = [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": labelled, "stringData": {"number": number.to_string()}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata("managedresource-provider-x"), "stringData": {}}),
        resource(RESOURCES[0], json!({"secretRefs": references})),
        resource(RESOURCES[1], json!({"secretRefs": references, "class": "seed"})),
        json!({"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Firewall", "metadata": {
            "name": NAME, "namespace": namespace, "finalizers": [FINALIZER]}, "spec": {"type": NAME}}),
    ];
    for object in objects {
        garden::apply(seed, object).await?;
    }
    for name in DEPLOYMENTS {
        let labels = json!({"app": name, "gardener.cloud/role": "controlplane"});
        let pod =
            json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "x", "image": "x"}]}});
        let spec = json!({"replicas": i32::from(!sleeps), "selector": {"matchLabels": {"app": name}}, "template": pod});
        let deployment =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(name), "spec": spec});
        garden::apply(seed, deployment).await?;
    }
    Ok(())
}

/// The carried Secret came along before the provider was asked to restore.
pub async fn check_carried(seed: &Client, namespace: &str, number: u32) -> anyhow::Result<()> {
    let secrets: Api<Secret> = Api::namespaced(seed.clone(), namespace);
    let secret = secrets.get_opt(KEYS).await?;
    let secret = secret.with_context(|| format!("Secret {KEYS} was not carried"))?;
    let manager = secret.labels().get("manager-identity").map(String::as_str);
    ensure!(manager == Some(NAME), "Secret {KEYS} has the manager {manager:?}");
    let found = secret
        .data
        .and_then(|mut data| data.remove("number"))
        .map(|bytes| bytes.0);
    ensure!(
        found == Some(number.to_string().into_bytes()),
        "Secret {KEYS} holds {found:?} instead of {number}"
    );
    Ok(())
}

/// Removes all these objects, as the provider does when the Extension is deleted.
pub async fn withdraw(seed: &Client, namespace: &str) -> anyhow::Result<()> {
    let resources: Api<ManagedResource> = Api::namespaced(seed.clone(), namespace);
    for name in RESOURCES {
        delete(&resources, name).await?;
    }
    let deployments: Api<Deployment> = Api::namespaced(seed.clone(), namespace);
    for name in DEPLOYMENTS {
        delete(&deployments, name).await?;
    }
    let secrets: Api<Secret> = Api::namespaced(seed.clone(), namespace);
    delete(&secrets, KEYS).await?;
    delete(
        &Api::<DynamicObject>::namespaced_with(seed.clone(), namespace, &firewall()),
        NAME,
    )
    .await
}

async fn delete<K>(api: &Api<K>, name: &str) -> anyhow::Result<()>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    match api.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

/// No gardenlet has changed or removed the provider's objects in the namespace. `released`: a move has begun
/// there.
async fn check_untouched(seed: &Client, namespace: &str, released: bool) -> anyhow::Result<()> {
    let resources: Api<ManagedResource> = Api::namespaced(seed.clone(), namespace);
    for name in RESOURCES {
        let resource = resources.get(name).await?;
        ensure!(
            resource.metadata.deletion_timestamp.is_none() && resource.spec.keep_objects != Some(true),
            "ManagedResource {name} of a third-party provider was changed: {resource:?}"
        );
    }
    let deployments: Api<Deployment> = Api::namespaced(seed.clone(), namespace);
    for name in DEPLOYMENTS {
        let replicas = deployments.get(name).await?.spec.and_then(|spec| spec.replicas);
        ensure!(
            replicas == Some(1),
            "Deployment {name} of a third-party provider has {replicas:?} replicas"
        );
    }
    let firewalls: Api<DynamicObject> = Api::namespaced_with(seed.clone(), namespace, &firewall());
    let firewall = firewalls.get(NAME).await?;
    let is_released = firewall.data["status"]["lastOperation"]["type"] == "Migrate";
    ensure!(
        is_released == released,
        "the kind that no gardenlet knows was released: {is_released}, and the move has begun: {released}"
    );
    Ok(())
}

impl ShootScenario<'_> {
    /// Objects of a third-party provider belong to that provider until the end of the namespace.
    pub async fn check_foreign_at_end(&self) -> runtime::Result<()> {
        let released = match self.drilled {
            Drilled::Create | Drilled::Restore | Drilled::TakeOver | Drilled::Renew => false,
            Drilled::Migrate | Drilled::CancelMove => true,
            _ => return Ok(()),
        };
        check_untouched(&self.drilled_seed().client(), &self.namespace(), released)
            .await
            .map_err(transient)
    }
}
