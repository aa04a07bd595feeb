//! Leftovers of worker pools that a Shoot no longer has, on a real API server: of a single pool, and of all
//! pools.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use anyhow::Result;
use api::{
    extensions::{Network, OperatingSystemConfig, Worker},
    gardencore::shoot::Worker as Pool,
    resources::ManagedResource,
};
use k8s_openapi::{NamespaceResourceScope, api::core::v1::Secret};
use kube::{Api, Resource, ResourceExt, api::ListParams};
use parts::{
    Deploy, Destroy, Facts, KubeProxy, Namespace, NodeExtensions, OperatingSystemConfigs, Operation,
    Settings, Workers,
};
use parts_fixture::{NAMESPACE, World};
use runtime::{client::apply::Object, controller::finalizer};
use serde_json::{Value, json};

const EXTENSIONS: &str = "extensions.gardener.cloud/v1alpha1";

#[tokio::test]
async fn what_is_left_of_removed_pools_goes() -> Result<()> {
    let world = World::start("pools").await?;
    let mut facts = world.facts(Operation::Reconcile, Settings::default()).await?;
    Namespace::deploy(&facts).await?;
    for pool in ["kept", "gone"] {
        let spec = json!({"type": "local", "purpose": "provision"});
        make(
            &world,
            "OperatingSystemConfig",
            &format!("cloud-config-{pool}"),
            spec,
        )
        .await?;
    }
    wants(&mut facts, &["kept"]);
    OperatingSystemConfigs::delete_stale(&facts).await?;
    OperatingSystemConfigs::stale_gone(&facts).await?;
    assert_eq!(
        names::<OperatingSystemConfig>(&world).await?,
        ["cloud-config-kept"]
    );

    // Admission refuses to remove the last pool; a removal that happens anyway leaves no machine behind.
    let secret = json!({"name": "cloudprovider", "namespace": NAMESPACE});
    let worker = json!({"type": "local", "region": "local", "secretRef": secret, "pools": []});
    make(&world, "Worker", "web", worker).await?;
    let workers: Api<Worker> = Api::namespaced(world.client(), NAMESPACE);
    let held = json!({"metadata": {"finalizers": ["extensions.gardener.cloud/worker"]}});
    runtime::client::apply::FieldManager("test")
        .merge(&workers, "web", &held)
        .await?;
    let network = json!({"type": "local", "podCIDR": "100.96.0.0/11", "serviceCIDR": "100.64.0.0/13"});
    make(&world, "Network", "web", network).await?;
    let proxy = json!({"spec": {"secretRefs": [{"name": "managedresource-shoot-core-kube-proxy"}]}});
    let (version, name) = ("resources.gardener.cloud/v1alpha1", "shoot-core-kube-proxy");
    world
        .apply(version, "ManagedResource", Some(NAMESPACE), name, proxy)
        .await?;
    let secret = "managedresource-shoot-core-kube-proxy";
    world
        .apply("v1", "Secret", Some(NAMESPACE), secret, json!({}))
        .await?;

    wants(&mut facts, &[]);
    Workers::destroy(&facts.residency).await?;
    let going = workers.get("web").await?;
    assert!(going.metadata.deletion_timestamp.is_some());
    assert_eq!(
        going.annotations()["confirmation.gardener.cloud/deletion"],
        "true"
    );
    finalizer::remove_all(&workers, &going).await?;
    Workers::gone(&facts.residency).await?;
    NodeExtensions::destroy(&facts.residency).await?;
    NodeExtensions::gone(&facts.residency).await?;
    KubeProxy::deploy(&facts).await?;
    let none: [&str; 0] = [];
    assert_eq!(names::<Network>(&world).await?, none);
    assert_eq!(names::<OperatingSystemConfig>(&world).await?, none);
    assert_eq!(names::<ManagedResource>(&world).await?, none);
    assert!(!names::<Secret>(&world).await?.iter().any(|name| name == secret));
    // A second run, without leftovers.
    Workers::destroy(&facts.residency).await?;
    Workers::gone(&facts.residency).await?;
    Ok(())
}

/// Sets the pools of the Shoot.
fn wants(facts: &mut Facts, pools: &[&str]) {
    let mut shoot = (*facts.shoot).clone();
    let pool = |name: &&str| Pool {
        name: (*name).to_owned(),
        ..Pool::default()
    };
    shoot.spec.provider.workers = pools.iter().map(pool).collect();
    facts.shoot = Arc::new(shoot);
}

async fn make(world: &World, kind: &str, name: &str, spec: Value) -> Result<()> {
    world
        .apply(EXTENSIONS, kind, Some(NAMESPACE), name, json!({"spec": spec}))
        .await
}

async fn names<K: Object + Resource<Scope = NamespaceResourceScope>>(world: &World) -> Result<Vec<String>> {
    let api: Api<K> = Api::namespaced(world.client(), NAMESPACE);
    let all = api.list(&ListParams::default()).await?;
    Ok(all.iter().map(ResourceExt::name_any).collect())
}
