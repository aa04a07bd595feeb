//! Effects of the annotation that isolates a zone (RZ-01..05). The gardenlet checks before it begins, answers
//! a dry run, and ends a failover that the user no longer wants. A real API server serves as garden, seed and
//! shoot.

#![allow(clippy::unwrap_used, clippy::panic, clippy::large_futures)]

#[path = "../ground/mod.rs"]
mod ground;
mod world;

use anyhow::{Result, ensure};
use api::{
    extensions::{SubnetIsolation, Worker},
    gardencore::shoot::{ZoneIsolationPhase as Phase, ZoneIsolationStatus as Status},
};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt, api::ListParams};
use runtime::clock;
use serde_json::{Value, json};
use testkit::eventually;

use ground::NAMESPACE;
use world::{CLOSE_NOW, DRY_RUN, ISOLATED, World};

#[test]
fn a_failover_begins_only_where_it_can_end_well() -> Result<()> {
    world::story(looked_before())
}

async fn looked_before() -> Result<()> {
    let world = Box::pin(World::start("zones-look", false)).await?;
    world
        .shoot(json!({"seedName": "seed-a", "lastOperation": world::succeeded()}))
        .await?;
    world.shoot_api().await?;
    world.node("n-a", "id-a", "a", true).await?;
    world.node("n-b", "id-b", "b", false).await?;
    world.etcd_on("n-a").await?;
    // A user with write access to a shoot can make its objects very large, so the gardenlet reads the objects
    // in small pages.
    world.heavy_nodes(8).await?;
    let _gardenlet = world.gardenlet()?;

    let told = world.asked("id-b").await?;
    ensure!(
        told.contains("No Node outside") || told.contains("would leave"),
        "{told}"
    );
    let told = world.asked("id-a").await?;
    ensure!(
        told.contains("would be refused. The shoot's control plane runs in zone id-a"),
        "{told}"
    );
    world.move_etcd_to("n-b").await?;
    world.ready("n-b", true).await?;
    world.machines_and_volumes().await?;
    let told = world.asked("id-a").await?;
    for part in [
        "2 machines would leave zone id-a (a), 1 of them without a successor",
        "both: 1 of 2, replaced",
        "narrow: 1 of 1, none replaced",
        "1 pods have volumes of the zone and would wait until it is back: default/db-0",
    ] {
        ensure!(told.contains(part), "{told}");
    }
    let told = world.asked("id-x").await?;
    ensure!(
        told.contains("neither the Infrastructure nor a Node of the shoot says that a zone has the ID id-x"),
        "{told}"
    );
    // Only the Infrastructure reports the zone ID of the account.
    world.infrastructure(&[("a", "id-a"), ("b", "id-of-b")]).await?;
    let told = world.asked("id-of-b").await?;
    ensure!(told.contains("would leave zone id-of-b (b)"), "{told}");
    let told = world.asked("id-x").await?;
    ensure!(
        told.contains("would be refused. No zone of the shoot has the ID id-x")
            && told.contains("id-a (a), id-of-b (b)"),
        "{told}"
    );
    nothing_was_done(&world).await?;
    is_refused_until_no_obstacle_is_left(&world).await
}

/// As [`looked_before`] without a dry run, each obstacle with an Event.
async fn is_refused_until_no_obstacle_is_left(world: &World) -> Result<()> {
    world.move_etcd_to("n-a").await?;
    world.annotate(ISOLATED, json!("id-a")).await?;
    world
        .until_reason("ControlPlaneInZone", (Phase::Failover, Status::Failed))
        .await?;
    world.event("ControlPlaneInZone").await?;
    // The next obstacle comes before the former obstacle goes: a failover without an obstacle begins at
    // once. A check reads one object after another, so one obstacle stays from before the other changes
    // until after them.
    world.hosts_as("big").await?;
    world.reconcile().await?;
    world
        .until_reason("IsSeed", (Phase::Failover, Status::Failed))
        .await?;
    world.ready("n-b", false).await?;
    world.move_etcd_to("n-b").await?;
    world.looks_at_another_shoot().await?;
    world.hosts_nothing("big").await?;
    world.reconcile().await?;
    world
        .until_reason("NoNodeElsewhere", (Phase::Failover, Status::Failed))
        .await?;
    // RZ-32: a request to close the network waits for the admission of the failover.
    world.annotate(CLOSE_NOW, json!("true")).await?;
    world.until_message("isolated-zone-close-now=true stays").await?;
    nothing_was_done(world).await?;
    // No refusal blocks the failover any more. The flow fails only because this test lacks the Secrets of a
    // running shoot.
    world.ready("n-b", true).await?;
    world.reconcile().await?;
    world.event("ZoneFailoverBegun").await?;
    world.event("ZoneBudgetSpent").await?;
    world.until_request_is_removed().await?;
    let message = world.until_message("It is tried again after").await?;
    ensure!(message.contains("Initializing secrets management"), "{message}");
    // The work continues, and the zone is closed in its budget.
    world
        .until_reason("FailoverInProgress", (Phase::Failover, Status::InProgress))
        .await?;
    Ok(())
}

