//! Actuators in the contract test, over two seeds with real API servers and a single EC2 (R7-04, RX-43).

#![allow(clippy::unwrap_used, clippy::panic, clippy::large_futures)]

#[path = "../../extension/tests/played/machines.rs"]
mod played;
#[path = "../../cloud-aws/tests/ec2/proxy.rs"]
mod proxy;
mod seeds;
#[path = "../../cloud-aws/tests/ec2/world.rs"]
mod world;

use anyhow::{Result, anyhow};
use api::extensions::{Infrastructure, SubnetIsolation};
use extension::{
    contract::{Contract, Proof, Refuse},
    subnet_isolation::SubnetIsolationActuator,
    worker::WorkerActuator,
};
use futures::FutureExt;
use kube::Client;
use provider_aws::{
    account::AccountAccess, infrastructure::InfrastructureActuator, subnet_isolation::AwsZones,
    worker::AwsMachines,
};
use serde_json::{Value, json};
use testkit::{ControlPlane as Plane, Moto, PlayedKubelet};

use played::PlayedMachines;
use proxy::Fault;
use seeds::{build_access, equip, object, reconciler, seed};
use world::{Region, SHOOT};

/// The minimum of disturbed attempts in a proof. A proof with fewer disturbed attempts is too weak.
const MANY: usize = 30;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actuators_keep_the_contract_over_two_seeds() -> Result<()> {
    let (moto, planes) = (
        Moto::start().await?,
        Plane::start_all(["seed-a", "seed-b"]).await?,
    );
    let mut seeds = Vec::new();
    for plane in &planes {
        seeds.push(seed(plane).await?);
    }
    // Concurrent: each proof has a kind in a separate region, and mostly waits.
    let (infrastructure, zones, machines) = futures::join!(
        Box::pin(infrastructure(&moto, &seeds)),
        Box::pin(subnet_isolation(&moto, &seeds)),
        Box::pin(worker(&seeds)),
    );
    let failures: Vec<String> = [infrastructure, zones, machines]
        .into_iter()
        .filter_map(|one| Some(format!("{:#}", one.err()?)))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

async fn infrastructure(moto: &Moto, seeds: &[Client]) -> Result<()> {
    let region = &Region::start(moto, "eu-west-1").await?;
    let place = &build_access(region);
    let wanted: Infrastructure = object("one", "eu-west-1", json!({"providerConfig": region.config()}))?;
    let contract = Contract::new(
        || reconciler(&seeds[0], InfrastructureActuator(place.clone())),
        || reconciler(&seeds[1], InfrastructureActuator(place.clone())),
        [wanted.clone(), wanted],
    )
    .outside(Box::new(move || {
        async move {
            let found = region.list_parts().await.map_err(|error| error.to_string())?;
            Ok(json!(format!("{found:?}")))
        }
        .boxed()
    }))
    .refuse(refuses(region));
    proven("Infrastructure", contract.prove().await)
}

async fn subnet_isolation(moto: &Moto, seeds: &[Client]) -> Result<()> {
    let region = &Region::start(moto, "eu-central-1").await?;
    let place = &build_access(region);
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

/// The generic actuator with the machines of this provider. The machine-controller-manager is simulated: the
/// real program runs in `tests/drill/aws`.
async fn worker(seeds: &[Client]) -> Result<()> {
    for seed in seeds {
        equip(seed, "eu-west-1", b"k".to_vec()).await?;
    }
    let machines = &PlayedMachines::new(SHOOT);
    let _pods: Vec<_> = seeds.iter().map(PlayedKubelet::start).collect();
    let _managers: Vec<_> = seeds.iter().map(|seed| machines.managed_by(seed)).collect();
    let zones = ["eu-west-1a".to_owned(), "eu-west-1b".to_owned()];
    let wanted = seeds::worker("eu-west-1", &infrastructure_in(&zones), &zones, [3, 3])?;
    let contract = Contract::new(
        || reconciler(&seeds[0], WorkerActuator(aws_machines())),
        || reconciler(&seeds[1], WorkerActuator(aws_machines())),
        [wanted.clone(), wanted],
    )
    .outside(Box::new(|| async { Ok(machines.list_instances()) }.boxed()))
    .inside_source(Box::new(|| {
        async { machines.manager_in(&seeds[0]).await.map_err(|error| text(&error)) }.boxed()
    }))
    .inside_destination(Box::new(|| {
        async { machines.manager_in(&seeds[1]).await.map_err(|error| text(&error)) }.boxed()
    }))
    .carried_apart(Box::new(|| {
        async {
            machines
                .collect_and_forget(&seeds[0], 3)
                .await
                .map_err(|error| text(&error))
        }
        .boxed()
    }));
    proven("Worker", contract.prove().await)
}

fn aws_machines() -> AwsMachines {
    AwsMachines {
        manager_image: "machine-controller-manager-aws:test".into(),
        manager_environment: Vec::new(),
        place: AccountAccess::default(),
    }
}

/// The status of an Infrastructure with these zones.
fn infrastructure_in(zones: &[String]) -> Value {
    let subnet = |zone: &String| json!({"id": format!("subnet-{zone}"), "purpose": "nodes", "zone": zone});
    json!({
        "vpc": {
            "id": "vpc-1", "securityGroups": [{"id": "sg-1", "purpose": "nodes"}],
            "subnets": zones.iter().map(subnet).collect::<Vec<_>>(),
        },
        "zones": zones.iter().map(|zone| json!({"name": zone, "id": format!("id-{zone}")})).collect::<Vec<_>>(),
    })
}

fn text(error: &anyhow::Error) -> String {
    format!("{error:#}")
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

fn proven(name: &str, outcome: std::result::Result<Proof, String>) -> Result<()> {
    let proof = outcome.map_err(|violated| anyhow!("{name}: {violated}"))?;
    anyhow::ensure!(proof.dropped > MANY, "{name}: {proof:?} proves little");
    Ok(())
}
