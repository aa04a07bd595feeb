//! The kinds of a garden on a real API server, for the tests of the commands.

use std::time::Duration;

use anyhow::Result;
use api::{Target, all_crds, gardencore::Shoot};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use kubectl_repot::session::Session;
use permit::Permit;
use serde_json::{Value, json};
use testkit::{ControlPlane, apply, apply_crds};

pub const NAMESPACE: &str = "garden-dev";
/// Many times the duration of a request, also on a busy machine.
pub const SOON: Duration = Duration::from_secs(60);
pub struct Fixture {
    pub plane: ControlPlane,
    pub client: Client,
    pub shoots: Api<Shoot>,
    pub session: Session,
}

impl Fixture {
    pub async fn start() -> Result<Self> {
        let plane = ControlPlane::start("garden").await?;
        let client = plane.admin();
        let crds: Vec<CustomResourceDefinition> = all_crds()
            .into_iter()
            .filter(|crd| crd.target == Target::Garden)
            .map(|crd| crd.definition)
            .collect();
        apply_crds(&client, &crds).await?;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        apply(&client, namespace).await?;
        for name in ["seed-a", "seed-b", "seed-c"] {
            let spec = json!({"dns": {}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
                "provider": {"type": "local", "region": "local"}});
            apply(&client, object("Seed", json!({"name": name}), &spec)).await?;
        }
        Ok(Self {
            shoots: Api::namespaced(client.clone(), NAMESPACE),
            session: session(client.clone()),
            client,
            plane,
        })
    }

    /// A Shoot on seed-a after this operation.
    pub async fn shoot(&self, name: &str, last: &str) -> Result<Shoot> {
        let spec = json!({"cloudProfile": {"name": "local", "kind": "CloudProfile"}, "region": "local",
            "provider": {"type": "local"}, "kubernetes": {"version": "1.34.4"}, "seedName": "seed-a"});
        let metadata = json!({"name": name, "namespace": NAMESPACE});
        apply(&self.client, object("Shoot", metadata, &spec)).await?;
        let status =
            json!({"seedName": "seed-a", "settledSeedName": "seed-a", "lastOperation": operation(last)});
        self.write_status(name, status).await
    }

    /// Moves the status of a Shoot to this seed, and keeps the wish. The ShootState is saved.
    pub async fn host_on(&self, shoots: &Api<Shoot>, name: &str, seed: &str, purpose: &str) -> Result<()> {
        let spec = json!({"spec": {"seedName": seed, "purpose": purpose}});
        shoots
            .patch(name, &PatchParams::default(), &Patch::Merge(spec))
            .await?;
        let time = "2026-01-01T00:00:00Z";
        let saved = json!({"type": "ShootStateUpToDate", "status": "True", "reason": "r", "message": "m",
            "lastTransitionTime": time, "lastUpdateTime": time});
        let status = json!({"status": {"seedName": seed, "settledSeedName": seed, "constraints": [saved],
            "lastOperation": operation("Reconcile Succeeded")}});
        shoots
            .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
            .await?;
        Ok(())
    }

    pub async fn write_status(&self, name: &str, status: Value) -> Result<Shoot> {
        let patch = Patch::Merge(json!({"status": status}));
        Ok(self
            .shoots
            .patch_status(name, &PatchParams::default(), &patch)
            .await?)
    }

    pub async fn merge(&self, name: &str, patch: Value) -> Result<Shoot> {
        Ok(self
            .shoots
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await?)
    }
}

pub fn object(kind: &str, metadata: Value, spec: &Value) -> Value {
    let mut object = json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": kind, "spec": spec});
    object["metadata"] = metadata;
    object
}

pub fn operation(last: &str) -> Value {
    let (type_, state) = last.split_once(' ').unwrap();
    json!({"type": type_, "state": state, "progress": 30, "description": "d", "lastUpdateTime": "2026-01-01T00:00:00Z"})
}

pub fn session(client: Client) -> Session {
    let garden = runtime::client::Garden::new(client, &Permit::sole("a test"));
    Session::new(garden, NAMESPACE, SOON)
}

pub fn silent(_: &str) {}