/// Checks that the gardenlet has written no object of a failover.
async fn nothing_was_done(world: &World) -> Result<()> {
    let workers: Api<Worker> = Api::namespaced(world.client.clone(), NAMESPACE);
    let closed: Api<SubnetIsolation> = Api::namespaced(world.client.clone(), NAMESPACE);
    let params = ListParams::default();
    ensure!(workers.list(&params).await?.items.is_empty());
    ensure!(closed.list(&params).await?.items.is_empty());
    let shoot = world.shoots.get("web").await?;
    ensure!(!shoot.annotations().contains_key(DRY_RUN), "it was answered");
    Ok(())
}

/// The flow waits for an owner record that no process writes here; a long wait is no error. A change of the
/// annotation ends the flow at once, and repeated changes are delayed.
#[test]
fn a_change_ends_what_is_under_way_and_many_changes_wait() -> Result<()> {
    world::story(changed_again_and_again())
}

async fn changed_again_and_again() -> Result<()> {
    let world = Box::pin(World::start("zones-abort", true)).await?;
    world.shoot(Value::Null).await?;
    let begun = world.change_zone(json!("id-a"), "testing").await?;
    let _gardenlet = world.gardenlet()?;
    let is_under_way = (Phase::Failover, Status::InProgress);
    world.until_reason("FailoverInProgress", is_under_way).await?;
    world.until_flow_waits(begun, is_under_way).await?;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    namespaces.get(NAMESPACE).await?;
    // 1
    let undone = world.change_zone(Value::Null, "evaluation").await?;
    world
        .until_flow_waits(undone, (Phase::Failover, Status::Aborting))
        .await?;
    world.event("ZoneFailoverAborting").await?;
    // 2
    let done_again = world.change_zone(json!("id-a"), "testing").await?;
    world.until_flow_waits(done_again, is_under_way).await?;
    // The third change: no flow begins yet.
    world.annotate(ISOLATED, Value::Null).await?;
    let message = world.until_message("was changed again and again").await?;
    ensure!(message.contains("begins at 2"), "{message}");
    let held = world.shoots.get("web").await?;
    world.annotate(ISOLATED, json!("id-a")).await?;
    world.looks_at_another_shoot().await?;
    let still = world.shoots.get("web").await?;
    let operation = |shoot: &api::gardencore::Shoot| {
        shoot
            .status
            .as_ref()
            .and_then(|status| status.last_operation.clone())
    };
    ensure!(operation(&held) == operation(&still), "{:?}", operation(&still));
    ensure!(still.status.unwrap().last_errors.is_empty(), "a wait is no error");
    Ok(())
}

/// RZ-32: the annotation ends a flow that hangs without any zone. The next flow never reaches the Worker, for
/// example because the API of the shoot does not answer. The gardenlet closes the network of the zone beside
/// the flow when the budget is spent. Here the user ends the budget.
#[test]
fn a_zone_is_closed_in_its_budget_although_the_flow_hangs() -> Result<()> {
    world::story(closed_in_its_budget())
}

