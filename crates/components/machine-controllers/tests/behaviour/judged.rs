//! Machines that are unhealthy, or never join: replaced one at a time, and not at all while the state of
//! machines is unknown.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use api::machine::Machine;
use futures::{StreamExt, pin_mut};
use kube::{
    Client, Config, ResourceExt,
    config::KubeConfigOptions,
    runtime::watcher::{self, watcher},
};
use runtime::client::{Connection, Permit};
use serde_json::json;
use testkit::{Relay, eventually};

use crate::{
    cloud::{node, report},
    world::{SOON, World, last, phase, timing},
};

/// The bound after which a Machine is judged. Longer than a busy server takes to report a Node.
const BOUND: &str = "2s";
/// The bound of a Machine that recovers within it: far longer than a busy server takes to report that.
const LONG_BOUND: Duration = Duration::from_secs(10);

pub async fn one_that_never_joins_is_told_and_replaced(client: &Client) -> Result<()> {
    let world = World::start(client, "joins").await?;
    world.cloud.joins.send_replace(false);
    let _running = world.run(timing());
    world
        .deployment(1, json!({"template": {"spec": {"creationTimeout": BOUND}}}))
        .await?;
    let failed = eventually("a Machine fails", SOON, || async {
        let calls = world.cloud.calls("delete");
        let name = calls.first().and_then(|call| call.strip_prefix("delete "));
        name.map(ToOwned::to_owned).context("none was deleted")
    })
    .await?;
    world.cloud.joins.send_replace(true);
    let note = world.event(&failed, "MachineFailed").await?;
    ensure!(
        note.contains("did not join the cluster within 2s: it has no Node"),
        "{note}"
    );
    let now = world.until_done(1).await?;
    ensure!(phase(&now[0]) == "Running" && now[0].name_any() != failed);
    Ok(())
}

/// At every moment at most a single Machine of a deployment is replaced.
async fn never_two_at_once(world: &World) -> Result<()> {
    let events = watcher(world.api::<Machine>(), watcher::Config::default());
    pin_mut!(events);
    let mut machines: BTreeMap<String, Machine> = BTreeMap::new();
    while let Some(event) = events.next().await {
        match event.context("the watch")? {
            watcher::Event::Init | watcher::Event::InitDone => {}
            watcher::Event::Apply(machine) | watcher::Event::InitApply(machine) => {
                machines.insert(machine.name_any(), machine);
            }
            watcher::Event::Delete(machine) => {
                machines.remove(&machine.name_any());
            }
        }
        let failed = machines.values().filter(|machine| {
            phase(machine) == "Failed"
                || phase(machine) == "Terminating"
                || machine.metadata.deletion_timestamp.is_some()
        });
        let failed: Vec<_> = failed.map(|m| (m.name_any(), phase(m))).collect();
        ensure!(failed.len() <= 1, "{failed:?}");
    }
    Ok(())
}

pub async fn many_unhealthy_ones_are_replaced_one_after_the_other(client: &Client) -> Result<()> {
    let world = World::start(client, "ill").await?;
    let _running = world.run(timing());
    world
        .deployment(3, json!({"template": {"spec": {"healthTimeout": BOUND}}}))
        .await?;
    let before = world.until_done(3).await?;
    let replaced = async {
        for machine in &before {
            report(client, &node(&machine.name_any()), "False").await?;
        }
        eventually("all are replaced", SOON, || async {
            let machines = world.machines().await?;
            let old = machines
                .iter()
                .filter(|m| before.iter().any(|b| b.name_any() == m.name_any()));
            let old: Vec<_> = old.map(|m| (m.name_any(), last(m).1)).collect();
            ensure!(old.is_empty(), "{old:?}");
            anyhow::Ok(())
        })
        .await?;
        world.until_done(3).await
    };
    tokio::select! {
        done = replaced => done.map(drop),
        broken = never_two_at_once(&world) => {
            broken?;
            anyhow::bail!("the watch ended")
        }
    }
}

/// gardener/machine-controller-manager#718: the shoot's API does not answer, and meanwhile no kubelet could
/// report.
pub async fn nothing_is_judged_while_the_api_does_not_answer(client: &Client) -> Result<()> {
    let world = World::start(client, "frozen").await?;
    let relay = Relay::start(client.clone()).await?;
    let config = Config::from_custom_kubeconfig(relay.kubeconfig()?, &KubeConfigOptions::default()).await?;
    let running = world.run_as(timing(), &Permit::sole("a test"), Connection::new(config)?);
    let bound = format!("{}s", LONG_BOUND.as_secs());
    world
        .deployment(2, json!({"template": {"spec": {"healthTimeout": bound}}}))
        .await?;
    let before = world.until_done(2).await?;
    let [first, second] = [&before[0], &before[1]].map(ResourceExt::name_any);

    relay.hold_after(0);
    report(client, &node(&first), "Unknown").await?;
    world
        .until(&first, "its Node's silence is seen", |m| phase(m) == "Unknown")
        .await?;
    world.delete_machine(&second).await?;
    // Each reconciliation ends after a second without an answer. The bound passes more than once meanwhile.
    let silent = Instant::now();
    while silent.elapsed() < 2 * LONG_BOUND {
        running.until("machine", "NotReady", 4).await?;
    }
    let (one, two) = (
        world.until(&first, "", |_| true).await?,
        world.until(&second, "", |_| true).await?,
    );
    ensure!(phase(&one) == "Unknown", "judged: {one:?}");
    ensure!(two.metadata.deletion_timestamp.is_some() && world.cloud.calls("delete").is_empty());

    // From now on the Machine has the whole bound to recover, and recovers.
    relay.release();
    report(client, &node(&first), "True").await?;
    world
        .until(&first, "it is well again", |m| phase(m) == "Running")
        .await?;
    world.until_gone(&second).await?;
    world.until_done(2).await?;
    ensure!(world.cloud.calls("delete") == [format!("delete {second}")]);
    Ok(())
}
