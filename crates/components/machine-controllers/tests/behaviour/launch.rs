//! A launch that the cloud accepts and then ends.

use anyhow::{Result, ensure};
use api::meta::ErrorCode;
use kube::Client;
use machine_controllers::Timing;
use runtime::Error;
use serde_json::json;

use crate::world::{World, last, phase, timing};

/// The cause is reported at once, and kept when the Machine fails.
pub async fn an_ended_launch_is_reported_long_before_the_creation_timeout(client: &Client) -> Result<()> {
    let world = World::start(client, "launch").await?;
    world.cloud.joins.send_replace(false);
    for machine in ["e1", "e2"] {
        let quota = Error::config(ErrorCode::ErrInfraQuotaExceeded, "no volume for the new instance");
        world.cloud.end_launch(machine, quota);
    }
    let _running = world.run(Timing {
        power_every: timing().poll_interval,
        ..timing()
    });
    for (machine, creation, expected) in [("e1", "20m", "CrashLoopBackOff"), ("e2", "1s", "Failed")] {
        world
            .machine(machine, json!({"creationTimeout": creation}))
            .await?;
        let reported = world
            .until(machine, "the end is reported", |machine| {
                phase(machine) == expected
            })
            .await?;
        let (code, why) = last(&reported);
        ensure!(
            code == "ErrInfraQuotaExceeded" && why.contains("no volume"),
            "{reported:?}"
        );
    }
    let note = world.event("e2", "MachineFailed").await?;
    ensure!(note.contains("no volume"), "{note}");
    Ok(())
}
