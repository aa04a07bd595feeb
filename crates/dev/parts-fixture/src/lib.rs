//! Development only: a real API server that serves as garden and seed, with the objects that the facts of a
//! shoot are read from.

#![allow(clippy::must_use_candidate)] // only tests use this crate

pub mod terms;
pub mod zone;

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Context, Result};
use api::gardencore::{Shoot, ShootState, ShootStateSpec};
use k8s_openapi::{api::core::v1::Secret, serde::de::DeserializeOwned};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use parts::{Facts, Operation, Settings};
use runtime::client::{Garden, Permit, Seed};
use serde_json::{Value, json};
use testkit::ControlPlane;

/// The project's namespace.
pub const PROJECT: &str = "garden-dev";
/// The namespace of the garden with the credentials of the Seed.
pub const OF_SEED: &str = "seed-seed-a";
/// The shoot's namespace in the seed.
pub const NAMESPACE: &str = "shoot--dev--web";

/// A garden that is also a seed, with a project, a profile, a Seed and a Shoot.
pub struct World {
    /// The control plane of the fixture.
    pub plane: ControlPlane,
}

impl World {
    /// Starts the fixture.
    pub async fn start(name: &str) -> Result<Self> {
        let plane = ControlPlane::start(name).await?;
        let crds: Vec<_> = api::all_crds().into_iter().map(|crd| crd.definition).collect();
        testkit::apply_crds(&plane.admin(), &crds).await?;
        let world = Self { plane };
        for namespace in [PROJECT, "garden", "garden-exposure", OF_SEED] {
            world.apply("v1", "Namespace", None, namespace, json!({})).await?;
        }
        let core = "core.gardener.cloud/v1beta1";
        world
            .apply(
                core,
                "Project",
                None,
                "dev",
                json!({"spec": {"namespace": PROJECT}}),
            )
            .await?;
        world
            .apply(
                "v1",
                "Secret",
                Some(OF_SEED),
                "dns",
                json!({"stringData": {"server": "127.0.0.1:53"}}),
            )
            .await?;
        let profile = json!({"spec": {"type": "local", "regions": [{"name": "local"}],
            "kubernetes": {"versions": [{"version": "1.34.4"}]}, "machineImages": [], "machineTypes": []}});
        world.apply(core, "CloudProfile", None, "local", profile).await?;
        let dns = json!({"type": "local", "domain": "internal.example.test",
            "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": OF_SEED, "name": "dns"}});
        let seed = json!({"spec": {"provider": {"type": "local", "region": "local"}, "dns": {"internal": dns},
            "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"}}});
        world.apply(core, "Seed", None, "seed-a", seed).await?;
        let shoot = json!({"spec": {"cloudProfile": {"name": "local"}, "region": "local", "seedName": "seed-a",
            "kubernetes": {"version": "1.34.4"}, "provider": {"type": "local"}}});
        world.apply(core, "Shoot", Some(PROJECT), "web", shoot).await?;
        Ok(world)
    }

    /// The empty Secret that garden-controller-manager creates for the Shoot.
    pub async fn make_kubeconfig_secret(&self) -> Result<()> {
        let shoots: Api<Shoot> = Api::namespaced(self.client(), PROJECT);
        let shoot = shoots.get("web").await?;
        let secret = serde_json::from_value(json!({"metadata": {
            "name": "web.kubeconfig", "ownerReferences": [shoot.controller_owner_ref(&())],
        }}))?;
        let secrets: Api<Secret> = Api::namespaced(self.client(), PROJECT);
        secrets.create(&PostParams::default(), &secret).await?;
        Ok(())
    }

    /// The ShootState that garden-controller-manager creates for the Shoot.
    pub async fn make_shoot_state(&self, spec: ShootStateSpec) -> Result<ShootState> {
        let shoots: Api<Shoot> = Api::namespaced(self.client(), PROJECT);
        let shoot = shoots.get("web").await?;
        let mut state = ShootState::new("web", spec);
        state.metadata.owner_references = shoot.controller_owner_ref(&()).map(|owner| vec![owner]);
        let states: Api<ShootState> = Api::namespaced(self.client(), PROJECT);
        Ok(states.create(&PostParams::default(), &state).await?)
    }

    /// A client with all rights.
    pub fn client(&self) -> Client {
        self.plane.admin()
    }

    /// The facts of the shoot for this operation.
    pub async fn facts(&self, operation: Operation, settings: Settings) -> Result<Facts> {
        let shoots: Api<Shoot> = Api::namespaced(self.client(), PROJECT);
        let shoot = shoots.get("web").await?;
        let (garden, seed) = (
            Garden::new(self.client(), &Permit::sole("a test")),
            Seed::new(self.client(), &Permit::sole("a test")),
        );
        Ok(Facts::new(
            garden,
            seed,
            Arc::new(settings),
            "seed-a",
            Arc::new(shoot),
            operation,
        )
        .await?)
    }

    /// Applies an object.
    pub async fn apply(
        &self,
        version: &str,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
        body: Value,
    ) -> Result<()> {
        let mut object = body;
        object["apiVersion"] = json!(version);
        object["kind"] = json!(kind);
        object["metadata"] = json!({"name": name});
        let params = PatchParams::apply("test").force();
        self.any(version, kind, namespace)
            .patch(name, &params, &Patch::Apply(&object))
            .await
            .with_context(|| format!("{kind} {name}"))?;
        Ok(())
    }

    /// Merges a status into an object, like the object's controller.
    pub async fn status(&self, version: &str, kind: &str, name: &str, status: Value) -> Result<()> {
        let body = Patch::Merge(json!({"status": status}));
        self.any(version, kind, Some(NAMESPACE))
            .patch_status(name, &PatchParams::default(), &body)
            .await?;
        Ok(())
    }

    /// An API for any kind.
    pub fn any(&self, version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client(), namespace, &kind),
            None => Api::all_with(self.client(), &kind),
        }
    }

    /// Reads an object of the shoot's namespace.
    pub async fn read<K>(&self, name: &str) -> Result<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        Ok(Api::<K>::namespaced(self.client(), NAMESPACE).get(name).await?)
    }

    /// All Secrets of the shoot's namespace.
    pub async fn secrets(&self) -> Result<BTreeMap<String, Secret>> {
        let api: Api<Secret> = Api::namespaced(self.client(), NAMESPACE);
        let list = api.list(&kube::api::ListParams::default()).await?;
        Ok(list
            .items
            .into_iter()
            .map(|secret| (secret.name_any(), secret))
            .collect())
    }
}
