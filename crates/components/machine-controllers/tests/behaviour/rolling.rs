//! A rolling update, watched at every moment.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use api::machine::Machine;
use futures::{StreamExt, pin_mut};
use kube::{
    Client, ResourceExt,
    runtime::watcher::{self, watcher},
};
use serde_json::{Value, json};

use crate::world::{World, phase, timing};

const REPLICAS: usize = 3;

pub async fn bounds_hold_with_a_surge(client: &Client) -> Result<()> {
    roll(
        client,
        "surge",
        json!({"maxSurge": 1, "maxUnavailable": 0}),
        REPLICAS + 1,
        REPLICAS,
    )
    .await
}

pub async fn bounds_hold_without_a_surge(client: &Client) -> Result<()> {
    roll(
        client,
        "nosurge",
        json!({"maxSurge": 0, "maxUnavailable": 1}),
        REPLICAS,
        REPLICAS - 1,
    )
    .await
}

async fn roll(client: &Client, name: &str, bounds: Value, most: usize, least: usize) -> Result<()> {
    let world = World::start(client, name).await?;
    world.class("second", "script").await?;
    let _running = world.run(timing());
    let strategy =
        json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": bounds}, "revisionHistoryLimit": 0});
    world.deployment(3, strategy).await?;
    let before = world.until_done(3).await?;
    let changed = async {
        world
            .change_deployment(json!({"template": {"spec": {"class": {"name": "second"}}}}))
            .await?;
        world.until_done(3).await
    };
    let after = tokio::select! {
        after = changed => after?,
        broken = watch(&world, most, least) => {
            broken?;
            anyhow::bail!("the watch ended")
        }
    };
    for machine in &after {
        let class = machine
            .spec
            .class
            .as_ref()
            .and_then(|class| class.name.as_deref());
        ensure!(
            class == Some("second") && phase(machine) == "Running",
            "{machine:?}"
        );
        ensure!(before.iter().all(|old| old.name_any() != machine.name_any()));
    }
    ensure!(world.cloud.calls("create").len() == 6 && world.cloud.calls("delete").len() == 3);
    testkit::eventually("the old set is forgotten", crate::world::SOON, || async {
        let sets = world.sets().await?;
        ensure!(sets.len() == 1, "{} sets", sets.len());
        anyhow::Ok(())
    })
    .await
}

/// Ends when a bound is broken.
async fn watch(world: &World, most: usize, least: usize) -> Result<()> {
    let events = watcher(world.api::<Machine>(), watcher::Config::default());
    pin_mut!(events);
    let mut machines: BTreeMap<String, Machine> = BTreeMap::new();
    let mut listed = false;
    while let Some(event) = events.next().await {
        match event.context("the watch")? {
            watcher::Event::Init => {}
            watcher::Event::InitDone => listed = true,
            watcher::Event::Apply(machine) | watcher::Event::InitApply(machine) => {
                machines.insert(machine.name_any(), machine);
            }
            watcher::Event::Delete(machine) => {
                machines.remove(&machine.name_any());
            }
        }
        let told: Vec<_> = machines.values().map(|m| (m.name_any(), phase(m))).collect();
        ensure!(machines.len() <= most, "more than {most}: {told:?}");
        let available = machines
            .values()
            .filter(|machine| machine.metadata.deletion_timestamp.is_none() && phase(machine) == "Running");
        ensure!(
            !listed || available.count() >= least,
            "fewer than {least} are ready: {told:?}"
        );
    }
    Ok(())
}
