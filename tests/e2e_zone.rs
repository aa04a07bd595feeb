//! A zone is isolated from a shoot by a single annotation, and taken back (GEP-21, RZ-01..14). The machines
//! of the zone go and the network is closed, while no request from the remaining zones fails. Afterwards the
//! zone has machines again, and only the machine created for the failover is drained.
//!
//! Needs the landscape `e2e` with the suite installed: `make e2e`.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Instant;

use repot_tests::{
    isolation::{self, Probes, ZONE, ZONE_ID},
    landscape::Landscape,
    lifecycle::{self, deleted},
    nodes::{Fleet, Zonal},
    proof,
};

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
    let told = isolation::cut_off(&shoot).await.unwrap();
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
    let served = web.served_by(&client, 3).await.unwrap();

    let begin = Instant::now();
    isolation::take_back(&shoot).await.unwrap();
    println!("zone {ZONE} is back after {:?}", begin.elapsed());
    probes.find_the_zone_closed(false).await.unwrap();
    let back = Fleet::read(seed, &id, &client).await.unwrap();
    assert!(back.zones().contains(&ZONE), "{:?}", back.zones());
    // No autoscaler runs: the zone that has grown shrinks to the former size, by removing the newest machine.
    let stays = away.on_nodes_of(&before);
    assert_eq!(stays.other_pods(&back), Vec::<String>::new(), "pods elsewhere");
    assert_eq!(
        web.failed(&client).await.unwrap(),
        failed,
        "requests from other zones"
    );
    // The servers on machines that stay are the same, and served requests all the time.
    let now = web.served(&client).await.unwrap();
    let same = served.iter().filter(|(name, earlier)| {
        now.iter()
            .any(|(other, requests)| other == name && earlier < requests)
    });
    assert!(same.count() >= 2, "{served:?} became {now:?}");

    probes.remove().await.unwrap();
    deleted(&landscape, &shoot).await.unwrap();
    Fleet::nothing_left(&landscape, &id).await.unwrap();
    isolation::nothing_in_account(&landscape, &id).await.unwrap();
}
