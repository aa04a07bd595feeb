//! Both actuators through the contract, over two seeds with real API servers and one EC2 (R7-04, RX-43).

#![allow(clippy::unwrap_used, clippy::panic, clippy::large_futures)]

#[path = "../../cloud-aws/tests/ec2/proxy.rs"]
mod proxy;
#[path = "../../cloud-aws/tests/ec2/world.rs"]
mod world;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, anyhow};
use api::{
    Target, crds_of,
    extensions::{Cluster, ExtensionObject, Infrastructure, SubnetIsolation},
};
use extension::{
    Actuator, ExtensionReconciler, OwnerChecks,
    contract::{Contract, Proof, Refuse},
    reconciler::namespaced,
    subnet_isolation::SubnetIsolationActuator,
};
use futures::FutureExt;
use k8s_openapi::{
    ByteString, NamespaceResourceScope,
    api::core::v1::{Namespace, Secret},
};
use kube::{Api, Client, Resource, api::PostParams};
use provider_aws::{
    account::Place, controllers, infrastructure::InfrastructureActuator, subnet_isolation::AwsZones,
};
use runtime::{Permit, Seed};
use serde_json::{Value, json};
use testkit::{ControlPlane, Moto};

use proxy::Fault;
use world::{Region, SHOOT, credentials};

/// How many attempts a proof disturbs at least. One that disturbs fewer proves nothing.
const MANY: usize = 30;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_actuators_keep_the_contract_over_two_seeds() -> Result<()> {
    let (moto, planes) = (
        Moto::start().await?,
        ControlPlane::start_all(["seed-a", "seed-b"]).await?,
    );
    let mut seeds = Vec::new();
    for plane in &planes {
        seeds.push(seed(plane).await?);
    }
    let outcomes = [
        Box::pin(infrastructure(&moto, &seeds)).await,
        Box::pin(subnet_isolation(&moto, &seeds)).await,
    ];
    let failures: Vec<String> = outcomes
        .into_iter()
        .filter_map(|one| Some(format!("{:#}", one.err()?)))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

async fn infrastructure(moto: &Moto, seeds: &[Client]) -> Result<()> {
    let region = &Region::of(moto, "eu-west-1").await?;
    let place = &place(region);
    let wanted: Infrastructure = object("one", "eu-west-1", json!({"providerConfig": region.config()}))?;
    let contract = Contract::new(
        || reconciler(&seeds[0], InfrastructureActuator(place.clone())),
        || reconciler(&seeds[1], InfrastructureActuator(place.clone())),
        [wanted.clone(), wanted],
    )
    .outside(Box::new(move || {
        async move {
            let found = region.found().await.map_err(|error| error.to_string())?;
            Ok(json!(format!("{found:?}")))
        }
        .boxed()
    }))
    .refuse(refuses(region));
    proven("Infrastructure", contract.prove().await)
}

async fn subnet_isolation(moto: &Moto, seeds: &[Client]) -> Result<()> {
    let region = &Region::of(moto, "eu-central-1").await?;
    let place = &place(region);
    let (status, _) = region.made().await?;
    let vpc = &status.vpc.id.clone();
    let zone = &status.zones[0];
    let one = status.subnets_of(&zone.name).first().unwrap().clone();
    region.set_acl(vpc, &one, &region.other_acl(vpc).await?).await?;
    let wanted: SubnetIsolation = object(
        "one",
        "eu-central-1",
        json!({"isolatedZoneID": zone.id, "infrastructureProviderStatus": status}),
    )?;
    let contract = Contract::new(
        || reconciler(&seeds[0], SubnetIsolationActuator(AwsZones(place.clone()))),
        || reconciler(&seeds[1], SubnetIsolationActuator(AwsZones(place.clone()))),
        [wanted.clone(), wanted],
    )
    .outside(Box::new(move || {
        async move {
            let acls = region.acls(vpc).await.map_err(|error| error.to_string())?;
            Ok(json!(format!("{acls:?}")))
        }
        .boxed()
    }))
    .refuse(refuses(region));
    proven("SubnetIsolation", contract.prove().await)
}

/// From now on the cloud refuses each call.
fn refuses(region: &Region) -> Refuse<'_> {
    Box::new(move || {
        async move {
            region.proxy.set(Fault::Refuse);
            Ok(())
        }
        .boxed()
    })
}

fn place(region: &Region) -> Place {
    Place {
        endpoint: Some(region.proxy.endpoint.clone()),
    }
}

fn proven(name: &str, outcome: std::result::Result<Proof, String>) -> Result<()> {
    let proof = outcome.map_err(|violated| anyhow!("{name}: {violated}"))?;
    anyhow::ensure!(proof.dropped > MANY, "{name}: {proof:?} proves little");
    Ok(())
}

fn reconciler<K, A>(seed: &Client, actuator: A) -> ExtensionReconciler<K, A>
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
async fn seed(plane: &ControlPlane) -> Result<Client> {
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
fn object<K: ExtensionObject>(name: &str, region: &str, more: Value) -> Result<K> {
    let mut object = json!({
        "metadata": {"name": name, "namespace": SHOOT},
        "spec": {"type": "aws", "region": region, "secretRef": {"name": "cloudprovider", "namespace": SHOOT}},
    });
    if let (Some(spec), Value::Object(more)) = (object["spec"].as_object_mut(), more) {
        spec.extend(more);
    }
    of_kind(object)
}

fn of_kind<K: Resource<DynamicType = ()> + serde::de::DeserializeOwned>(mut object: Value) -> Result<K> {
    object["apiVersion"] = json!(K::api_version(&()));
    object["kind"] = json!(K::kind(&()));
    serde_json::from_value(object).context("the object does not fit its kind")
}
