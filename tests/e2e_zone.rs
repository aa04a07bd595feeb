//! A zone is cut off from a shoot by one annotation, and taken back (GEP-21, RZ-01..14): its machines go and its network is
//! closed, while no request from the other zones fails; afterwards the zone has machines again, and no pod elsewhere has moved.
//!
//! Needs the landscape `e2e` with the suite installed: `make e2e`.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use api::{
    constants::SHOOT_ISOLATED_ZONE,
    gardencore::shoot::{ZoneIsolation, ZoneIsolationPhase as Phase, ZoneIsolationStatus as Status},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use repot_tests::{
    landscape::Landscape,
    lifecycle::{self, deleted},
    nodes::{Fleet, Probe, Zonal},
    proof,
    shoot::UserShoot,
};
use serde_json::json;

/// What all accounts of the local cloud call the zone.
const ZONE_ID: &str = "az-a";
/// What this one calls it.
const ZONE: &str = "a";
/// Bounds a new machine elsewhere, the drain, the end of a machine and a closing, with room for a slow machine.
const CUT_OFF_WITHIN: Duration = Duration::from_secs(600);
/// Bounds an opening and a new machine.
const BACK_WITHIN: Duration = Duration::from_secs(400);

/// Sets the annotation or takes it away, and waits for the end of what follows.
async fn isolate(
    shoot: &UserShoot,
    id: Option<&str>,
    phase: Phase,
    within: Duration,
) -> Result<ZoneIsolation> {
    let patch = json!({"metadata": {"annotations": {SHOOT_ISOLATED_ZONE: id}}});
    shoot
        .api()
        .patch(&shoot.name, &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    let what = format!("{phase:?} has ended");
    let ended = shoot
        .wait(&what, within, |shoot| {
            let told = shoot
                .status
                .as_ref()
                .and_then(|status| status.zone_isolation.as_ref());
            told.is_some_and(|told| {
                told.phase == phase && matches!(told.status, Status::Done | Status::Failed)
            })
        })
        .await?;
    let status = ended.status.context("no status")?;
    let told = status.zone_isolation.context("no zoneIsolation")?;
    let why: Vec<_> = status
        .conditions
        .iter()
        .filter(|c| c.type_ == "ZoneIsolation")
        .collect();
    ensure!(told.status == Status::Done, "{told:?}: {why:?}");
    Ok(told)
}

/// One is left in the zone, one is in the same zone and another cluster's, and one is anywhere else.
struct Probes {
    left: Probe,
    same: Probe,
    peer: Probe,
}

impl Probes {
    async fn start(landscape: &Landscape, technical_id: &str) -> Result<Self> {
        Ok(Self {
            left: Probe::start(landscape, "probe-left", technical_id, ZONE).await?,
            same: Probe::start(landscape, "probe-same", "shoot--dev--same", ZONE).await?,
            peer: Probe::start(landscape, "probe-peer", "shoot--dev--peer", "b").await?,
        })
    }

    async fn find_the_zone_closed(&self, closed: bool) -> Result<()> {
        let passed = self.left.exchanges_with(&self.peer).await?;
        ensure!(passed != closed, "packets of the zone pass: {passed}");
        ensure!(
            self.same.exchanges_with(&self.peer).await?,
            "another cluster is cut off"
        );
        Ok(())
    }

    async fn remove(self) -> Result<()> {
        for probe in [self.left, self.same, self.peer] {
            probe.remove().await?;
        }
        Ok(())
    }
}

/// Fails with what the account still has of a cluster.
async fn nothing_in_account(landscape: &Landscape, technical_id: &str) -> Result<()> {
    let objects: Api<ConfigMap> = Api::namespaced(landscape.cloud().await?, "cloud");
    let objects = objects.list(&ListParams::default()).await?.items;
    let mut left = objects.iter().map(ResourceExt::name_any);
    let left = left.find(|name| name.contains(technical_id));
    ensure!(left.is_none(), "left in the account: {left:?}");
    Ok(())
}

#[tokio::test]
async fn a_zone_is_cut_off_and_taken_back() {
    let landscape = Landscape::open("e2e").await.unwrap();
    let shoot = lifecycle::created_in_three_zones(&landscape, "zones")
        .await
        .unwrap();
    let client = shoot.client().await.unwrap();
    let id = proof::technical_id(&shoot).await.unwrap();
    let seed = landscape.seed("seed-a").unwrap();
    let web = Zonal::deploy(&client, 3, "b").await.unwrap();
    let before = Fleet::read(seed, &id, &client).await.unwrap();
    assert_eq!(before.zones(), [ZONE, "b", "c"], "one machine in each zone");
    let failed = web.failed(&client).await.unwrap();
    let probes = Probes::start(&landscape, &id).await.unwrap();
    probes.find_the_zone_closed(false).await.unwrap();

    let begin = Instant::now();
    let told = isolate(&shoot, Some(ZONE_ID), Phase::Failover, CUT_OFF_WITHIN)
        .await
        .unwrap();
    println!("zone {ZONE} is cut off after {:?}", begin.elapsed());
    assert_eq!(told.isolated_zone_id, ZONE_ID);
    assert_eq!(told.isolated_zone_code.as_deref(), Some(ZONE));
    probes.find_the_zone_closed(true).await.unwrap();
    let away = Fleet::read(seed, &id, &client).await.unwrap();
    assert_eq!(
        away.zones(),
        ["b", "b", "c"],
        "as many machines, and none in the zone"
    );
    assert_eq!(
        web.failed(&client).await.unwrap(),
        failed,
        "requests from other zones"
    );
    let served = web.served(&client).await.unwrap();
    assert_eq!(served.len(), 3, "{served:?}");

    let begin = Instant::now();
    isolate(&shoot, None, Phase::Failback, BACK_WITHIN).await.unwrap();
    println!("zone {ZONE} is back after {:?}", begin.elapsed());
    probes.find_the_zone_closed(false).await.unwrap();
    let back = Fleet::read(seed, &id, &client).await.unwrap();
    assert!(back.zones().contains(&ZONE), "{:?}", back.zones());
    for (name, pod) in &away.pods {
        assert_eq!(
            back.pods.get(name),
            Some(pod),
            "pod {name} elsewhere is another one"
        );
    }
    assert_eq!(
        web.failed(&client).await.unwrap(),
        failed,
        "requests from other zones"
    );
    // The same servers, and they were asked all the time.
    for (name, requests) in web.served(&client).await.unwrap() {
        let earlier = served.iter().find(|(other, _)| *other == name);
        let more = earlier.is_some_and(|(_, earlier)| *earlier < requests);
        assert!(more, "{name}: {earlier:?}, {requests}");
    }

    probes.remove().await.unwrap();
    deleted(&landscape, &shoot).await.unwrap();
    Fleet::nothing_left(&landscape, &id).await.unwrap();
    nothing_in_account(&landscape, &id).await.unwrap();
}
