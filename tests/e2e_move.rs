//! The planned move on real clusters (GEP-7): data that stay, leftovers that must not exist, and the end of
//! the move despite killed processes.
//!
//! Needs the landscape `e2e` with the suite installed: `make e2e`. The tests run in sequence, since each test
//! uses both seeds.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use api::meta::{LastOperationState, LastOperationType};
use repot_tests::{
    hunter::Hunter,
    is_every_scenario,
    landscape::Landscape,
    lifecycle::{
        COLLECTED_WITHIN, MOVE_WITHIN, PROJECT, created, deleted, kill_gardenlets, lose_final_snapshot,
        nothing_left, snapshots_of,
    },
    proof,
    shoot::UserShoot,
    stored,
    timeline::Timeline,
    writer::Writer,
};

const OBJECTS: usize = 500;
/// Limit for the time without writes to the shoot's API: detects a step that hangs. About twice the longest
/// time on two busy cores, 45.5 s (docs/understand/testing.md). The aim is 60 s, and the figure is printed.
const UNWRITABLE_AT_MOST: Duration = Duration::from_secs(100);
/// Kills per move.
const KILLS: usize = 5;
/// Longest pause before a kill, in milliseconds. Five pauses last about as long as a move without kills.
const PAUSE_AT_MOST: u64 = 6000;

#[tokio::test]
async fn a_shoot_moves_there_and_back_and_keeps_everything() {
    let landscape = Landscape::open("e2e").await.unwrap();
    let shoot = created(&landscape, "keeps").await.unwrap();
    let client = shoot.client().await.unwrap();
    proof::write_data(&client, OBJECTS).await.unwrap();
    let token = proof::service_account_token(&client).await.unwrap();
    let who = proof::whoami(&shoot, &token).await.unwrap();
    assert_eq!(who, "system:serviceaccount:default:default");
    let before = proof::read(&shoot, landscape.seed("seed-a").unwrap())
        .await
        .unwrap();
    let id = proof::technical_id(&shoot).await.unwrap();
    // The garden stores the data that a dead seed would take along, and the data are encrypted on disk
    // (R7-25).
    for kept in ["core.gardener.cloud/shootstates/", "secrets/"] {
        let found = stored::encrypted_below(&landscape, &format!("/registry/{kept}")).await;
        assert!(found.unwrap() > 0, "etcd has no {kept}");
    }
    let mut next = 0;
    let mut last_version = 0;
    let there_and_back = [("seed-a", "seed-b"), ("seed-b", "seed-a")];
    // The second move back meets the leftovers of the first move back.
    let rounds = if is_every_scenario() { 2 } else { 1 };
    for (from, to) in there_and_back.repeat(rounds) {
        let writer = Writer::start(UserShoot::new(&landscape, PROJECT, "keeps"), next);
        let timeline = Timeline::start(&shoot);
        shoot.set_seed(to).await.unwrap();
        arrives(&landscape, &shoot, (from, to)).await;
        let book = writer.stop().await.unwrap();
        let client = shoot.client().await.unwrap();
        let gap = book.longest_gap();
        println!(
            "{from} -> {to}: unwritable for {:.1} s, {} writes acknowledged, {} refused",
            gap.as_secs_f64(),
            book.writes.len(),
            book.failures
        );
        if let Some((gap_from, gap_to)) = book.longest_gap_between() {
            print!("{}", timeline.between(gap_from, gap_to));
        }
        assert!(!book.writes.is_empty(), "nothing was written while it moved");
        assert_eq!(
            book.lost(&client).await.unwrap(),
            Vec::<u64>::new(),
            "acknowledged writes are lost"
        );
        assert_eq!(book.versions_that_went_back(), [], "resourceVersions went back");
        assert!(
            book.writes[0].version > last_version,
            "resourceVersions went back between two moves"
        );
        let after = proof::read(&shoot, landscape.seed(to).unwrap()).await.unwrap();
        assert_eq!(before.differences(&after), Vec::<String>::new());
        proof::stores_events(&shoot.client().await.unwrap())
            .await
            .unwrap();
        assert_eq!(
            proof::whoami(&shoot, &token).await.unwrap(),
            who,
            "the token of before the move is not valid any more"
        );
        nothing_left(&landscape, from, &id).await.unwrap();
        let left = proof::until_nothing(COLLECTED_WITHIN, || {
            proof::left_in_garden(&shoot, &landscape.garden)
        })
        .await
        .unwrap();
        assert!(left.is_empty(), "left in the garden: {left:?}");
        assert!(gap < UNWRITABLE_AT_MOST, "unwritable for {gap:?}");
        next = book.writes.last().unwrap().number + 1;
        last_version = book.writes.last().unwrap().version;
    }
    deleted(&landscape, &shoot).await.unwrap();
}

/// The shoot arrives. On the way back the final snapshot vanishes from the bucket between hand-over and copy,
/// and no write is lost.
async fn arrives(landscape: &Landscape, shoot: &UserShoot, (from, to): (&str, &str)) {
    let is_lost = to == "seed-a";
    let (arrived, lost) = tokio::join!(shoot.wait_until_on(to, MOVE_WITHIN), async {
        if is_lost {
            lose_final_snapshot(landscape, shoot, (from, to)).await
        } else {
            Ok(Vec::new())
        }
    });
    arrived.unwrap();
    let lost = lost.unwrap();
    assert_eq!(
        lost.is_empty(),
        !is_lost,
        "final snapshots that were removed: {lost:?}"
    );
    let copied = snapshots_of(landscape, shoot, to).await.unwrap();
    assert!(
        !lost.iter().any(|name| copied.contains(name)),
        "{lost:?} was copied before it was removed"
    );
}

#[tokio::test]
async fn a_move_ends_although_the_gardenlets_are_killed_at_five_random_moments() {
    let landscape = Landscape::open("e2e").await.unwrap();
    let shoot = created(&landscape, "killed").await.unwrap();
    proof::write_data(&shoot.client().await.unwrap(), 50)
        .await
        .unwrap();
    let before = proof::read(&shoot, landscape.seed("seed-a").unwrap())
        .await
        .unwrap();
    let id = proof::technical_id(&shoot).await.unwrap();
    shoot.set_seed("seed-b").await.unwrap();
    let mut hunter = Hunter::new().unwrap();
    let (mut from, mut to) = ("seed-a", "seed-b");
    for kill in 1..=KILLS {
        hunter.lies_in_wait(PAUSE_AT_MOST).await;
        let status = shoot.get().await.unwrap().status.unwrap_or_default();
        let last = status.last_operation.unwrap();
        println!(
            "kill {kill}: {} {}%: {}",
            last.type_, last.progress, last.description
        );
        // On the way back, the status still shows the success of the first move until the source has begun.
        let has_arrived = status.seed_name.as_deref() == Some(to);
        if has_arrived
            && last.type_ == LastOperationType::Restore
            && last.state == LastOperationState::Succeeded
        {
            println!("the move was over; the next kills meet the way back");
            (from, to) = (to, from);
            shoot.set_seed(to).await.unwrap();
        }
        kill_gardenlets(&landscape).await.unwrap();
    }
    shoot.wait_until_on(to, MOVE_WITHIN).await.unwrap();
    let after = proof::read(&shoot, landscape.seed(to).unwrap()).await.unwrap();
    assert_eq!(before.differences(&after), Vec::<String>::new());
    nothing_left(&landscape, from, &id).await.unwrap();
    deleted(&landscape, &shoot).await.unwrap();
}
