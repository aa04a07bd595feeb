//! Instances that no Machine stands for.

use anyhow::{Result, ensure};
use kube::Client;
use serde_json::json;
use testkit::eventually;

use crate::world::{SOON, World, phase, timing};

/// gardener/gardener#8742, #3520: what is found before all was matched once is kept, and so is what has a Node.
pub async fn orphans_are_collected_only_when_it_is_sure_that_they_are(client: &Client) -> Result<()> {
    let world = World::start(client, "orphans").await?;
    world.cloud.put("before");
    world.machine("own", json!({})).await?;
    let running = world.run(timing());
    world.until("own", "it runs", |m| phase(m) == "Running").await?;
    let note = world.event("first", "OrphansAreKept").await?;
    ensure!(note.contains("before"), "{note}");
    running.until("machine-safety", "success", 3).await?;
    ensure!(world.cloud.calls("delete").is_empty());

    // Somebody has looked at it. From now on a listing is complete.
    world.cloud.take("before");
    running.until("machine-safety", "success", 2).await?;
    // The Node comes first: without one the instance would be an orphan for a moment.
    world.cloud.register("with-node", "False").await?;
    world.cloud.put("with-node");
    world.cloud.put("orphan");
    eventually("it is collected", SOON, || async {
        let left = world.cloud.instances();
        ensure!(left == ["own", "with-node"], "{left:?}");
        anyhow::Ok(())
    })
    .await?;
    let note = world.event("first", "OrphanCollected").await?;
    ensure!(note.contains("orphan"), "{note}");
    running.until("machine-safety", "success", 3).await?;
    ensure!(
        world.cloud.calls("delete") == ["delete orphan"],
        "{:?}",
        world.cloud.calls("delete")
    );

    Ok(())
}
