//! Two seeds query different DNS servers for owner records, and one of the servers is an outdated secondary.
//! The shoot has a single writer: no seed takes the shoot over before both seeds query the same servers.
//!
//! Needs the landscape `e2e` with the suite installed: `make e2e-all`. The test names a server in a Seed and
//! cuts network routes between clusters; both are reverted also after a failure.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use api::{
    constants::{SHOOT_FORCE_RESTORE, condition::OWNER_SERVERS_AGREE},
    gardencore::{Seed, Shoot},
    meta::{ConditionStatus, find_condition},
};
use k8s_openapi::api::events::v1::Event;
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use repot_tests::{
    landscape::Landscape,
    lifecycle::{COLLECTED_WITHIN, MOVE_WITHIN, PROJECT, created, deleted},
    proof,
    shoot::UserShoot,
    takeover::{Plan, Takeover, checks_are_complete, force, is_silent},
    trouble::{Disturbed, OwnServer, Trouble},
    watched,
    writer::Writer,
};
use serde_json::json;

const OBJECTS: usize = 200;
/// Number of the first object that is written after the Seed was corrected.
const CORRECTED: u64 = 500_000;
/// How long the shoot is watched after the refusal: the validity of a permit (12 s) and the fence (20 s)
/// would have passed.
const WATCHED_FOR: Duration = Duration::from_secs(60);
/// The longest pause between two writes of an undisturbed shoot on a busy machine.
const UNDISTURBED: Duration = Duration::from_secs(15);

#[tokio::test]
async fn a_stale_secondary_of_one_seed_gives_no_second_writer() {
    let landscape = Landscape::open("e2e").await.unwrap();
    let shoot = created(&landscape, "lists").await.unwrap();
    let client = shoot.client().await.unwrap();
    proof::write_data(&client, OBJECTS).await.unwrap();
    let (copy, real) = servers(&landscape);
    wait_until_all_ask(&shoot, &real).await;
    let own = OwnServer::freeze(&landscape, "seed-a").unwrap();
    seeds_disagree(&landscape).await;
    reconcile(&shoot).await;
    wait_until_all_ask(&shoot, &copy).await;

    is_not_taken_over(&landscape, &shoot, [&copy, &real]).await;

    own.correct_seed().unwrap();
    reconcile(&shoot).await;
    wait_until_all_ask(&shoot, &real).await;
    own.end().unwrap();
    let plan = Plan {
        from: "seed-a",
        to: "seed-b",
        trouble: Trouble::CutOff(&["garden"]),
        has_begun: false,
        kills: &[],
        first: CORRECTED,
    };
    let moved = Box::pin(Takeover::run(&landscape, &shoot, plan)).await.unwrap();
    // Fails if the former seed has acknowledged a write after the first write of the new seed.
    let back = moved.writable_after().unwrap();
    println!(
        "with the same servers in both Seeds the shoot was taken over, and written {back:?} after the decision"
    );
    deleted(&landscape, &shoot).await.unwrap();
}

/// The seed is cut off from the garden, and the seed's own DNS server confirms that the seed owns the shoot.
async fn is_not_taken_over(landscape: &Landscape, shoot: &UserShoot, lists: [&str; 2]) {
    let mut writer = Writer::start(UserShoot::new(landscape, PROJECT, &shoot.name), 1);
    writer.has_begun().await.unwrap();
    let trouble = Disturbed::by(Trouble::CutOff(&["garden"]), landscape, "seed-a").unwrap();
    is_silent(landscape, "seed-a").await.unwrap();
    shoot.set_seed("seed-b").await.unwrap();
    force(shoot).await.unwrap();
    let unasked = |shoot: &Shoot| !shoot.annotations().contains_key(SHOOT_FORCE_RESTORE);
    shoot
        .wait("the request is refused", MOVE_WITHIN, unasked)
        .await
        .unwrap();
    refusal_names(landscape, shoot, lists).await;
    tokio::time::sleep(WATCHED_FOR).await;
    let status = shoot.get().await.unwrap().status.unwrap();
    assert_eq!(status.seed_name.as_deref(), Some("seed-a"));
    assert_eq!(status.epoch(), 1, "{:?}", status.ownership);
    shoot.set_seed("seed-a").await.unwrap();
    trouble.end().unwrap();
    let book = writer.stop().await.unwrap();
    let gap = book.longest_gap();
    println!("{gap:?} without a write at the longest while the takeover was refused");
    assert!(gap < UNDISTURBED, "{gap:?}");
    let client = shoot.client().await.unwrap();
    assert_eq!(book.lost(&client).await.unwrap(), Vec::<u64>::new());
}

/// The addresses of the copy and of the updated server.
fn servers(landscape: &Landscape) -> (String, String) {
    let real = landscape.variable("DNS_SERVER").unwrap().to_owned();
    let copy = real.replace(":53", ":5354");
    (copy, real)
}

async fn seeds_disagree(landscape: &Landscape) {
    let seeds: Api<Seed> = Api::all(landscape.garden.clone());
    let disagrees = |seed: Option<&Seed>| {
        let status = seed.and_then(|seed| seed.status.as_ref());
        let told = status.and_then(|status| find_condition(&status.conditions, OWNER_SERVERS_AGREE));
        told.is_some_and(|told| told.status == ConditionStatus::False)
    };
    watched::until(&seeds, "seed-a", COLLECTED_WITHIN, disagrees)
        .await
        .unwrap();
}

async fn reconcile(shoot: &UserShoot) {
    let asked = json!({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}});
    let (params, patch) = (PatchParams::default(), Patch::Merge(asked));
    shoot.api().patch(&shoot.name, &params, &patch).await.unwrap();
}

/// Waits until a flow has ended with the terms of the Seed, and the processes report this server.
async fn wait_until_all_ask(shoot: &UserShoot, server: &str) {
    let reported = |shoot: &Shoot| {
        let entry = shoot
            .status
            .as_ref()
            .and_then(|status| status.owner_check_in("seed-a"));
        entry.is_some_and(|entry| entry.servers == [server])
    };
    let done = |shoot: &Shoot| checks_are_complete(shoot) && reported(shoot);
    let what = format!("all processes ask {server}");
    shoot.wait(&what, MOVE_WITHIN, done).await.unwrap();
}

async fn refusal_names(landscape: &Landscape, shoot: &UserShoot, lists: [&str; 2]) {
    let events: Api<Event> = Api::namespaced(landscape.garden.clone(), &shoot.namespace);
    let missing = proof::until_nothing(COLLECTED_WITHIN, || async {
        let all = events.list(&ListParams::default()).await?;
        let notes: Vec<_> = all
            .iter()
            .filter(|event| event.reason.as_deref() == Some("ForceRestoreRefused"))
            .filter(|event| event.regarding.as_ref().and_then(|it| it.name.as_ref()) == Some(&shoot.name))
            .filter_map(|event| event.note.clone())
            .collect();
        if notes
            .iter()
            .any(|note| lists.iter().all(|list| note.contains(list)))
        {
            return Ok(Vec::new());
        }
        Ok(vec![format!("no Event names {lists:?}: {notes:?}")])
    })
    .await;
    assert_eq!(missing.unwrap(), Vec::<String>::new());
}
