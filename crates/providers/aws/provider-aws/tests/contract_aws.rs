//! Actuators in the contract test, over two seeds with real API servers and a single EC2 (R7-04, RX-43).

#![allow(clippy::unwrap_used, clippy::panic, clippy::large_futures)]

use anyhow::{Result, anyhow};
use api::extensions::{Infrastructure, SubnetIsolation};
use aws_fixture::{
    proxy::Fault,
    region::{Region, SHOOT},
};
use extension::{subnet_isolation::SubnetIsolationActuator, worker::WorkerActuator};
use extension_contract::{Contract, Proof, Refuse, machines::FakeMachines};
use futures::FutureExt;
use kube::Client;
use provider_aws::{
    account::AccountAccess, infrastructure::InfrastructureActuator, subnet_isolation::AwsZones,
    worker::AwsMachines,
};
use provider_aws_fixture::{build_access, equip, object, reconciler, seed};
use serde_json::{Value, json};
use testkit::{ControlPlane as Plane, Moto, PlayedKubelet};

/// The minimum of disturbed attempts in a proof. A proof with fewer disturbed attempts is too weak.
const MANY: usize = 30;

/// Two seeds, and EC2.
struct TwoSeeds {
    clients: [Client; 2],
    moto: Moto,
    _planes: [Plane; 2],
}

impl TwoSeeds {
    async fn start() -> Result<Self> {
        let moto = Moto::start().await?;
        let planes = Plane::start_all(["seed-a", "seed-b"]).await?;
        Ok(Self {
            clients: [seed(&planes[0]).await?, seed(&planes[1]).await?],
            moto,
            _planes: planes,
        })
    }
}

// At the same time: each proof has a kind in a separate region, and mostly waits.
testkit::scenarios! {
    mod kept_over_two_seeds for TwoSeeds = TwoSeeds::start();
    at_once:
    infrastructure,
    subnet_isolation,
    worker;
}

async fn infrastructure(
    TwoSeeds {
        clients: seeds, moto, ..
    }: &TwoSeeds,
) -> Result<()> {
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

async fn subnet_isolation(
    TwoSeeds {
        clients: seeds, moto, ..
    }: &TwoSeeds,
) -> Result<()> {
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
async fn worker(TwoSeeds { clients: seeds, .. }: &TwoSeeds) -> Result<()> {
    for seed in seeds {
        equip(seed, "eu-west-1", b"k".to_vec()).await?;
    }
    let machines = &FakeMachines::new(SHOOT);
    let _pods: Vec<_> = seeds.iter().map(PlayedKubelet::start).collect();
    let _managers: Vec<_> = seeds.iter().map(|seed| machines.managed_by(seed)).collect();
    let zones = ["eu-west-1a".to_owned(), "eu-west-1b".to_owned()];
    let wanted = provider_aws_fixture::worker("eu-west-1", &infrastructure_in(&zones), &zones, [3, 3])?;
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
