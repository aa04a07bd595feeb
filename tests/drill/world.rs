//! The test environment of the flows: clusters, name server, object store, controllers.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use api::gardencore::Seed;
use kube::{Api, Client};
use runtime::client::wait::{self, WaitState};
use testkit::{ControlPlane, NameServer, ObjectStore, apply_crds};
use tokio::task::JoinSet;

use crate::guest::Outside;
use crate::machines::Instances;
use crate::seed::RunningSeed;
use crate::zones::Wishes;
use crate::{garden, garden_controllers, rights};

/// Domain of the shoots' names.
pub const DOMAIN: &str = "example.test";
/// The controllers of a gardenlet that flows need.
const FOR_FLOWS: &[&str] = &["seed", "backup-bucket", "backup-entry"];

/// Longer than a gardenlet that has just started takes to record the identity of the seed, on a busy machine.
const IDENTIFIED_WITHIN: Duration = Duration::from_secs(60);

/// A garden with two seeds.
pub struct World {
    pub seeds: [RunningSeed; 2],
    pub garden: ControlPlane,
    pub dns: NameServer,
    pub store: ObjectStore,
    /// The outside things of extensions.
    pub outside: Outside,
    /// The machines of all shoots.
    pub instances: Instances,
    /// The requests to the cloud about zones.
    pub wishes: Wishes,
    /// The API that all shoots of this world share.
    shoots: ControlPlane,
    next: AtomicUsize,
    controllers: Vec<JoinSet<()>>,
    _of_cloud: JoinSet<()>,
}

impl World {
    /// The test runs the flows; only the controllers that a flow needs run, with all rights.
    pub async fn for_flows() -> Result<Self> {
        let mut world = Self::start(async |garden, _| Ok(garden.admin())).await?;
        world.play_machines();
        let manager = garden_controllers::start(&world.garden(), garden_controllers::FOR_FLOWS)?;
        let gardenlets = world.seeds.iter().map(|seed| seed.gardenlet(FOR_FLOWS));
        world.controllers = gardenlets.chain([manager]).collect();
        // A flow must not begin before, and no controller here begins the flow a second time.
        let seeds: Api<Seed> = Api::all(world.garden());
        for seed in &world.seeds {
            let identified = testkit::measured("the Seed has an identity", IDENTIFIED_WITHIN, |bound| {
                wait::until(&seeds, seed.name, bound, look_identified)
            });
            identified.await?;
        }
        Ok(world)
    }

    /// Controllers do all of the work, with separate rights under the policies of a garden. The test starts
    /// and kills gardenlets and garden-controller-manager.
    pub async fn for_journeys() -> Result<Self> {
        let mut world = Self::without_machines().await?;
        world.play_machines();
        Ok(world)
    }

    /// As [`Self::for_journeys`], without a machine manager.
    pub async fn without_machines() -> Result<Self> {
        let mut world = Self::start(rights::gardenlet).await?;
        for seed in &mut world.seeds {
            seed.is_busy()?;
        }
        rights::install(&world.garden()).await?;
        Ok(world)
    }

    /// `identity`: returns the client of the garden for the gardenlet of the named seed.
    async fn start(identity: impl AsyncFn(&ControlPlane, &str) -> Result<Client>) -> Result<Self> {
        let [garden, a, b, shoots] =
            ControlPlane::start_all(["garden", "seed-a", "seed-b", "shoots"]).await?;
        let (dns, store) = (NameServer::start(&[DOMAIN]).await?, ObjectStore::start().await?);
        let definitions = |target: &str| -> Vec<_> {
            let all = api::all_crds()
                .into_iter()
                .filter(|crd| crd.target.folder() == target);
            all.map(|crd| crd.definition).collect()
        };
        let seed_definitions = definitions("seed");
        let garden_definitions = definitions("garden");
        let [top, first, second] = [&garden, &a, &b].map(ControlPlane::admin);
        futures::try_join!(
            apply_crds(&top, &garden_definitions),
            apply_crds(&first, &seed_definitions),
            apply_crds(&second, &seed_definitions),
        )?;
        garden::fill(&garden, &dns, &store).await?;
        let mut of_cloud = JoinSet::new();
        let wishes = Wishes::watch(&mut of_cloud, garden.admin()).await?;
        let (of_a, of_b) = (
            identity(&garden, "seed-a").await?,
            identity(&garden, "seed-b").await?,
        );
        let (shoot_api, outside, instances) = (shoots.admin(), Outside::default(), Instances::default());
        let seeds = [
            RunningSeed::start(
                "seed-a",
                a,
                Ipv4Addr::new(10, 1, 0, 1),
                &dns.address,
                of_a,
                shoot_api.clone(),
                &outside,
            )
            .await?,
            RunningSeed::start(
                "seed-b",
                b,
                Ipv4Addr::new(10, 2, 0, 1),
                &dns.address,
                of_b,
                shoot_api,
                &outside,
            )
            .await?,
        ];
        Ok(Self {
            seeds,
            garden,
            dns,
            store,
            outside,
            instances,
            shoots,
            next: AtomicUsize::new(0),
            controllers: Vec::new(),
            wishes,
            _of_cloud: of_cloud,
        })
    }

    fn play_machines(&mut self) {
        for seed in &mut self.seeds {
            seed.play_machines(&self.instances);
        }
    }

    pub fn garden(&self) -> Client {
        self.garden.admin()
    }

    /// A client of the API that all shoots share.
    pub fn shoot_api(&self) -> Client {
        self.shoots.admin()
    }

    /// A new, unique Shoot name.
    pub fn shoot_name(&self) -> String {
        format!("s{}", self.next.fetch_add(1, Ordering::Relaxed))
    }
}

fn look_identified(seed: Option<&Seed>) -> WaitState {
    match seed.and_then(|seed| seed.status.as_ref()?.cluster_identity.as_ref()) {
        Some(_) => WaitState::Done,
        None => WaitState::Wait("its gardenlet has not recorded its identity".to_owned()),
    }
}
