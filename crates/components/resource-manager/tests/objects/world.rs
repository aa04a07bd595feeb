//! Shared parts of the scenarios: shoots, ManagedResources, objects, and waiting.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Result;
use api::{
    Target, crds_of,
    meta::{Condition, ConditionStatus, find_condition},
    resources::ManagedResource,
};
use clap::Parser;
use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{ConfigMap, Namespace, Secret},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use resource_manager::{
    flags::Flags,
    names::{KUBECONFIG_KEY, KUBECONFIG_SECRET},
};
use runtime::{
    client::{
        Permit, Seed,
        apply::{FieldManager, Object},
        wait::{self, WaitState},
    },
    process::Process,
};
use serde_json::{Value, json};
use testkit::{ControlPlane, PlayedKubelet, apply_crds};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Far longer than any step takes on an idle machine: some seconds.
pub const SOON: Duration = Duration::from_secs(120);

const TEST: FieldManager = FieldManager("test");

/// The account of the controller.
const ACCOUNT: &str = "system:serviceaccount:garden:resource-manager";

/// A seed with a running resource-manager, and the API server of all shoots.
pub struct World {
    pub seed: Client,
    pub shoot: Client,
    kubeconfig: Vec<u8>,
    stop: CancellationToken,
    running: JoinSet<Result<()>>,
    _pods: PlayedKubelet,
    _planes: [ControlPlane; 2],
}

/// Namespace of a shoot in the seed, and a namespace of the same name in the shoot for the objects.
pub struct ShootNamespace<'a> {
    pub world: &'a World,
    pub name: &'static str,
}

impl World {
    pub async fn start() -> Result<Self> {
        let [seed, shoot] = ControlPlane::start_all(["seed", "shoot"]).await?;
        apply_crds(&seed.admin(), &crds_of(Target::Seed)).await?;
        testkit::grant_chart(&seed.admin(), "resource-manager", ACCOUNT).await?;
        let client = seed
            .client(ACCOUNT, &["system:serviceaccounts", "system:authenticated"])
            .await?;
        let flags = Flags::parse_from(["resource-manager"]);
        let mut process = Process::new("resource-manager");
        let manager = resource_manager::run(
            Seed::new(client, &Permit::sole("a test")),
            flags,
            process.metrics.clone(),
            process.shutdown.clone(),
        );
        process.part("managed-resource", manager);
        let stop = process.shutdown.clone();
        let mut running = JoinSet::new();
        running.spawn(async move { Ok(process.run().await?) });
        let kubeconfig = shoot.kubeconfig("resource-manager", &["system:masters"])?;
        Ok(Self {
            seed: seed.admin(),
            shoot: shoot.admin(),
            kubeconfig: serde_json::to_vec(&kubeconfig)?,
            stop,
            running,
            _pods: PlayedKubelet::start(&shoot.admin()),
            _planes: [seed, shoot],
        })
    }

    /// The resource-manager ends without an error.
    pub async fn end(mut self) -> Result<()> {
        self.stop.cancel();
        while let Some(ended) = self.running.join_next().await {
            ended??;
        }
        Ok(())
    }

