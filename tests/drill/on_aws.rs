//! A Shoot on AWS, reconciled by whole gardenlets, garden-controller-manager and the provider, with all
//! actions of a user. A zone is isolated, the shoot moves, the zone is taken back, and the shoot is deleted.
//! EC2 is simulated by moto, the machine-controller-manager is real, and Nodes are simulated.

#[path = "aws/managers.rs"]
mod managers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use api::constants::SHOOT_ISOLATED_ZONE;
use api::extensions::Infrastructure;
use api::gardencore::Shoot;
use api::gardencore::shoot::{ZoneIsolationPhase as Phase, ZoneIsolationStatus as Status};
use aws_fixture::region::{self, IMAGE, Region, is_complete};
use fastrand::Rng;
use kube::Api;
use manager::PROVIDER_AWS;
use provider_aws::account::AccountAccess;
use provider_aws::controllers::{self, Context};
use provider_aws::zone;
use runtime::client::apply::FieldManager;
use runtime::{
    client::{Permit, Seed},
    controller::{Events, runner},
    process::Process,
};
use serde_json::{Value, json};
use testkit::{Moto, eventually};
use tokio::task::JoinSet;

use crate::evidence::Evidence;
use crate::garden::{self, PROJECT};
use crate::guest;
use crate::journeys::journey::{Journey, Stage};
use crate::journeys::mortals::Mortals;
use crate::journeys::outcome::FOLLOWS_WITHIN;
use crate::journeys::witness::Witness;
use crate::rights;
use crate::seed::RunningSeed;
use crate::world::World;

/// The technical id of the Shoot is [`region::SHOOT`].
const NAME: &str = "one";
/// The field manager of the user's annotations.
const USER: FieldManager = FieldManager("user");
const REGION: &str = "eu-central-1";
/// The seeds' indices and names.
const A: usize = 0;
const B: usize = 1;
const NAME_OF_B: &str = "seed-b";
/// The kinds that provider-aws serves.
const KINDS: [&str; 4] = ["ControlPlane", "Infrastructure", "SubnetIsolation", "Worker"];

/// A zone is isolated. The shoot moves meanwhile, without a write to the cloud. The zone is taken back in the
/// destination seed, and no machine elsewhere has noticed. The shoot is deleted without leftovers. Gardenlets
/// and garden-controller-manager are killed all the while (RZ-01..04, RZ-10..14, RZ-20..22, RZ-30..35,
/// R7-03).
pub async fn check(lot: u64) -> Result<()> {
    let moto = Moto::start().await?;
    let region = Region::start(&moto, REGION).await?;
    let world = Arc::new(world_of(&region).await?);
    let _machines: Vec<_> = world
        .seeds
        .iter()
        .flat_map(|seed| look_after_machines(seed, &world, &region))
        .collect();
    let stage = Stage {
        world: &world,
        mortals: Mortals::start(&world, rights::manager(&world.garden).await?, &[])?,
        witness: Witness::watch(&world),
    };
    stage.is_set().await?;
    let mut deaths = Rng::with_seed(lot);
    let shoot = OnAws {
        journey: Journey::named(&stage, NAME),
        region: &region,
    };
    let played = tokio::select! {
        played = Box::pin(shoot.play()) => played,
        never = stage.mortals.die_now_and_then(&mut deaths) => match never {},
    };
    played.with_context(|| stage.witness.story(NAME))?;
    let broken = stage.witness.broken();
    ensure!(broken.is_empty(), "{}", broken.join("\n"));
    let (killed, calls) = (stage.mortals.killed(), region.proxy.calls().len());
    ensure!(killed > 1, "hardly any process was killed on the way: {killed}");
    println!("A shoot on AWS: {killed} processes were killed, {calls} calls to the cloud");
    Ok(())
}

/// A garden with the objects for AWS, and seeds with the provider.
async fn world_of(region: &Region) -> Result<World> {
    let mut world = World::without_machines().await?;
    for object in of_garden() {
        garden::apply(&world.garden(), object).await?;
    }
    for seed in &mut world.seeds {
        let process = provider(seed, region);
        seed.run(async move {
            if let Err(ended) = process.run().await {
                eprintln!("provider-aws ended: {ended}");
            }
        });
    }
    Ok(world)
}

