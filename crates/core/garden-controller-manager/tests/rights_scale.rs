//! The rights of seeds in a garden of usual size: the number of objects, and the time until a right of a seed
//! is there and gone after a hand-over.
//!
//! `hack/bench.sh rights` runs this test; `REPOT_RIGHTS_SHOOTS` and `REPOT_RIGHTS_SEEDS` set the size.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

#[path = "garden/mod.rs"]
mod garden;

use std::time::Duration;

use anyhow::{Result, ensure};
use api::gardencore::{Shoot, ShootState};
use futures::{StreamExt, stream};
use garden::{Garden, Object};
use k8s_openapi::api::rbac::v1::{ClusterRole, RoleBinding};
use kube::{Api, Client, Resource, api::ListParams};
use serde_json::json;
use testkit::{eventually, size};
use tokio::{task::JoinSet, time::Instant};

const SHOOTS: usize = 250;
const SEEDS: usize = 10;
const PROJECTS: usize = 5;
/// Creations under way at the same time.
const AT_A_TIME: usize = 16;
/// Hand-overs, whose longest time counts.
const HAND_OVERS: usize = 10;
/// Within seconds, on a busy machine.
const SOON: Duration = Duration::from_secs(10);
/// For the first grants of all seeds.
const GRANTED_WITHIN: Duration = Duration::from_secs(300);

#[ignore = "a measurement of some minutes"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_of_seeds_follow_a_hand_over_within_seconds() -> Result<()> {
    let count = size("REPOT_RIGHTS_SHOOTS", SHOOTS)?;
    let seeds = size("REPOT_RIGHTS_SEEDS", SEEDS)?.max(2);
    let garden = Garden::start().await?;
    let mut controllers = JoinSet::new();
    controllers.spawn(garden_controller_manager::shoot_state::run(garden.context(&[])));
    fill(&garden, count, seeds).await?;
    let expected = PROJECTS * seeds.min(count / PROJECTS);
    let admin = garden.administrator();
    eventually("each seed has rights in each project", GRANTED_WITHIN, || async {
        let roles = objects::<ClusterRole>(&admin).await?;
        ensure!(roles >= expected, "{roles} ClusterRoles, {expected} expected");
        Ok(())
    })
    .await?;
    let (roles, bindings) = (
        objects::<ClusterRole>(&admin).await?,
        objects::<RoleBinding>(&admin).await?,
    );
    let (mut granted, mut ended) = (Duration::ZERO, Duration::ZERO);
    for number in 0..HAND_OVERS.min(count) {
        let (there, gone) = hand_over(&garden, number, seeds).await?;
        granted = granted.max(there);
        ended = ended.max(gone);
    }
    println!(
        "bench: | {count} shoots on {seeds} seeds in {PROJECTS} projects | {roles} | {bindings} | {:.1} s | {:.1} s |",
        granted.as_secs_f64(),
        ended.as_secs_f64()
    );
    ensure!(
        granted <= SOON && ended <= SOON,
        "there in {granted:?}, gone in {ended:?}"
    );
    Ok(())
}

fn namespace(number: usize) -> String {
    format!("garden-r{}", number % PROJECTS)
}

fn seed(number: usize, seeds: usize) -> String {
    format!("seed-r{}", number / PROJECTS % seeds)
}

async fn fill(garden: &Garden, count: usize, seeds: usize) -> Result<()> {
    for project in 0..PROJECTS {
        let labels =
            json!({"project.gardener.cloud/name": format!("r{project}"), "gardener.cloud/role": "project"});
        let metadata = json!({"name": namespace(project), "labels": labels});
        garden
            .bring(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))
            .await?;
    }
    for number in 0..seeds {
        let namespace = garden::seed_namespace(&seed(number * PROJECTS, seeds));
        garden.bring(&namespace).await?;
    }
    let created = stream::iter(0..count).map(|number| async move {
        let (namespace, seed) = (namespace(number), seed(number, seeds));
        garden
            .shoot_in(
                &namespace,
                &format!("s{number}"),
                &seed,
                Some(&seed),
                ("Reconcile", "Succeeded"),
            )
            .await;
    });
    created.buffer_unordered(AT_A_TIME).collect::<()>().await;
    Ok(())
}

/// The number of objects of a kind with rights of seeds.
async fn objects<K>(client: &Client) -> Result<usize>
where
    K: Object + Resource<DynamicType = ()>,
{
    let api: Api<K> = Api::all(client.clone());
    let labelled = ListParams::default().labels("gardener.cloud/role=seed-rights");
    Ok(api.list_metadata(&labelled).await?.items.len())
}

/// Hands a Shoot over, and returns the times until the new host may read the ShootState and until the former
/// host may not.
async fn hand_over(garden: &Garden, number: usize, seeds: usize) -> Result<(Duration, Duration)> {
    let (namespace, name) = (namespace(number), format!("s{number}"));
    let (from, to) = (seed(number, seeds), seed(number + PROJECTS, seeds));
    let states = async |seed: &str| -> Api<ShootState> {
        let user = format!("gardener.cloud:system:seed:{seed}");
        let client = garden.client(&user, &["gardener.cloud:system:seeds"]).await;
        Api::namespaced(client, &namespace)
    };
    let (former, new) = (states(&from).await, states(&to).await);
    eventually("the host may read the ShootState", GRANTED_WITHIN, || {
        former.get(&name)
    })
    .await?;
    let shoots: Api<Shoot> = garden.admin(&namespace);
    let begun = Instant::now();
    garden.status(&shoots, &name, json!({"seedName": to})).await;
    let granted = eventually("the right is there", SOON, || new.get(&name));
    let ended = eventually("the right is gone", SOON, || async {
        let read = former.get(&name).await;
        ensure!(read.is_err(), "the former host reads the ShootState");
        Ok(())
    });
    let granted = async { granted.await.map(|_| begun.elapsed()) };
    let ended = async { ended.await.map(|()| begun.elapsed()) };
    Ok(tokio::try_join!(granted, ended)?)
}