    /// A shoot with a kubeconfig Secret.
    pub async fn shoot(&self, name: &'static str) -> Result<ShootNamespace<'_>> {
        let place = self.namespace(name).await?;
        place.give_way(&self.kubeconfig).await?;
        Ok(place)
    }

    /// The same without the kubeconfig Secret.
    pub async fn namespace(&self, name: &'static str) -> Result<ShootNamespace<'_>> {
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        for client in [&self.seed, &self.shoot] {
            TEST.apply(&Api::all(client.clone()), &namespace).await?;
        }
        Ok(ShootNamespace { world: self, name })
    }

    pub fn way(&self) -> &[u8] {
        &self.kubeconfig
    }
}

impl ShootNamespace<'_> {
    pub async fn give_way(&self, kubeconfig: &[u8]) -> Result<()> {
        self.secret(KUBECONFIG_SECRET, &[(KUBECONFIG_KEY, kubeconfig)])
            .await
    }

    pub fn resources(&self) -> Api<ManagedResource> {
        self.in_seed()
    }

    pub fn in_seed<K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>>(&self) -> Api<K> {
        Api::namespaced(self.world.seed.clone(), self.name)
    }

    pub fn in_shoot<K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>>(&self) -> Api<K> {
        Api::namespaced(self.world.shoot.clone(), self.name)
    }

    pub async fn secret(&self, name: &str, data: &[(&str, &[u8])]) -> Result<()> {
        let data: BTreeMap<String, k8s_openapi::ByteString> = data
            .iter()
            .map(|(key, bytes)| ((*key).to_owned(), k8s_openapi::ByteString(bytes.to_vec())))
            .collect();
        let mut secret = Secret {
            data: Some(data),
            ..Secret::default()
        };
        secret.metadata.name = Some(name.to_owned());
        TEST.apply(&self.in_seed(), &secret).await?;
        Ok(())
    }

    /// A ManagedResource, and a Secret of the same name with these objects.
    pub async fn resource(&self, name: &str, spec: Value, objects: &[Value]) -> Result<()> {
        self.manifests(name, objects).await?;
        self.naming(name, name, spec).await
    }

    /// A ManagedResource that names this Secret.
    pub async fn naming(&self, name: &str, secret: &str, spec: Value) -> Result<()> {
        let mut object = json!({"metadata": {"name": name}, "spec": {"secretRefs": [{"name": secret}]}});
        object["spec"]
            .as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        let resource: ManagedResource = serde_json::from_value(object)?;
        TEST.apply(&self.resources(), &resource).await?;
        Ok(())
    }

    pub async fn manifests(&self, secret: &str, objects: &[Value]) -> Result<()> {
        let text: Vec<String> = objects.iter().map(Value::to_string).collect();
        self.secret(secret, &[("objects.yaml", text.join("\n---\n").as_bytes())])
            .await
    }

    pub async fn delete(&self, name: &str) -> Result<()> {
        self.resources()
            .delete(name, &kube::api::DeleteParams::default())
            .await?;
        Ok(())
    }

    pub async fn gone(&self, name: &str) -> Result<()> {
        let resources = self.resources();
        let gone = testkit::measured("the object is gone", SOON, |bound| {
            wait::until_gone(&resources, name, bound)
        });
        Ok(gone.await?)
    }

    /// Waits until the objects are applied, for the present generation and for Secrets with a checksum other
    /// than `before`.
    pub async fn applied(&self, name: &str, before: Option<&str>) -> Result<ManagedResource> {
        self.until(name, "it is applied", |resource| {
            let status = resource.status.as_ref()?;
            let holds = is(resource, "ResourcesApplied", ConditionStatus::True)
                && status.observed_generation == resource.metadata.generation
                && status.secrets_data_checksum.as_deref() != before;
            holds.then_some(())
        })
        .await
    }

    /// Waits until a condition has this status and a message with this text.
    pub async fn tells(
        &self,
        name: &str,
        type_: &str,
        status: ConditionStatus,
        message: &str,
    ) -> Result<ManagedResource> {
        self.until(name, message, |resource| {
            let found = condition(resource, type_)?;
            (found.status == status && found.message.contains(message)).then_some(())
        })
        .await
    }

    pub async fn until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&ManagedResource) -> Option<()> + Send + Sync,
    ) -> Result<ManagedResource> {
        until(&self.resources(), name, what, |resource| {
            holds(resource).is_some()
        })
        .await
    }

    /// Waits until a ConfigMap in the shoot has this value under `k`.
    pub async fn says(&self, name: &str, value: &str) -> Result<ConfigMap> {
        until(&self.in_shoot(), name, value, |map: &ConfigMap| {
            value_of(map) == Some(value)
        })
        .await
    }
}

pub fn value_of(map: &ConfigMap) -> Option<&str> {
    map.data.as_ref()?.get("k").map(String::as_str)
}

pub fn checksum(resource: &ManagedResource) -> Option<&str> {
    resource.status.as_ref()?.secrets_data_checksum.as_deref()
}

pub fn condition<'a>(resource: &'a ManagedResource, type_: &str) -> Option<&'a Condition> {
    find_condition(&resource.status.as_ref()?.conditions, type_)
}

pub fn is(resource: &ManagedResource, type_: &str, status: ConditionStatus) -> bool {
    condition(resource, type_).is_some_and(|condition| condition.status == status)
}

/// A ConfigMap in a namespace of the shoot, with a single value and these annotations below
/// `resources.gardener.cloud/`.
pub fn map(namespace: &str, name: &str, value: &str, annotations: &[(&str, &str)]) -> Value {
    let annotations: BTreeMap<_, _> = annotations
        .iter()
        .map(|(key, value)| (format!("resources.gardener.cloud/{key}"), *value))
        .collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": value},
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations}})
}

pub fn names(resource: &ManagedResource) -> Vec<String> {
    let objects = resource.status.iter().flat_map(|status| &status.resources);
    objects.filter_map(|object| object.name.clone()).collect()
}

pub async fn until<K: Object>(
    api: &Api<K>,
    name: &str,
    what: &str,
    holds: impl Fn(&K) -> bool + Send + Sync,
) -> Result<K> {
    let look = |object: Option<&K>| match object {
        Some(object) if holds(object) => WaitState::Done,
        other => WaitState::Wait(format!(
            "awaiting: {what}; it is {}",
            serde_json::to_string(&other).unwrap()
        )),
    };
    let found = testkit::measured(what, SOON, |bound| wait::until(api, name, bound, look));
    Ok(found.await?.unwrap())
}

/// Changes an object as another writer.
pub async fn change<K: Object>(api: &Api<K>, name: &str, body: Value) -> Result<K> {
    Ok(api
        .patch(name, &PatchParams::default(), &Patch::Merge(body))
        .await?)
}

pub async fn uid<K: Object>(api: &Api<K>, name: &str) -> Result<String> {
    Ok(api.get(name).await?.uid().unwrap())
}