/// The objects of operators and users for AWS, in addition to the objects of every garden here.
fn of_garden() -> Vec<Value> {
    let data = region::credentials();
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    let data: BTreeMap<_, _> = data
        .data()
        .iter()
        .map(|(key, value)| (key, text(value)))
        .collect();
    let image = |more: Value| json!([{"name": "local", "versions": [more]}]);
    let resources = KINDS.map(|kind| json!({"kind": kind, "type": "aws"}));
    vec![
        json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "ControllerRegistration", "metadata": {"name": "provider-aws"},
            "spec": {"resources": resources},
        }),
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"namespace": PROJECT, "name": "aws"}, "stringData": data,
        }),
        json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "SecretBinding",
            "metadata": {"name": "aws", "namespace": PROJECT},
            "provider": {"type": "aws"}, "secretRef": {"name": "aws", "namespace": PROJECT},
        }),
        json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": {"name": "aws"},
            "spec": {
                "type": "aws", "regions": [{"name": REGION}], "kubernetes": {"versions": [{"version": garden::VERSION}]},
                "machineImages": image(json!({"version": "1.0.0", "cri": [{"name": "containerd"}]})),
                "machineTypes": [{"name": "m5.large", "cpu": "2", "gpu": "0", "memory": "8Gi"}],
                "volumeTypes": [{"name": "gp3", "class": "standard"}],
                "providerConfig": {
                    "machineImages": image(json!({"version": "1.0.0", "regions": [{"name": REGION, "ami": IMAGE}]})),
                },
            },
        }),
    ]
}

/// A Shoot with two machines in two zones, as a user writes the object.
fn written(region: &Region) -> Value {
    let mut config = region.config();
    config["apiVersion"] = json!("aws.provider.extensions.gardener.cloud/v1alpha1");
    config["kind"] = json!("InfrastructureConfig");
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
        "metadata": {"name": NAME, "namespace": PROJECT},
        "spec": {
            "cloudProfile": {"name": "aws"}, "secretBindingName": "aws", "region": REGION, "seedName": "seed-a",
            "networking": {
                "type": "local", "nodes": "10.250.0.0/16", "pods": "100.96.0.0/11", "services": "100.64.0.0/13",
            },
            "provider": {
                "type": "aws", "infrastructureConfig": config,
                "workers": [{
                    "name": "pool", "machine": {"type": "m5.large", "image": {"name": "local", "version": "1.0.0"}},
                    "minimum": 2, "maximum": 4, "maxSurge": 1, "maxUnavailable": 0, "zones": region.zones(),
                    "volume": {"type": "gp3", "size": "50Gi"},
                }],
            },
            "kubernetes": {"version": garden::VERSION},
            "extensions": guest::wanted(),
        },
    })
}

/// The process of a seed.
fn provider(seed: &RunningSeed, region: &Region) -> Process {
    let mut process = Process::new("drill");
    let permit = Permit::sole("the drill has no other process");
    let context = Context {
        seed: Seed::new(seed.client(), &permit),
        owners: seed.owners(&process.metrics),
        settings: runner::Settings {
            concurrency: 5,
            shutdown: process.shutdown.clone(),
            permit,
            metrics: process.metrics.clone(),
            events: Events::new(seed.client(), "provider-aws"),
        },
        place: AccountAccess::new(Some(region.proxy.endpoint.clone())),
        // Nodes are simulated, and have no taint of a cloud-controller-manager.
        cloud_controller_manager: None,
        // The machine-controller-manager runs in this process.
        machine_controller_manager_image: "not-run".to_owned(),
        machine_controller_manager_env: Vec::new(),
    };
    let run = controllers::run(PROVIDER_AWS.controllers.to_vec(), context);
    process.fallible_part("provider-aws", run);
    process
}

/// The machine controllers of a seed, and the fake Nodes.
fn look_after_machines(seed: &RunningSeed, world: &World, region: &Region) -> [JoinSet<()>; 2] {
    let (client, shoot, endpoint) = (seed.client(), world.shoot_api(), &region.proxy.endpoint);
    [
        managers::manage(&client, &shoot, endpoint, managers::quick()),
        managers::play_nodes(&client, &shoot),
    ]
}

