//! Seeds with the shoot's namespace in them, and objects of this provider.
#![allow(dead_code)] // each test program uses its own part of it

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context as _, Result};
use api::{
    Target, crds_of,
    extensions::{Cluster, ExtensionObject, Worker},
};
use cloud_aws::Ec2Access;
use extension::{Actuator, ExtensionReconciler, OwnerChecks, reconciler::namespaced};
use k8s_openapi::{
    ByteString, NamespaceResourceScope,
    api::core::v1::{Namespace, Secret},
};
use kube::{Api, Client, Resource, api::PostParams};
use provider_aws::{account::Place, controllers};
use runtime::{Permit, Seed, apply::FieldManager};
use serde_json::{Value, json};
use testkit::ControlPlane;

use crate::world::{IMAGE, Region, SHOOT, credentials};

/// The test plays whoever else writes.
pub const TEST: FieldManager = FieldManager("test");

/// EC2 behind the proxy, which lists an object as soon as it is made. So a reconciliation that was given up
/// has made nothing where EC2 lists nothing.
pub fn place(region: &Region) -> Place {
    Place {
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

/// A seed with the shoot's namespace in it, of a shoot that it acts on, with the Secret of the account.
pub async fn seed(plane: &ControlPlane) -> Result<Client> {
    let seed = plane.admin();
    testkit::apply_crds(&seed, &crds_of(Target::Seed)).await?;
    let cluster: Cluster = of_kind(json!({"metadata": {"name": SHOOT}, "spec": {
        "cloudProfile": {}, "seed": {"metadata": {"name": "this-seed"}},
        "shoot": {
            "spec": {"seedName": "this-seed", "provider": {"workers": [{"name": "a", "zones": ["eu-central-1a", "eu-central-1b"]}]}},
            "status": {
                "seedName": "this-seed",
                "advertisedAddresses": [{"name": "internal", "url": "https://api.internal.example"}],
            },
        },
    }}))?;
    let create = PostParams::default();
    Api::all(seed.clone()).create(&create, &cluster).await?;
    let namespace: Namespace = of_kind(json!({"metadata": {"name": SHOOT}}))?;
    Api::all(seed.clone()).create(&create, &namespace).await?;
    let data = credentials().data().clone().into_iter();
    let data: BTreeMap<_, _> = data.map(|(key, value)| (key, ByteString(value))).collect();
    let secret = Secret {
        data: Some(data),
        ..of_kind(json!({"metadata": {"name": "cloudprovider"}}))?
    };
    Api::namespaced(seed.clone(), SHOOT)
        .create(&create, &secret)
        .await?;
    Ok(seed)
}

/// An extension object of our type.
pub fn object<K: ExtensionObject>(name: &str, region: &str, more: Value) -> Result<K> {
    let mut object = json!({
        "metadata": {"name": name, "namespace": SHOOT},
        "spec": {"type": "aws", "region": region, "secretRef": {"name": "cloudprovider", "namespace": SHOOT}},
    });
    if let (Some(spec), Value::Object(more)) = (object["spec"].as_object_mut(), more) {
        spec.extend(more);
    }
    of_kind(object)
}

/// What a seed has for machines: the image by which they start, what they run at first, and the way of their
/// manager to the shoot.
pub async fn equip(seed: &Client, region: &str, kubeconfig: Vec<u8>) -> Result<()> {
    let regions = json!([{"name": region, "ami": IMAGE}]);
    let images = json!([{"name": "gardenlinux", "versions": [{"version": "1", "regions": regions}]}]);
    let profile = json!({"spec": {"cloudProfile": {"spec": {"providerConfig": {"machineImages": images}}}}});
    TEST.merge(&Api::<Cluster>::all(seed.clone()), SHOOT, &profile)
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
        TEST.apply(&Api::namespaced(seed.clone(), SHOOT), &secret).await?;
    }
    Ok(())
}

/// A Worker with one pool in these zones.
pub fn worker(region: &str, infrastructure: &Value, zones: &[String], machines: [i32; 2]) -> Result<Worker> {
    let [minimum, maximum] = machines;
    object(
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
