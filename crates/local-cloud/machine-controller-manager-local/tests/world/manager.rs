//! A manager as a process, and a shoot for the manager: a single server is the seed and the API of the shoot.

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;
use base64::{Engine, engine::general_purpose::STANDARD};
use cloud_local::ProviderSpec;
use kube::Client;
use serde_json::{Value, json};
use testkit::{ControlPlane, Server, apply};

use crate::world::CLUSTER;

const MACHINE_API: &str = "machine.sapcloud.io/v1alpha1";

/// The namespace of a shoot with a class of machines.
pub async fn shoot(plane: &ControlPlane, credentials: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    let client = plane.admin();
    apply(
        &client,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CLUSTER}}),
    )
    .await?;
    let encoded = credentials
        .iter()
        .map(|(key, value)| (key.clone(), json!(STANDARD.encode(value))));
    let data = Value::Object(encoded.collect());
    apply(&client, object("v1", "Secret", "account", &json!({"data": data}))).await?;
    let script = json!({"stringData": {"userData": "join as <<MACHINE_NAME>> with <<BOOTSTRAP_TOKEN>>"}});
    apply(&client, object("v1", "Secret", "script", &script)).await?;
    let spec = ProviderSpec::new(CLUSTER, ["local", "a"], "small", "repot/machine:dev");
    let reference = |name: &str| json!({"name": name, "namespace": CLUSTER});
    let class = json!({"provider": "local", "providerSpec": serde_json::to_value(&spec)?,
        "secretRef": reference("script"), "credentialsSecretRef": reference("account")});
    apply(&client, object(MACHINE_API, "MachineClass", "first", &class)).await?;
    Ok(())
}

/// So many machines are wanted.
pub async fn pool(client: &Client, count: usize) -> Result<()> {
    let labels = json!({"pool": "first"});
    let deployment = json!({"spec": {"replicas": count, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels},
            "spec": {"class": {"kind": "MachineClass", "name": "first"}}}}});
    apply(
        client,
        object(MACHINE_API, "MachineDeployment", "first", &deployment),
    )
    .await?;
    Ok(())
}

/// The process.
pub fn manager(plane: &ControlPlane, folder: &Path, more: Vec<String>) -> Result<Server> {
    let kubeconfig = plane.admin_kubeconfig_file().display().to_string();
    let mut arguments = vec![
        format!("--control-kubeconfig={kubeconfig}"),
        format!("--target-kubeconfig={kubeconfig}"),
        format!("--namespace={CLUSTER}"),
        format!("--leader-elect-resource-namespace={CLUSTER}"),
        "--health-address=127.0.0.1:0".to_owned(),
    ];
    arguments.extend(more);
    let program = env!("CARGO_BIN_EXE_machine-controller-manager-local");
    Server::start(
        "machine-controller-manager-local",
        program,
        folder,
        arguments,
        &[],
    )
}

fn object(version: &str, kind: &str, name: &str, content: &Value) -> Value {
    let mut object = content.clone();
    object["apiVersion"] = json!(version);
    object["kind"] = json!(kind);
    object["metadata"] = json!({"name": name, "namespace": CLUSTER});
    object
}