async fn closed_in_its_budget() -> Result<()> {
    let world = Box::pin(World::start("zones-budget", true)).await?;
    world.shoot(Value::Null).await?;
    let _gardenlet = world.gardenlet_with(&["--zone-close-within=5m"])?;
    world.until_plain_flow_waits().await?;
    let begun = world.change_zone(json!("id-a"), "testing").await?;
    let is_under_way = (Phase::Failover, Status::InProgress);
    world.until_flow_waits(begun, is_under_way).await?;
    let message = world.until_message("minutes of the budget are left").await?;
    ensure!(
        message.contains("At the latest the network is closed at 2"),
        "{message}"
    );
    let closed: Api<SubnetIsolation> = Api::namespaced(world.client.clone(), NAMESPACE);
    ensure!(closed.list(&ListParams::default()).await?.items.is_empty());

    world.annotate(CLOSE_NOW, json!("true")).await?;
    world.until_message("The budget was spent at 2").await?;
    world.event("ZoneBudgetSpent").await?;
    world.event("ZoneClosedAtDeadline").await?;
    let closed = closed.get("web").await?;
    ensure!(closed.spec.isolated_zone_id == "id-a");
    let shoot = world.shoots.get("web").await?;
    let status = shoot.status.clone().unwrap_or_default();
    let deadline = status.zone_isolation.and_then(|zone| zone.close_deadline_time);
    let deadline = deadline.map(|deadline| deadline.0.to_string());
    let copied = closed
        .annotations()
        .get("extensions.gardener.cloud/isolated-zone-close-deadline");
    ensure!(copied == deadline.as_ref(), "{copied:?} {deadline:?}");
    ensure!(!shoot.annotations().contains_key(CLOSE_NOW), "it counts once");
    Ok(())
}

/// RZ-32: a flow of a different shoot hangs and holds the only slot. The failover begins and the zone is
/// closed in the budget, and a deadline that was written by hand does not extend the budget.
#[test]
fn a_failover_needs_no_slot_of_the_flows() -> Result<()> {
    world::story(closed_without_a_slot())
}

async fn closed_without_a_slot() -> Result<()> {
    let world = Box::pin(World::start("zones-slots", true)).await?;
    let _gardenlet = world.gardenlet_with(&["--zone-close-within=5m", "--concurrent-syncs=1"])?;
    world.looks_at_another_shoot().await?;
    world
        .shoot(json!({"seedName": "seed-a", "lastOperation": world::succeeded()}))
        .await?;
    world.shoot_api().await?;
    world.worker().await?;
    world.node("n-a", "id-a", "a", true).await?;
    world.node("n-b", "id-b", "b", false).await?;
    world.annotate(ISOLATED, json!("id-a")).await?;
    world
        .until_reason("NoNodeElsewhere", (Phase::Failover, Status::Failed))
        .await?;
    // The reason passes, and no flow checks again.
    world.ready("n-b", true).await?;
    world.annotate("example.test/wakes", json!("1")).await?;
    world
        .until_reason("FailoverInProgress", (Phase::Failover, Status::InProgress))
        .await?;
    // The budget is shorter than the time that machines have to leave, so the request comes at once.
    let workers: Api<Worker> = Api::namespaced(world.client.clone(), NAMESPACE);
    eventually("the Worker leaves the zone", ground::SOON, || async {
        let worker = workers.get("web").await.map_err(|error| error.to_string())?;
        let left = worker.spec.isolated_zone_id;
        left.filter(|zone| zone == "id-a")
            .ok_or("the Worker keeps the zone".to_owned())
    })
    .await?;
    let hostile = json!({"zoneIsolation": {"closeDeadlineTime": "2099-01-01T00:00:00Z"}});
    world.status(hostile).await?;
    let latest = clock::now() + SignedDuration::from_mins(6);
    world.until_deadline(latest).await?;
    world.annotate(CLOSE_NOW, json!("true")).await?;
    world.event("ZoneClosedAtDeadline").await?;
    world.until_message("the network is being closed").await?;
    let closed: Api<SubnetIsolation> = Api::namespaced(world.client.clone(), NAMESPACE);
    ensure!(closed.get("web").await?.spec.isolated_zone_id == "id-a");
    world.network_is_closed().await?;
    world.annotate("example.test/wakes", json!("2")).await?;
    world
        .until_message("SubnetIsolation: the network is closed")
        .await?;
    world.event("ZoneNetworkClosed").await?;
    // No flow of this shoot has begun.
    let shoot = world.shoots.get("web").await?;
    let last = shoot.status.and_then(|status| status.last_operation);
    ensure!(last.is_some_and(|last| last.progress == 100));
    Ok(())
}
