//! An idle gardenlet needs little memory, at any number of shoots.
//!
//! The figure is printed; docs/understand/bench.md has the figures for further numbers of shoots
//! (`REPOT_IDLE_SHOOTS`).

#![allow(clippy::unwrap_used, clippy::panic)]

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use api::gardencore::Shoot;
use futures::{StreamExt, TryStreamExt, stream};
use garden_fixture::PROJECT;
use kube::{
    Api, Client, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use serde_json::json;
use testkit::{ControlPlane, Idle, Server, apply, size};

const SHOOTS: usize = 250;
/// Maximum private memory of the process, in KiB. Pages of the program file are shared and can be dropped, so
/// these pages do not count.
const AT_MOST: u64 = 25 * 1024;
/// A first round, or two further rounds, over all shoots on a busy machine.
const LOOKED_AFTER_WITHIN: Duration = Duration::from_secs(180);
const CONDITIONS: usize = 5;
/// Pause of the ShootState controller between two attempts for an incomplete namespace, in seconds.
const ATTEMPT_PAUSE: u64 = 60;
/// Interval of the checks of shoots, if the environment sets the interval.
const CARE: &str = "REPOT_IDLE_CARE";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gardenlet_idles_in_little_memory() -> Result<()> {
    let count = size("REPOT_IDLE_SHOOTS", SHOOTS)?;
    let plane = ControlPlane::start("idle").await?;
    let client = plane.admin();
    let crds: Vec<_> = api::all_crds().into_iter().map(|crd| crd.definition).collect();
    testkit::apply_crds(&client, &crds).await?;
    for namespace in [PROJECT, "garden"] {
        apply(
            &client,
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        )
        .await?;
    }
    stream::iter(0..count)
        .map(|number| garden_fixture::settled(&client, number, json!({})))
        .buffer_unordered(8)
        .try_collect::<Vec<()>>()
        .await?;

    testkit::free_lock(&client, "garden", "gardenlet").await?;
    let folder = tempfile::tempdir()?;
    let seed = json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": "seed-a"},
        "spec": {"provider": {"type": "local", "region": "local"}, "dns": {},
            "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"}}});
    std::fs::write(folder.path().join("seed.yaml"), seed.to_string())?;
    let kubeconfig = plane.admin_kubeconfig_file().display().to_string();
    let arguments = [
        format!("--garden-kubeconfig={kubeconfig}"),
        format!("--seed-kubeconfig={kubeconfig}"),
        "--seed-name=seed-a".into(),
        "--seed-config=seed.yaml".into(),
        "--health-address=127.0.0.1:0".into(),
        // Longer lock timeouts: the test measures memory, and a machine that is busy with further tests must
        // not cost the gardenlet its lock.
        "--leader-elect-lease-duration=90s".into(),
        "--leader-elect-renew-deadline=60s".into(),
        format!("--care-sync-period={}", care_sync_period()),
        "--condition-threshold=1s".into(),
    ];
    let mut gardenlet = Server::start(
        "gardenlet",
        env!("CARGO_BIN_EXE_gardenlet"),
        folder.path(),
        arguments,
        &[],
    )?;
    let shoots: Api<Shoot> = Api::namespaced(client.clone(), PROJECT);
    let settled = testkit::timeout(LOOKED_AFTER_WITHIN, settled(shoots, count)).await;
    gardenlet.check_alive()?;
    settled
        .with_context(|| format!("not all shoots are looked after within {LOOKED_AFTER_WITHIN:?}"))
        .flatten()
        .with_context(|| gardenlet.log_tail())?;
    if std::env::var_os(CARE).is_none() {
        asks_the_garden_for_nothing(&client, count).await?;
    }
    let idle = Idle::measure(&gardenlet).await?;
    idle.tell("gardenlet", &format!("{count} shoots"));
    ensure!(idle.own < AT_MOST, "{} KiB are more than {AT_MOST} KiB", idle.own);
    Ok(())
}

/// Interval of the checks of shoots. Short by default, so that the second round over all shoots comes soon.
/// `REPOT_IDLE_CARE` sets a longer interval in order to measure the processor time.
fn care_sync_period() -> String {
    std::env::var(CARE).unwrap_or_else(|_| "5s".to_owned())
}

/// Two checks of each shoot that change no condition read no Shoot from the garden: the garden has many
/// seeds.
async fn asks_the_garden_for_nothing(client: &Client, count: usize) -> Result<()> {
    let begun = Instant::now();
    let (looks, attempts, asked) = (
        requests(client, "LIST", "etcds").await?,
        requests(client, "GET", "namespaces").await?,
        requests(client, "GET", "shoots").await?,
    );
    testkit::eventually(
        "all shoots are looked at twice more",
        LOOKED_AFTER_WITHIN,
        || async {
            let now = requests(client, "LIST", "etcds")
                .await
                .map_err(|e| e.to_string())?
                - looks;
            if now >= 2 * count {
                Ok(())
            } else {
                Err(format!("{now} looks"))
            }
        },
    )
    .await?;
    let asked = requests(client, "GET", "shoots").await? - asked;
    let attempts = requests(client, "GET", "namespaces").await? - attempts;
    // At most a single attempt for each shoot, and a further attempt for each pause. Looks that read the
    // namespace exceed the limit.
    let rounds = 2 + usize::try_from(begun.elapsed().as_secs() / ATTEMPT_PAUSE)?;
    ensure!(
        attempts < rounds * count,
        "two looks at {count} shoots and the attempts read {attempts} namespaces, not less than {rounds} for each shoot"
    );
    // The shoots have no state to keep, and the ShootState controller retries. Each attempt reads the
    // namespace once and the Shoot twice.
    ensure!(
        asked < 2 * (count + attempts),
        "two looks at {count} shoots and {attempts} attempts asked {asked} times for one of them"
    );
    Ok(())
}

/// How many requests the API server has answered.
async fn requests(client: &Client, verb: &str, resource: &str) -> Result<usize> {
    let text = client
        .request_text(http::Request::get("/metrics").body(Vec::new())?)
        .await?;
    let (verb, resource) = (format!("verb=\"{verb}\""), format!("resource=\"{resource}\""));
    let lines = text.lines().filter(|line| {
        line.starts_with("apiserver_request_total{") && line.contains(&verb) && line.contains(&resource)
    });
    lines
        .map(|line| line.rsplit(' ').next().unwrap_or_default().parse::<usize>())
        .try_fold(0, |all, count| Ok(all + count?))
}

/// Waits until every shoot has its conditions and no condition waits for a threshold any more: later rounds
/// change no condition. The test uses a watch, because repeated lists of 250 shoots would take processor time
/// from the measured gardenlet.
async fn settled(shoots: Api<Shoot>, count: usize) -> Result<()> {
    let mut changes = watcher(shoots, watcher::Config::default())
        .default_backoff()
        .applied_objects()
        .boxed();
    let mut done = BTreeSet::new();
    while done.len() < count {
        let shoot = changes.try_next().await?.context("the watch ended")?;
        let conditions = shoot.status.iter().flat_map(|status| &status.conditions);
        let ends = conditions.filter(|c| c.status != api::meta::ConditionStatus::Progressing);
        if ends.count() == CONDITIONS {
            done.insert(shoot.name_any());
        } else {
            done.remove(&shoot.name_any());
        }
    }
    Ok(())
}
