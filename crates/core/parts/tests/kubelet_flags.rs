//! Flags of kubelets that depend on the provider's Deployments, on a real API server.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use anyhow::Result;
use api::{extensions::OperatingSystemConfig, gardencore::CloudProfile};
use parts::{Deploy, Facts, Namespace, OperatingSystemConfigs, Operation, Settings};
use parts_fixture::{NAMESPACE, World};
use runtime::clock;
use serde_json::{Value, json};

const EXTENSIONS: &str = "extensions.gardener.cloud/v1alpha1";
const DEPLOYMENT: &str = "cloud-controller-manager";

/// Without a cloud-controller-manager the taint would stay for ever, and no ordinary pod could start.
#[tokio::test]
async fn kubelets_wait_for_a_cloud_controller_manager_only_where_one_is_deployed() -> Result<()> {
    let world = World::start("kubelets").await?;
    let facts = facts(&world, Operation::Create).await?;
    Namespace::deploy(&facts).await?;
    for name in ["ca", "ca-kubelet"] {
        let authority = json!({"stringData": {"ca.crt": "an authority"}});
        world
            .apply("v1", "Secret", Some(NAMESPACE), name, authority)
            .await?;
    }
    let secret = json!({"name": "cloudprovider", "namespace": NAMESPACE});
    let spec = json!({"type": "local", "region": "local", "secretRef": secret});
    world
        .apply(
            EXTENSIONS,
            "ControlPlane",
            Some(NAMESPACE),
            "web",
            json!({"spec": spec}),
        )
        .await?;

    // The first machines wait for a provider that has not reported the Deployments yet, and the error is the
    // provider's error.
    reports(&world, failed()).await?;
    let error = OperatingSystemConfigs::deploy(&facts)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("the account is locked"), "{error}");

    reports(&world, succeeded()).await?;
    assert!(
        !is_external(&world, &facts).await?,
        "there is no cloud-controller-manager"
    );

    // With an existing Deployment, no further condition counts.
    reports(&world, failed()).await?;
    let pod =
        json!({"metadata": {"labels": {"role": "c"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment =
        json!({"spec": {"replicas": 0, "selector": {"matchLabels": {"role": "c"}}, "template": pod}});
    world
        .apply("apps/v1", "Deployment", Some(NAMESPACE), DEPLOYMENT, deployment)
        .await?;
    assert!(
        is_external(&world, &facts).await?,
        "there is a cloud-controller-manager"
    );

    // RZ-32: a failing ControlPlane does not block machines of an existing shoot, such as machines of the
    // remaining zones.
    let deployments = world.any("apps/v1", "Deployment", Some(NAMESPACE));
    deployments
        .delete(DEPLOYMENT, &kube::api::DeleteParams::default())
        .await?;
    let later = self::facts(&world, Operation::Reconcile).await?;
    assert!(is_external(&world, &later).await?, "the flag changes on a guess");
    reports(&world, succeeded()).await?;
    assert!(
        !is_external(&world, &later).await?,
        "the cloud-controller-manager has gone"
    );
    Box::pin(lacks_an_extension(&world)).await
}

/// Preflight of a creation: the error names the missing extension before any change, and an existing shoot
/// continues.
async fn lacks_an_extension(world: &World) -> Result<()> {
    let resources = json!([{"kind": "Infrastructure", "type": "local"}]);
    world
        .apply(
            "core.gardener.cloud/v1beta1",
            "ControllerRegistration",
            None,
            "provider-local",
            json!({"spec": {"resources": resources}}),
        )
        .await?;
    let refused = world.facts(Operation::Create, Settings::default()).await;
    let refused = refused.err().unwrap();
    assert!(
        refused
            .to_string()
            .contains("needs ControlPlane of type local, and"),
        "{refused}"
    );
    world.facts(Operation::Reconcile, Settings::default()).await?;
    Ok(())
}

/// A shoot with a pool.
async fn facts(world: &World, operation: Operation) -> Result<Facts> {
    let mut facts = world.facts(operation, Settings::default()).await?;
    let images = json!([{"name": "os", "versions": [{"version": "1.0.0"}]}]);
    let mut profile = serde_json::to_value(&facts.cloud_profile)?;
    profile["spec"]["machineImages"] = images;
    facts.cloud_profile = serde_json::from_value::<CloudProfile>(profile)?;
    let mut shoot = (*facts.shoot).clone();
    shoot.spec.provider.workers = vec![serde_json::from_value(json!({
        "name": "a", "minimum": 1, "maximum": 1, "machine": {"type": "small", "image": {"name": "os", "version": "1.0.0"}},
    }))?];
    facts.shoot = Arc::new(shoot);
    Ok(facts)
}

async fn is_external(world: &World, facts: &Facts) -> Result<bool> {
    OperatingSystemConfigs::deploy(facts).await?;
    let config: OperatingSystemConfig = world.read("cloud-config-a").await?;
    Ok(serde_json::to_string(&config.spec)?.contains("--cloud-provider=external"))
}

async fn reports(world: &World, status: Value) -> Result<()> {
    let generation = world
        .read::<api::extensions::ControlPlane>("web")
        .await?
        .metadata
        .generation;
    let mut status = status;
    status["observedGeneration"] = json!(generation);
    status["lastOperation"]["lastUpdateTime"] = json!(clock::now_rfc3339_nano());
    world.status(EXTENSIONS, "ControlPlane", "web", status).await
}

fn succeeded() -> Value {
    json!({
        "lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": ""},
        "lastError": null,
    })
}

fn failed() -> Value {
    json!({
        "lastOperation": {"type": "Reconcile", "state": "Error", "progress": 50, "description": "no"},
        "lastError": {"description": "the account is locked", "codes": ["ERR_INFRA_UNAUTHENTICATED"]},
    })
}
