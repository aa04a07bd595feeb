//! The planned move on real clusters (GEP-7): what is kept, what is not left, and that it ends whatever is killed.
//!
//! Needs the landscape `e2e` with the suite installed: `make e2e`. One test after the other, since each uses both seeds.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
    runtime::wait::await_condition,
};
use repot_tests::{
    dns, landscape::Landscape, manifests, proof, shoot::UserShoot, timeline::Timeline, writer::Writer,
};

const PROJECT: &str = "garden-dev";
const OBJECTS: usize = 500;
/// Bounds a whole move with room for a slow machine; the figures that count are printed.
const MOVE_WITHIN: Duration = Duration::from_secs(300);
/// The time in which the shoot's API cannot be written: a bound for a slow and busy machine, to notice a step that hangs.
/// The aim is 60 s; the figure is printed, and measured in docs/testing.md.
const UNWRITABLE_AT_MOST: Duration = Duration::from_secs(120);

async fn created(landscape: &Landscape, name: &str) -> UserShoot {
    manifests::apply_project(landscape).await.unwrap();
    manifests::apply_shoot(landscape, name).await.unwrap();
    let shoot = UserShoot::new(landscape, PROJECT, name);
    shoot.wait_until_on("seed-a", MOVE_WITHIN).await.unwrap();
    shoot
}

/// Deletes the Shoot and looks for what is left in seeds, DNS and bucket.
async fn deleted(landscape: &Landscape, shoot: &UserShoot) {
    let id = proof::technical_id(shoot).await.unwrap();
    let host = shoot.host().await.unwrap();
    shoot.delete().await.unwrap();
    let gone = Box::pin(await_condition(shoot.api(), &shoot.name, |shoot: Option<&_>| {
        shoot.is_none()
    }));
    tokio::time::timeout(MOVE_WITHIN, gone)
        .await
        .expect("the Shoot is not deleted in time")
        .unwrap();
    for (seed, client) in &landscape.seeds {
        let left = proof::until_nothing(Duration::from_secs(60), || proof::left_behind(client, &id))
            .await
            .unwrap();
        assert!(left.is_empty(), "left on {seed}: {left:?}");
    }
    assert_eq!(
        dns::addresses(landscape.dns, &host).await.unwrap(),
        Vec::<std::net::Ipv4Addr>::new(),
        "DNS still knows {host}"
    );
    let data = landscape.variable("S3_DATA").unwrap().to_owned();
    let left = proof::until_nothing(Duration::from_secs(60), || async {
        Ok(files_of(data.as_ref(), &id))
    })
    .await
    .unwrap();
    assert!(left.is_empty(), "left in the object store: {left:?}");
}

/// Snapshot files of a shoot in the object store's folder.
fn files_of(folder: &std::path::Path, id: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                files_of(&path, id)
            } else {
                vec![path.display().to_string()]
            }
        })
        .filter(|path| path.contains(id) && (path.contains("/Full-") || path.contains("/Incr-")))
        .collect()
}

#[tokio::test]
async fn a_shoot_moves_there_and_back_twice_and_keeps_everything() {
    let landscape = Landscape::open("e2e").await.unwrap();
    let shoot = created(&landscape, "keeps").await;
    let client = shoot.client().await.unwrap();
    proof::write_data(&client, OBJECTS).await.unwrap();
    let token = proof::service_account_token(&client).await.unwrap();
    let who = proof::whoami(&shoot, &token).await.unwrap();
    assert_eq!(who, "system:serviceaccount:default:default");
    let before = proof::read(&shoot, landscape.seed("seed-a").unwrap())
        .await
        .unwrap();
    let id = proof::technical_id(&shoot).await.unwrap();
    let mut next = 0;
    let mut last_version = 0;
    for (from, to) in [
        ("seed-a", "seed-b"),
        ("seed-b", "seed-a"),
        ("seed-a", "seed-b"),
        ("seed-b", "seed-a"),
    ] {
        let writer = Writer::start(UserShoot::new(&landscape, PROJECT, "keeps"), next);
        let timeline = Timeline::start(&shoot);
        shoot.set_seed(to).await.unwrap();
        shoot.wait_until_on(to, MOVE_WITHIN).await.unwrap();
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
        assert_eq!(
            proof::whoami(&shoot, &token).await.unwrap(),
            who,
            "the token of before the move is not valid any more"
        );
        let source = landscape.seed(from).unwrap();
        let left = proof::until_nothing(Duration::from_secs(60), || proof::left_behind(source, &id))
            .await
            .unwrap();
        assert!(left.is_empty(), "left on {from}: {left:?}");
        let left = proof::until_nothing(Duration::from_secs(30), || {
            proof::left_in_garden(&shoot, &landscape.garden)
        })
        .await
        .unwrap();
        assert!(left.is_empty(), "left in the garden: {left:?}");
        assert!(gap < UNWRITABLE_AT_MOST, "unwritable for {gap:?}");
        next = book.writes.last().unwrap().number + 1;
        last_version = book.writes.last().unwrap().version;
    }
    deleted(&landscape, &shoot).await;
}

