//! The reason of a failure is reported, and a permit that is lost stops all work.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::meta::ErrorCode;
use kube::Client;
use permit::{Clock, Issuer};
use runtime::Error;
use serde_json::json;
use testkit::eventually;

use crate::world::{SOON, World, last, phase, timing};

/// Longer than the test.
const LONG: Duration = Duration::from_secs(3600);

pub async fn what_is_in_the_way_is_told(client: &Client) -> Result<()> {
    let world = World::start(client, "refused").await?;
    world.secret("no-script", json!({"other": "x"})).await?;
    world.class("without-script", "no-script").await?;
    world.class("without-secret", "nowhere").await?;
    let quota = Error::config(ErrorCode::ErrInfraQuotaExceeded, "the account has room for none");
    world.cloud.refuse(Some(quota));
    let _running = world.run(timing());
    let class = |name: &str| json!({"class": {"kind": "MachineClass", "name": name}});
    for (machine, spec, code, says) in [
        (
            "a",
            class("nobody"),
            "ErrConfigurationProblem",
            "MachineClass nobody",
        ),
        (
            "b",
            class("without-script"),
            "ErrConfigurationProblem",
            "refused/no-script",
        ),
        (
            "c",
            class("without-secret"),
            "ErrConfigurationProblem",
            "refused/nowhere",
        ),
        (
            "d",
            class("first"),
            "ErrInfraQuotaExceeded",
            "the account has room for none",
        ),
        (
            "e",
            json!({"class": null}),
            "ErrConfigurationProblem",
            "names no MachineClass",
        ),
        (
            "f",
            json!({"creationTimeout": "1s"}),
            "ErrInfraQuotaExceeded",
            "room for none",
        ),
    ] {
        world.machine(machine, spec).await?;
        let expected = if machine == "f" {
            "Failed"
        } else {
            "CrashLoopBackOff"
        };
        let told = world
            .until(machine, says, |m| {
                phase(m) == expected && last(m).1.contains(says)
            })
            .await?;
        ensure!(last(&told).0 == code, "{told:?}");
    }
    ensure!(world.cloud.instances().is_empty());
    // A class that is created at last is used at once. A cloud that has room again is used at the next retry.
    world.cloud.refuse(None);
    world.class("nobody", "script").await?;
    for machine in ["a", "d"] {
        world
            .until(machine, "it runs after all", |m| phase(m) == "Running")
            .await?;
    }
    Ok(())
}

pub async fn a_right_that_is_lost_stops_all_calls(client: &Client) -> Result<()> {
    let world = World::start(client, "lost").await?;
    let clock = Clock::default();
    let until = clock.now() + LONG;
    let issuer = Issuer::new("the lock of a test", clock, until);
    world.machine("there", json!({})).await?;
    let running = world.run_as(timing(), &issuer.permit(), client.clone().into());
    world.until("there", "it runs", |m| phase(m) == "Running").await?;

    world.cloud.answers.send_replace(false);
    for machine in ["l1", "l2"] {
        world.machine(machine, json!({})).await?;
    }
    eventually("both are under way", SOON, || async {
        let calls = world.cloud.calls("create").len();
        ensure!(calls == 3, "{calls}");
        anyhow::Ok(())
    })
    .await?;
    issuer.end("another one has it");
    let calls = world.cloud.calls("");
    // Requests all further operations, and the cloud answers again.
    world.cloud.answers.send_replace(true);
    world.machine("l3", json!({})).await?;
    world.delete_machine("there").await?;
    eventually("it is refused", SOON, || async {
        let refused = running.outcomes("machine", "NotOwner");
        ensure!(refused >= 2, "{refused}");
        anyhow::Ok(())
    })
    .await?;
    ensure!(world.cloud.calls("") == calls, "{:?}", world.cloud.calls(""));
    ensure!(
        world.cloud.instances() == ["there"],
        "{:?}",
        world.cloud.instances()
    );
    drop(running);

    // The next holder of the permit continues, and creates no instance twice.
    let _next = world.run(timing());
    for machine in ["l1", "l2", "l3"] {
        world.until(machine, "it runs", |m| phase(m) == "Running").await?;
    }
    world.until_gone("there").await?;
    ensure!(world.cloud.instances() == ["l1", "l2", "l3"]);
    Ok(())
}
