//! Development only: seeds with the namespace of a shoot on AWS, and the objects of `provider-aws`.

#![allow(clippy::must_use_candidate)] // only tests use this crate

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context as _, Result};
use api::{
    Target, crds_of,
    extensions::{Cluster, ExtensionObject, Worker},
};
use aws_fixture::region::{IMAGE, Region, SHOOT, credentials};
use cloud_aws::Ec2Access;
use extension::{Actuator, ExtensionReconciler, OwnerChecks, reconciler::namespaced};
use k8s_openapi::{
    ByteString, NamespaceResourceScope,
    api::core::v1::{Namespace, Secret},
};
use kube::{Api, Client, Resource, api::PostParams};
use provider_aws::{account::AccountAccess, controllers};
use runtime::client::{Permit, Seed, apply::FieldManager};
use serde_json::{Value, json};
use testkit::ControlPlane;

/// The field manager of the test, in place of all further writers.
pub const TEST: FieldManager = FieldManager("test");

/// EC2 behind the proxy. This EC2 lists an object as soon as the object is made. So an abandoned
/// reconciliation has made no object where EC2 lists none.
pub fn build_access(region: &Region) -> AccountAccess {
    AccountAccess {
        access: Ec2Access::with_bound(Some(region.proxy.endpoint.clone()), Duration::ZERO),
    }
}

/// Looks after objects of a seed.
pub fn reconciler<K, A>(seed: &Client, actuator: A) -> ExtensionReconciler<K, A>
where
    K: ExtensionObject + Resource<Scope = NamespaceResourceScope>,
    A: Actuator<K>,
{
    let seed = Seed::new(seed.clone(), &Permit::sole("a test"));
    ExtensionReconciler::new(
        controllers::provider(&seed, &OwnerChecks::default()),
        namespaced,
        actuator,
    )
}

/// A seed with the namespace, the Cluster and the account Secret of a shoot that belongs to the seed.
pub async fn seed(plane: &ControlPlane) -> Result<Client> {
    let seed = plane.admin();
    testkit::apply_crds(&seed, &crds_of(Target::Seed)).await?;
    add_shoot(&seed, SHOOT, "eu-central-1").await?;
    Ok(seed)
}

/// Creates the Cluster and the namespace of a shoot in two zones of a region, with the Secret of the account.
pub async fn add_shoot(seed: &Client, shoot: &str, region: &str) -> Result<()> {
    let zones = ["a", "b"].map(|zone| format!("{region}{zone}"));
    let cluster: Cluster = of_kind(json!({"metadata": {"name": shoot}, "spec": {
        "cloudProfile": {}, "seed": {"metadata": {"name": "this-seed"}},
        "shoot": {
            "spec": {"seedName": "this-seed", "provider": {"workers": [{"name": "a", "zones": zones}]}},
            "status": {
                "seedName": "this-seed",
                "advertisedAddresses": [{"name": "internal", "url": "https://api.internal.example"}],
            },
        },
    }}))?;
    let create = PostParams::default();
    Api::all(seed.clone()).create(&create, &cluster).await?;
    let namespace: Namespace = of_kind(json!({"metadata": {"name": shoot}}))?;
    Api::all(seed.clone()).create(&create, &namespace).await?;
    let data = credentials().data().clone().into_iter();
    let data: BTreeMap<_, _> = data.map(|(key, value)| (key, ByteString(value))).collect();
    let secret = Secret {
        data: Some(data),
        ..of_kind(json!({"metadata": {"name": "cloudprovider"}}))?
    };
    Api::namespaced(seed.clone(), shoot)
        .create(&create, &secret)
        .await?;
    Ok(())
}

/// An extension object of our type.
pub fn object<K: ExtensionObject>(name: &str, region: &str, more: Value) -> Result<K> {
    object_of(SHOOT, name, region, more)
}

/// The same in the namespace of a shoot.
pub fn object_of<K: ExtensionObject>(shoot: &str, name: &str, region: &str, more: Value) -> Result<K> {
    let mut object = json!({
        "metadata": {"name": name, "namespace": shoot},
        "spec": {"type": "aws", "region": region, "secretRef": {"name": "cloudprovider", "namespace": shoot}},
    });
    if let (Some(spec), Value::Object(more)) = (object["spec"].as_object_mut(), more) {
        spec.extend(more);
    }
    of_kind(object)
}

/// Adds the inputs of machines to a seed: the image, the user data, and the kubeconfig of the
/// machine-controller-manager for the shoot.
pub async fn equip(seed: &Client, region: &str, kubeconfig: Vec<u8>) -> Result<()> {
    equip_shoot(seed, SHOOT, region, kubeconfig).await
}

/// The same for a given shoot.
pub async fn equip_shoot(seed: &Client, shoot: &str, region: &str, kubeconfig: Vec<u8>) -> Result<()> {
    let regions = json!([{"name": region, "ami": IMAGE}]);
    let images = json!([{"name": "gardenlinux", "versions": [{"version": "1", "regions": regions}]}]);
    let profile = json!({"spec": {"cloudProfile": {"spec": {"providerConfig": {"machineImages": images}}}}});
    TEST.merge(&Api::<Cluster>::all(seed.clone()), shoot, &profile)
        .await?;
    let first = b"join as <<MACHINE_NAME>>".to_vec();
    for (name, key, value) in [
        ("user-data", "cloud_config", first),
        ("machine-controller-manager", "kubeconfig", kubeconfig),
    ] {
        let secret = Secret {
            data: Some(BTreeMap::from([(key.to_owned(), ByteString(value))])),
            ..of_kind(json!({"metadata": {"name": name}}))?
        };
        TEST.apply(&Api::namespaced(seed.clone(), shoot), &secret).await?;
    }
    Ok(())
}

/// A Worker with a single pool in these zones.
pub fn worker(region: &str, infrastructure: &Value, zones: &[String], machines: [i32; 2]) -> Result<Worker> {
    worker_of(SHOOT, region, infrastructure, zones, machines)
}

/// The same for a given shoot.
pub fn worker_of(
    shoot: &str,
    region: &str,
    infrastructure: &Value,
    zones: &[String],
    machines: [i32; 2],
) -> Result<Worker> {
    let [minimum, maximum] = machines;
    object_of(
        shoot,
        "one",
        region,
        json!({"infrastructureProviderStatus": infrastructure, "pools": [{
            "name": "a", "machineType": "m5.large", "machineImage": {"name": "gardenlinux", "version": "1"}, "minimum": minimum,
            "maximum": maximum, "maxSurge": 1, "maxUnavailable": 0, "zones": zones, "volume": {"size": "50Gi", "type": "gp3"},
            "userDataSecretRef": {"name": "user-data", "key": "cloud_config"},
        }]}),
    )
}

/// An object from JSON.
pub fn of_kind<K: Resource<DynamicType = ()> + serde::de::DeserializeOwned>(mut object: Value) -> Result<K> {
    object["apiVersion"] = json!(K::api_version(&()));
    object["kind"] = json!(K::kind(&()));
    serde_json::from_value(object).context("the object does not fit its kind")
}
