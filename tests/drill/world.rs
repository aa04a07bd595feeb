//! Everything that stands around the flows: clusters, name server, object store, controllers.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use kube::Client;
use testkit::{ControlPlane, NameServer, ObjectStore, apply_crds};

use crate::garden;
use crate::seed::RunningSeed;

/// Domain under which shoots are found.
pub const DOMAIN: &str = "example.test";

/// A garden with two seeds.
pub struct World {
    pub seeds: [RunningSeed; 2],
    pub garden: ControlPlane,
    pub dns: NameServer,
    pub store: ObjectStore,
    /// The API that all shoots of this world share.
    shoots: ControlPlane,
    next: AtomicUsize,
}

impl World {
    pub async fn start() -> Result<Self> {
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
        let shoot_api = shoots.admin();
        let seeds = [
            RunningSeed::start(
                "seed-a",
                a,
                Ipv4Addr::new(10, 1, 0, 1),
                &garden,
                shoot_api.clone(),
            )
            .await?,
            RunningSeed::start("seed-b", b, Ipv4Addr::new(10, 2, 0, 1), &garden, shoot_api).await?,
        ];
        Ok(Self {
            seeds,
            garden,
            dns,
            store,
            shoots,
            next: AtomicUsize::new(0),
        })
    }

    pub fn garden(&self) -> Client {
        self.garden.admin()
    }

    /// A client of the API that all shoots share.
    pub fn shoot_api(&self) -> Client {
        self.shoots.admin()
    }

    /// A Shoot name that nobody had.
    pub fn shoot_name(&self) -> String {
        format!("s{}", self.next.fetch_add(1, Ordering::Relaxed))
    }
}