#[tokio::test]
async fn a_move_ends_although_the_gardenlets_are_killed_five_times() {
    let landscape = Landscape::open("e2e").await.unwrap();
    let shoot = created(&landscape, "killed").await;
    proof::write_data(&shoot.client().await.unwrap(), 50)
        .await
        .unwrap();
    let before = proof::read(&shoot, landscape.seed("seed-a").unwrap())
        .await
        .unwrap();
    let id = proof::technical_id(&shoot).await.unwrap();
    shoot.set_seed("seed-b").await.unwrap();
    // A kill when the progress has passed each of five marks, which lie wherever the two flows happen to be.
    for (kill, pause) in [700_u64, 1900, 3100, 2300, 4700].into_iter().enumerate() {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let last = shoot
            .get()
            .await
            .unwrap()
            .status
            .unwrap_or_default()
            .last_operation;
        println!(
            "kill {}: {:?}",
            kill + 1,
            last.map(|last| (last.type_, last.progress, last.description))
        );
        for client in landscape.seeds.values() {
            let pods: Api<Pod> = Api::namespaced(client.clone(), "garden");
            for pod in pods
                .list(&ListParams::default().labels("app.kubernetes.io/name=gardenlet"))
                .await
                .unwrap()
            {
                pods.delete(&pod.name_any(), &DeleteParams::default().grace_period(0))
                    .await
                    .unwrap();
            }
        }
    }
    shoot.wait_until_on("seed-b", MOVE_WITHIN).await.unwrap();
    let after = proof::read(&shoot, landscape.seed("seed-b").unwrap())
        .await
        .unwrap();
    assert_eq!(before.differences(&after), Vec::<String>::new());
    let source = landscape.seed("seed-a").unwrap();
    let left = proof::until_nothing(Duration::from_secs(60), || proof::left_behind(source, &id))
        .await
        .unwrap();
    assert!(left.is_empty(), "left on seed-a: {left:?}");
    deleted(&landscape, &shoot).await;
}

/// I8: a move that cannot begin changes nothing, says why, and begins by itself once it can.
#[tokio::test]
async fn a_move_to_a_seed_that_does_not_exist_changes_nothing_and_says_why() {
    let landscape = Landscape::open("e2e").await.unwrap();
    let shoot = created(&landscape, "refused").await;
    let id = proof::technical_id(&shoot).await.unwrap();
    shoot.set_seed("nowhere").await.unwrap();
    let refused = shoot
        .wait("the constraint says why", Duration::from_secs(60), |shoot| {
            shoot
                .status
                .as_ref()
                .and_then(|status| status.constraint("ReadyForMigration"))
                .is_some_and(|constraint| {
                    constraint.status == api::meta::ConditionStatus::False
                        && constraint.message.contains("nowhere")
                })
        })
        .await
        .unwrap();
    assert_eq!(
        refused.status.as_ref().unwrap().seed_name.as_deref(),
        Some("seed-a")
    );
    let namespaces: Api<Namespace> = Api::all(landscape.seed("seed-a").unwrap().clone());
    assert!(
        namespaces
            .get(&id)
            .await
            .unwrap()
            .metadata
            .deletion_timestamp
            .is_none()
    );
    shoot
        .client()
        .await
        .unwrap()
        .apiserver_version()
        .await
        .expect("the shoot's API must still answer");
    let other = shoot.set_seed("seed-b").await.unwrap_err().to_string();
    assert!(other.contains("set spec.seedName back to seed-a"), "{other}");
    shoot.set_seed("seed-a").await.unwrap();
    shoot.set_seed("seed-b").await.unwrap();
    shoot.wait_until_on("seed-b", MOVE_WITHIN).await.unwrap();
    deleted(&landscape, &shoot).await;
}
