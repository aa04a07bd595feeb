//! A zone is cut off from a shoot by one annotation, and taken back (GEP-21, RZ-01..14): its machines go and its network is
//! closed, while no request from the other zones fails; afterwards the zone has machines again, and no pod elsewhere has moved.
//!
//! Needs the landscape `e2e` with the suite installed: `make e2e`.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use api::{
    constants::SHOOT_ISOLATED_ZONE,
    gardencore::{ZoneIsolation, ZoneIsolationPhase as Phase, ZoneIsolationStatus as Status},
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
    // One is left in the zone, one is in the same zone and another cluster's, and one is anywhere else.
    let left = Probe::start(&landscape, "probe-left", &id, ZONE).await.unwrap();
    let same = Probe::start(&landscape, "probe-same", "shoot--dev--same", ZONE)
        .await
        .unwrap();
    let peer = Probe::start(&landscape, "probe-peer", "shoot--dev--peer", "b")
        .await
        .unwrap();
    for probe in [&left, &same] {
        assert!(probe.exchanges_with(&peer).await.unwrap(), "the way is open");
    }

    let begin = Instant::now();
    let told = isolate(&shoot, Some(ZONE_ID), Phase::Failover, CUT_OFF_WITHIN)
        .await
        .unwrap();
    println!("zone {ZONE} is cut off after {:?}", begin.elapsed());
    assert_eq!(
        (told.isolated_zone_id.as_str(), told.isolated_zone_code.as_deref()),
        (ZONE_ID, Some(ZONE))
    );
    assert!(
        !left.exchanges_with(&peer).await.unwrap(),
        "a closed zone exchanges no packet"
    );
    assert!(
        same.exchanges_with(&peer).await.unwrap(),
        "another cluster's goes on"
    );
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
    for probe in [&left, &same] {
        assert!(
            probe.exchanges_with(&peer).await.unwrap(),
            "the way is open again"
        );
    }
    let back = Fleet::read(seed, &id, &client).await.unwrap();
    assert!(back.zones().contains(&ZONE), "{:?}", back.zones());
    let moved: Vec<_> = away
        .pods
        .iter()
        .filter(|(name, pod)| back.pods.get(*name) != Some(pod))
        .collect();
    assert!(moved.is_empty(), "pods elsewhere are others: {moved:?}");
    assert_eq!(
        web.failed(&client).await.unwrap(),
        failed,
        "requests from other zones"
    );
    // The same servers, and they were asked all the time.
    for (name, requests) in web.served(&client).await.unwrap() {
        let earlier = served.iter().find(|(other, _)| *other == name);
        assert!(
            earlier.is_some_and(|(_, earlier)| *earlier < requests),
            "{name}: {earlier:?}, {requests}"
        );
    }

    for probe in [left, same, peer] {
        probe.remove().await.unwrap();
    }
    deleted(&landscape, &shoot).await.unwrap();
    Fleet::nothing_left(&landscape, &id).await.unwrap();
    let objects: Api<ConfigMap> = Api::namespaced(landscape.cloud().await.unwrap(), "cloud");
    let objects = objects.list(&ListParams::default()).await.unwrap().items;
    let names: Vec<_> = objects
        .iter()
        .map(ResourceExt::name_any)
        .filter(|name| name.contains(&id))
        .collect();
    assert_eq!(names, Vec::<String>::new(), "left in the account");
}
