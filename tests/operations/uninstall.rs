//! The uninstallation of a chart removes processes, rights and policies, and never the objects of users.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use testkit::{ControlPlane, eventually};

use crate::programs::{Desk, REGISTRIES};

/// A policy with a parameter kind refuses all requests until the API server has found the kind, every half
/// minute.
const IN_FORCE_WITHIN: Duration = Duration::from_secs(90);

/// Creates objects of any kind by kubectl and returns the identities of the objects.
async fn make(desk: &Desk, objects: &[Value]) -> Vec<String> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    desk.write("objects.json", &list.to_string()).unwrap();
    eventually("objects can be made", IN_FORCE_WITHIN, || async {
        desk.run("kubectl", &["apply", "-f", "objects.json"])
            .await?
            .or_fail("kubectl apply")
    })
    .await
    .unwrap();
    alive(desk).await
}

/// The uid of each object of `objects.json` that is there and not being deleted.
async fn alive(desk: &Desk) -> Vec<String> {
    let template = "{range .items[*]}{.kind}/{.metadata.name} {.metadata.uid} {.metadata.deletionTimestamp}{\"\\n\"}{end}";
    let said = desk
        .run(
            "kubectl",
            &["get", "-f", "objects.json", "-o", &format!("jsonpath={template}")],
        )
        .await
        .unwrap()
        .or_fail("kubectl get")
        .unwrap();
    said.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// All objects of a Helm release are gone, except objects that hold data.
async fn only_data_is_left(client: &Client, namespaces: &[&str]) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in definitions.list(&ListParams::default()).await? {
        assert!(
            definition.metadata.deletion_timestamp.is_none(),
            "{} goes",
            definition.name_any()
        );
    }
    let all: Api<Namespace> = Api::all(client.clone());
    for name in namespaces {
        let namespace = all.get(name).await?;
        assert!(
            namespace.metadata.deletion_timestamp.is_none(),
            "namespace {name} goes"
        );
    }
    let deployments: Api<Deployment> = Api::all(client.clone());
    assert_eq!(deployments.list(&ListParams::default()).await?.items.len(), 0);
    Ok(())
}

async fn secret(client: &Client, namespace: &str) {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let secret = serde_json::from_value(json!({"metadata": {"name": "precious"}})).unwrap();
    secrets.create(&PostParams::default(), &secret).await.unwrap();
}

async fn helm(desk: &Desk, args: &[&str]) -> String {
    desk.run("helm", args).await.unwrap().or_fail("helm").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn uninstalling_the_garden_deletes_no_shoot_and_no_seed() {
    let plane = ControlPlane::start("garden").await.unwrap();
    let client = plane.admin();
    let desk = Desk::at(plane.admin_kubeconfig_file()).unwrap();
    let install = [
        "install",
        "garden",
        "charts/garden",
        "-n",
        "garden",
        "--create-namespace",
        REGISTRIES[0],
        REGISTRIES[1],
    ];
    helm(&desk, &install).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden-dev",
        "labels": {"project.gardener.cloud/name": "dev"}}});
    let core = "core.gardener.cloud/v1beta1";
    let before = make(&desk, &[
        namespace,
        json!({"apiVersion": core, "kind": "Seed", "metadata": {"name": "seed-a"}, "spec": {"dns": {},
            "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"}, "provider": {"type": "local", "region": "local"}}}),
        json!({"apiVersion": core, "kind": "Shoot", "metadata": {"name": "demo", "namespace": "garden-dev"},
            "spec": {"cloudProfile": {"name": "local"}, "region": "local", "provider": {"type": "local"}}}),
        json!({"apiVersion": core, "kind": "BackupEntry", "metadata": {"name": "b", "namespace": "garden-dev"},
            "spec": {"bucketName": "bucket", "seedName": "seed-a"}}),
    ])
    .await;
    secret(&client, "garden").await;
    helm(&desk, &["uninstall", "garden", "-n", "garden"]).await;
    only_data_is_left(&client, &["garden", "gardener-system-seed-lease"])
        .await
        .unwrap();
    assert_eq!(alive(&desk).await, before);
    // The kept objects do not block the next installation.
    helm(&desk, &install).await;
    assert_eq!(alive(&desk).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn uninstalling_a_seed_deletes_no_etcd_and_no_extension_resource() {
    let plane = ControlPlane::start("seed").await.unwrap();
    let client = plane.admin();
    let desk = Desk::at(plane.admin_kubeconfig_file()).unwrap();
    let install = [
        "install",
        "seed",
        "charts/seed",
        "-n",
        "garden",
        "--create-namespace",
        REGISTRIES[0],
        REGISTRIES[1],
    ];
    helm(&desk, &install).await;
    let name = json!({"name": "etcd-main", "namespace": "shoot--dev--demo"});
    let extensions = "extensions.gardener.cloud/v1alpha1";
    let before = make(&desk, &[
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shoot--dev--demo"}}),
        json!({"apiVersion": "druid.gardener.cloud/v1alpha1", "kind": "Etcd", "metadata": name,
            "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "labels": {"a": "b"}, "etcd": {}, "backup": {}}}),
        json!({"apiVersion": extensions, "kind": "Infrastructure", "metadata": name, "spec": {"type": "local",
            "region": "local", "secretRef": {"name": "cloud", "namespace": "shoot--dev--demo"}}}),
    ])
    .await;
    secret(&client, "extension-provider-local").await;
    helm(&desk, &["uninstall", "seed", "-n", "garden"]).await;
    only_data_is_left(
        &client,
        &["garden", "garden-exposure", "extension-provider-local"],
    )
    .await
    .unwrap();
    assert_eq!(alive(&desk).await, before);
    helm(&desk, &install).await;
    assert_eq!(alive(&desk).await, before);
}

/// Every object of a chart that users fill is annotated, in the rendered manifests.
#[tokio::test]
async fn every_definition_and_namespace_of_a_chart_is_kept() {
    let desk = Desk::new().unwrap();
    for chart in ["garden", "seed"] {
        let mut kept = 0;
        for object in desk.rendered(chart, &["--namespace", "elsewhere"]).await.unwrap() {
            let object: DynamicObject = serde_json::from_value(object).unwrap();
            let kind = object
                .types
                .as_ref()
                .map(|types| types.kind.clone())
                .unwrap_or_default();
            if matches!(kind.as_str(), "CustomResourceDefinition" | "Namespace") {
                let policy = object
                    .annotations()
                    .get("helm.sh/resource-policy")
                    .map(String::as_str);
                assert_eq!(policy, Some("keep"), "{chart}: {kind} {}", object.name_any());
                kept += 1;
            }
        }
        assert!(kept >= 12, "{chart}: {kept}");
    }
}