/// The Shoot, with the region.
struct OnAws<'w> {
    journey: Journey<'w>,
    region: &'w Region,
}

impl OnAws<'_> {
    async fn play(&self) -> Result<()> {
        Box::pin(self.journey.begin_as(&written(self.region))).await?;
        let (machines, found) = (self.region.instances().await?, self.region.list_parts().await?);
        let used: BTreeSet<_> = machines.values().collect();
        ensure!(machines.len() == 2 && used.len() == 2, "{machines:?}");
        is_complete(&found)?;
        let vpc = &found.vpcs[0].vpc_id;
        let open = self.region.acls(vpc).await?;

        let id = self.first_zone_id().await?;
        self.annotate(Some(&id)).await?;
        self.zone_is(Phase::Failover).await?;
        let left = self.region.instances().await?;
        let closed = self.region.acls(vpc).await?;
        ensure!(closed != open, "the zone is open");
        self.region.first_zone_is_left(&machines, &left)?;

        Box::pin(self.moved()).await?;
        ensure!(self.region.instances().await? == left, "a move changes machines");
        ensure!(self.region.acls(vpc).await? == closed, "a move opens the zone");

        self.annotate(None).await?;
        self.zone_is(Phase::Failback).await?;
        let opened = self.region.acls(vpc).await?;
        ensure!(opened == open, "the zone has not what it had: {opened:#?}");
        self.region
            .first_zone_is_back(&left, &self.region.instances().await?)?;

        self.journey.delete().await?;
        Box::pin(self.journey.is_nowhere()).await?;
        let found = self.region.list_parts().await?;
        ensure!(found.vpcs.is_empty() && found.addresses.is_empty(), "{found:#?}");
        let machines = self.region.instances().await?;
        ensure!(machines.is_empty(), "machines are left: {machines:?}");
        Ok(())
    }

    /// Moves to the second seed; meanwhile no write reaches the cloud, and the carried state arrives.
    async fn moved(&self) -> Result<()> {
        let (from, to) = (&self.journey.world.seeds[A], &self.journey.world.seeds[B]);
        let before = Evidence::collect(&self.journey, from).await?;
        let calls = self.region.proxy.calls().len();
        self.journey.send_to(NAME_OF_B).await?;
        self.journey.settled(B).await?;
        let writes = self.region.proxy.writes_since(calls);
        ensure!(writes.is_empty(), "a move asks the cloud for {writes:?}");
        let after = Evidence::collect(&self.journey, to).await?;
        ensure!(after == before, "what is here is not what was there");
        self.journey.check_reachable(to).await?;
        let shoot = self.journey.shoots().get(NAME).await?;
        ensure!(
            is(&shoot, Phase::Failover),
            "the move has changed what is told of the zone"
        );
        eventually("nothing is left where it was", FOLLOWS_WITHIN, || {
            self.journey.check_nothing_left(from)
        })
        .await
    }

    /// Annotates the Shoot like a user.
    async fn annotate(&self, zone: Option<&str>) -> Result<()> {
        let shoots = self.journey.shoots();
        USER.annotate(&shoots, NAME, SHOOT_ISOLATED_ZONE, zone).await?;
        Ok(())
    }

    async fn zone_is(&self, phase: Phase) -> Result<Shoot> {
        let what = format!("the zone's {phase:?} is done");
        self.journey.until(&what, |shoot| is(shoot, phase)).await
    }

    /// The provider's ID of the first zone.
    async fn first_zone_id(&self) -> Result<String> {
        let seed = self.journey.world.seeds[A].client();
        let objects: Api<Infrastructure> = Api::namespaced(seed, region::SHOOT);
        let told = objects.get(NAME).await?.status;
        let told = told.and_then(|status| status.default.provider_status);
        let (zones, [first, _]) = (zone::infrastructure(told.as_ref())?.zones, self.region.zones());
        let known = zones.iter().find(|zone| zone.name == first);
        Ok(known
            .with_context(|| format!("{first} is none of {zones:?}"))?
            .id
            .clone())
    }
}

fn is(shoot: &Shoot, phase: Phase) -> bool {
    let told = shoot
        .status
        .as_ref()
        .and_then(|status| status.zone_isolation.as_ref());
    told.is_some_and(|told| told.phase == phase && told.status == Status::Done)
}
