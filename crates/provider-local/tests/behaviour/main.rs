//! Obstacles of actuators, and forbidden actions; with real components.
#![allow(clippy::unwrap_used, clippy::panic, clippy::large_futures)]

mod addresses;
mod backups;
mod control_plane;
mod dns;
mod infrastructure;
mod late;
mod lost_right;
mod mutations;
mod owner;
mod ownership;
mod roles;
mod tap;
#[path = "../world/mod.rs"]
mod world;
mod zones;

use std::future::Future;

use anyhow::{Context, Result, ensure};
use api::extensions::ExtensionObject;
use extension::{Actuator, ExtensionReconciler};
use kube::{Api, Client, ResourceExt, api::DeleteParams};
use runtime::Next;
use serde_json::json;
use testkit::{ControlPlane, NameServer, ObjectStore};
use world::{ZONE, create, text};

struct World {
    seed: Client,
    control_plane: ControlPlane,
    cloud: std::collections::BTreeMap<String, Vec<u8>>,
    dns: NameServer,
    store: ObjectStore,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn actuators_behave_when_something_is_in_the_way() -> Result<()> {
    let control_plane = ControlPlane::start("seed").await?;
    let world = &World {
        seed: world::seed(&control_plane).await?,
        cloud: world::account(&control_plane, "cloud-user").await?,
        dns: NameServer::start(&[ZONE]).await?,
        store: ObjectStore::start().await?,
        control_plane,
    };
    let outcomes = [
        Box::pin(networks(world)).await,
        Box::pin(control_plane::all(world)).await,
        run_scenario(
            "refused cloud credentials",
            infrastructure::refused_cloud_credentials(world),
        )
        .await,
        run_scenario(
            "configuration survives",
            infrastructure::unknown_configuration_survives(world),
        )
        .await,
        run_scenario(
            "a failed shoot is left alone",
            infrastructure::a_failed_shoot_is_left_alone(world),
        )
        .await,
        Box::pin(closed_zones(world)).await,
        run_scenario("rights", rights(world)).await,
        Box::pin(names(world)).await,
        run_scenario(
            "backup entry waits",
            backups::a_backup_entry_waits_for_its_namespace(world),
        )
        .await,
        run_scenario("entry's place", backups::an_entry_takes_its_place(world)).await,
        run_scenario(
            "source's claim",
            backups::a_source_that_cannot_help_is_claimed(world),
        )
        .await,
        run_scenario(
            "backup objects",
            backups::only_the_own_entry_removes_objects(world),
        )
        .await,
        run_scenario(
            "a later epoch's place",
            backups::a_place_of_a_later_epoch_keeps_its_backups(world),
        )
        .await,
        run_scenario(
            "forced backup entry",
            backups::a_forced_entry_leaves_its_backups(world),
        )
        .await,
        run_scenario(
            "refused store credentials",
            backups::refused_store_credentials(world),
        )
        .await,
    ];
    let failures: Vec<String> = outcomes
        .into_iter()
        .filter_map(|outcome| outcome.err().map(text))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

/// The networks of Infrastructures.
async fn networks(world: &World) -> Result<()> {
    run_scenario(
        "networks never overlap",
        infrastructure::networks_never_overlap(world),
    )
    .await?;
    run_scenario(
        "a lost network is never replaced",
        infrastructure::a_lost_network_is_never_replaced(world),
    )
    .await?;
    run_scenario(
        "a list of instances is begun once",
        infrastructure::a_list_of_instances_is_begun_once(world),
    )
    .await
}

/// Zones with a closed network.
async fn closed_zones(world: &World) -> Result<()> {
    run_scenario(
        "a zone opened by hand",
        zones::a_zone_opened_by_hand_is_closed_again(world),
    )
    .await?;
    run_scenario(
        "a zone closed by others",
        zones::a_zone_closed_by_others_is_left_alone(world),
    )
    .await?;
    run_scenario(
        "a zone that is none",
        zones::a_zone_that_is_none_is_refused(world),
    )
    .await?;
    run_scenario(
        "an awaited machine",
        zones::an_awaited_machine_occupies_no_worker(world),
    )
    .await
}

/// Names in DNS.
async fn names(world: &World) -> Result<()> {
    run_scenario(
        "late deletion of a record",
        dns::a_late_deletion_leaves_the_record_of_another_seed(world),
    )
    .await?;
    run_scenario(
        "alias and addresses",
        dns::an_alias_and_addresses_replace_each_other(world),
    )
    .await?;
    run_scenario("refused DNS key", dns::a_refused_dns_key_is_told(world)).await?;
    owner::all(world).await?;
    mutations::an_update_without_a_test_is_noticed(world).await;
    addresses::all(world).await
}

/// The permits to act, and the end of permits.
async fn rights(world: &World) -> Result<()> {
    roles::only_the_acting_seed_acts(world).await?;
    mutations::an_actuator_without_a_right_is_noticed(world).await;
    ownership::all(world).await?;
    lost_right::nothing_reaches_an_object_store(world).await?;
    lost_right::nothing_reaches_a_name_server(world).await?;
    lost_right::nothing_reaches_a_cloud(world).await?;
    late::a_finalizer_that_goes_late_undoes_no_success(world).await
}

async fn run_scenario(what: &'static str, work: impl Future<Output = Result<()>>) -> Result<()> {
    Box::pin(work).await.context(what)
}

async fn run<K, A>(reconciler: &ExtensionReconciler<K, A>, object: &K) -> runtime::Result<Next>
where
    K: ExtensionObject,
    A: Actuator<K>,
{
    // Boxed: the futures of operations are large, and a test has many.
    Box::pin(reconciler.run(object)).await
}

async fn run_created<K, A>(reconciler: &ExtensionReconciler<K, A>, object: &K) -> Result<()>
where
    K: ExtensionObject,
    A: Actuator<K>,
{
    create(&reconciler.api_of(object), object).await?;
    run(reconciler, object).await?;
    Ok(())
}

async fn delete<K, A>(reconciler: &ExtensionReconciler<K, A>, object: &K) -> Result<()>
where
    K: ExtensionObject,
    A: Actuator<K>,
{
    let api = reconciler.api_of(object);
    api.delete(&object.name_any(), &DeleteParams::default()).await?;
    run(reconciler, object).await?;
    ensure!(
        api.get_opt(&object.name_any()).await?.is_none(),
        "{} is still there",
        object.name_any()
    );
    Ok(())
}

/// Checks the code of the last error, and returns the sentence.
async fn codes<K: ExtensionObject>(api: &Api<K>, name: &str, code: &str) -> Result<String> {
    let object = api.get(name).await?;
    let error = object
        .default_status()
        .and_then(|s| s.last_error.clone())
        .context("no lastError")?;
    ensure!(json!(error.codes) == json!([code]), "{error:?} is not {code}");
    Ok(error.description)
}
