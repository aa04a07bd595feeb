//! The objects of operators and users in the garden before the first Shoot.

use anyhow::{Context, Result};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::pinned_kind;
use kube::{Client, ResourceExt};
use placement::credentials::seed_namespace;
use serde_json::{Value, json};
use testkit::{ControlPlane, NameServer, ObjectStore};

use crate::guest;
use crate::world::DOMAIN;

pub const VERSION: &str = "1.34.4";
/// The version for upgrades of a Shoot.
pub const NEWER_VERSION: &str = "1.34.5";
/// Namespace of the project.
pub const PROJECT: &str = "garden-dev";
/// Namespace in the garden that simulates the cloud.
pub const CLOUD: &str = "cloud";

/// Writes an object as a user does.
pub async fn apply(client: &Client, object: Value) -> Result<()> {
    let object: DynamicObject = serde_json::from_value(object)?;
    let types = object.types.clone().context("an object without kind")?;
    let (resource, capabilities) = pinned_kind(client, &GroupVersionKind::try_from(&types)?).await?;
    let api: Api<DynamicObject> = match (&capabilities.scope, object.namespace()) {
        (kube::discovery::Scope::Namespaced, Some(namespace)) => {
            Api::namespaced_with(client.clone(), &namespace, &resource)
        }
        _ => Api::all_with(client.clone(), &resource),
    };
    let mut params = PatchParams::apply("user").force();
    params.field_validation = Some(kube::api::ValidationDirective::Strict);
    api.patch(&object.name_any(), &params, &Patch::Apply(&object))
        .await
        .with_context(|| format!("{} {} was refused", types.kind, object.name_any()))?;
    Ok(())
}

pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

fn secret(namespace: &str, name: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"namespace": namespace, "name": name}, "stringData": data,
    })
}

/// Writes all objects.
pub async fn fill(garden: &ControlPlane, dns: &NameServer, store: &ObjectStore) -> Result<()> {
    let client = garden.admin();
    for name in ["garden", PROJECT, CLOUD] {
        let mut namespace = namespace(name);
        if name == PROJECT {
            namespace["metadata"]["labels"] = json!({
                "project.gardener.cloud/name": "dev", "gardener.cloud/role": "project",
            });
        }
        apply(&client, namespace).await?;
    }
    let kubeconfig = serde_yaml_ng::to_string(&garden.kubeconfig("cloud", &["system:masters"])?)?;
    let objects = [
        guest::registration(),
        secret(
            PROJECT,
            "cloud",
            &json!({"namespace": CLOUD, "kubeconfig": kubeconfig}),
        ),
        json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": {"name": "local"},
            "spec": {
                "type": "local", "regions": [{"name": "local"}],
                "kubernetes": {"versions": [{"version": VERSION}, {"version": NEWER_VERSION}]},
                "machineImages": [{"name": "local", "versions": [{"version": "1.0.0", "cri": [{"name": "containerd"}]}]}],
                "providerConfig": {"machineImages": [{"name": "local", "versions": [{"version": "1.0.0", "image": "not-run"}]}]},
                "machineTypes": [{"name": "local", "cpu": "1", "gpu": "0", "memory": "1Gi"}],
            },
        }),
        json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "metadata": {"name": "dev"},
            "spec": {"namespace": PROJECT},
        }),
        json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "SecretBinding",
            "metadata": {"name": "cloud", "namespace": PROJECT},
            "provider": {"type": "local"}, "secretRef": {"name": "cloud", "namespace": PROJECT},
        }),
    ];
    for object in objects.into_iter().chain(credentials(dns, store)) {
        apply(&client, object).await?;
    }
    Ok(())
}

/// The namespace of each seed with its credentials, as garden-controller-manager labels the namespace.
fn credentials(dns: &NameServer, store: &ObjectStore) -> Vec<Value> {
    let of_seed = |seed: &str| {
        let home = seed_namespace(seed);
        let mut namespace = namespace(&home);
        namespace["metadata"]["labels"] = json!({"gardener.cloud/role": "seed"});
        let dns = json!({
            "server": dns.address, "tsigKeyName": dns.tsig_key_name,
            "tsigSecret": dns.tsig_secret, "tsigAlgorithm": dns.tsig_algorithm,
        });
        let backup = json!({
            "accessKeyID": store.access_key_id, "secretAccessKey": store.secret_access_key,
            "region": store.region, "endpoint": store.endpoint,
        });
        [
            namespace,
            secret(&home, "dns", &dns),
            secret(&home, "backup", &backup),
        ]
    };
    ["seed-a", "seed-b"].into_iter().flat_map(of_seed).collect()
}

/// A Seed with backups and a domain; the DNS server `authority` serves the domain's names.
pub fn seed(name: &str, authority: &str) -> Value {
    let home = seed_namespace(name);
    let secret = |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "namespace": home, "name": name});
    let domain = |domain: String| json!({"type": "local", "domain": domain, "zone": DOMAIN, "credentialsRef": secret("dns")});
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": name},
        "spec": {
            "provider": {"type": "local", "region": "local"},
            "networks": {"pods": "10.10.0.0/16", "services": "10.110.0.0/16"},
            "backup": {"provider": "local", "region": "local", "credentialsRef": secret("backup")},
            "settings": {"ownerChecks": {"enabled": true, "authorities": [authority]}},
            "dns": {"internal": domain(format!("internal.{DOMAIN}")), "defaults": [domain(DOMAIN.to_owned())]},
        },
    })
}

/// A Shoot as a user writes the object.
pub fn shoot(name: &str) -> Value {
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
        "metadata": {"name": name, "namespace": PROJECT},
        "spec": {
            "cloudProfile": {"name": "local"}, "secretBindingName": "cloud", "region": "local", "seedName": "seed-a",
            "networking": {"type": "local", "pods": "100.96.0.0/11", "services": "100.64.0.0/13"},
            "provider": {
                "type": "local",
                "infrastructureConfig": {
                    "apiVersion": "local.provider.extensions.gardener.cloud/v1alpha1", "kind": "InfrastructureConfig",
                },
                "controlPlaneConfig": {
                    "apiVersion": "local.provider.extensions.gardener.cloud/v1alpha1", "kind": "ControlPlaneConfig",
                },
            },
            "kubernetes": {"version": VERSION},
            "extensions": guest::wanted(),
        },
    })
}
