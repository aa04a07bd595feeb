//! Development only: Shoots that need no work, for measurements of idle processes: the gardenlet, and the
//! controllers of the garden.

use anyhow::Result;
use api::gardencore::Shoot;
use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::apply;

/// Namespace of the Shoots.
pub const PROJECT: &str = "garden-dev";

/// A Shoot of seed-a that needs no work for an hour. `config`: the provider configuration of the user.
pub async fn settled(client: &Client, number: usize, config: Value) -> Result<()> {
    let name = format!("s{number}");
    let object = json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
        "metadata": {"name": name, "namespace": PROJECT, "finalizers": ["gardener"]},
        "spec": {"cloudProfile": {"name": "local"}, "secretBindingName": "cloud", "region": "local", "seedName": "seed-a",
            "networking": {"type": "local", "pods": "100.96.0.0/11", "services": "100.64.0.0/13"},
            "provider": {"type": "local", "infrastructureConfig": config}, "kubernetes": {"version": "1.34.4"}}});
    let written = apply(client, object).await?;
    let status = json!({"status": {"technicalID": format!("shoot--dev--{name}"), "uid": written.metadata.uid, "seedName": "seed-a",
        "observedGeneration": written.metadata.generation, "hibernated": false,
        "lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100, "lastUpdateTime": now(),
            "description": "Shoot cluster has been successfully reconciled."}}});
    let shoots: Api<Shoot> = Api::namespaced(client.clone(), PROJECT);
    shoots
        .patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
        .await?;
    Ok(())
}

#[allow(clippy::disallowed_methods)] // the status needs present time stamps
fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
