//! Closed zones: manual changes, and foreign objects.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::{
    constants::{OPERATION, operation::RECONCILE},
    extensions::SubnetIsolation,
    machine::{Machine, labels},
    meta::ErrorCode,
};
use cloud_local::{Cloud, Isolation, isolation, zones};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::DeleteParams};
use local_cloud_fixture::run_hosts;
use runtime::Error;
use serde_json::json;

use super::{
    World, delete, run, run_created,
    world::{self, ACCOUNT, MANAGER_OF_TEST, create, gone, object},
};

/// Longer than the requests of an attempt take, shorter than the time that a machine takes to go.
const ATTEMPT_WITHIN: Duration = Duration::from_secs(15);

fn zone(namespace: &str, id: &str) -> Result<SubnetIsolation> {
    object("zone", namespace, json!({"isolatedZoneID": id}))
}

/// The closing is removed by hand: the next reconcile closes the zone again, without a wait. Finally the zone
/// is opened.
pub async fn a_zone_opened_by_hand_is_closed_again(world: &World) -> Result<()> {
    let namespace = "shoot--dev--by-hand";
    world::namespace(&world.seed, namespace, &world.cloud).await?;
    world::pool_in(&world.seed, namespace, &["x", "y"]).await?;
    let _hosts = run_hosts(&world.seed, ACCOUNT, MANAGER_OF_TEST, ["host-1"]).await?;
    let by = world::subnet_isolation(&world.seed);
    let object = zone(namespace, &zones::id_of("x"))?;
    run_created(&by, &object).await?;
    let api = by.api_of(&object);
    let told = api.get("zone").await?.status.unwrap_or_default();
    let told = told.provider_status.unwrap_or_default().0;
    ensure!(
        told["isolatedZoneCode"] == "x" && told["closedSince"].is_string(),
        "{told}"
    );
    let objects: Api<ConfigMap> = Api::namespaced(world.seed.clone(), ACCOUNT);
    gone(&objects, &isolation::name_of(namespace)).await?;
    MANAGER_OF_TEST
        .annotate(&api, "zone", OPERATION, Some(RECONCILE))
        .await?;
    run(&by, &object).await?;
    let closed = build_isolation(world, namespace).find().await?;
    ensure!(
        closed.as_ref().is_some_and(|it| it.zone == "x" && it.confirmed),
        "{closed:?}"
    );
    delete(&by, &object).await?;
    ensure!(
        build_isolation(world, namespace).find().await?.is_none(),
        "it is still closed"
    );
    Ok(())
}

/// A zone that a foreign program has closed does not allow a second closed zone, and stays closed when the
/// object is deleted.
pub async fn a_zone_closed_by_others_is_left_alone(world: &World) -> Result<()> {
    let namespace = "shoot--dev--others";
    world::namespace(&world.seed, namespace, &world.cloud).await?;
    world::pool_in(&world.seed, namespace, &["x", "y"]).await?;
    let _hosts = run_hosts(&world.seed, ACCOUNT, MANAGER_OF_TEST, ["host-1"]).await?;
    build_isolation(world, namespace).close("y").await?;
    let by = world::subnet_isolation(&world.seed);
    let object = zone(namespace, &zones::id_of("x"))?;
    create(&by.api_of(&object), &object).await?;
    let error = run(&by, &object).await.unwrap_err();
    ensure!(error.codes() == [ErrorCode::ErrInfraDependencies], "{error:?}");
    ensure!(error.to_string().contains("zone y is closed"), "{error}");
    delete(&by, &object).await?;
    let closed = build_isolation(world, namespace).find().await?;
    ensure!(
        closed.as_ref().is_some_and(|it| it.zone == "y" && it.confirmed),
        "{closed:?}"
    );
    Ok(())
}

/// A sick zone has many shoots, and the controller has few workers: an attempt ends while a machine is
/// awaited.
pub async fn an_awaited_machine_occupies_no_worker(world: &World) -> Result<()> {
    let namespace = "shoot--dev--awaited";
    world::namespace(&world.seed, namespace, &world.cloud).await?;
    world::pool_in(&world.seed, namespace, &["x", "y"]).await?;
    let machine: Machine = serde_json::from_value(json!({
        "metadata": {"name": "m", "namespace": namespace, "labels": {labels::ZONE: "x"}},
        "spec": {"class": {"kind": "MachineClass", "name": "c"}}}))?;
    create(&Api::namespaced(world.seed.clone(), namespace), &machine).await?;
    let _hosts = run_hosts(&world.seed, ACCOUNT, MANAGER_OF_TEST, ["host-1"]).await?;
    let by = world::subnet_isolation(&world.seed);
    let object = zone(namespace, &zones::id_of("x"))?;
    create(&by.api_of(&object), &object).await?;
    let attempt = testkit::timeout(ATTEMPT_WITHIN, Box::pin(by.run(&object))).await?;
    ensure!(
        matches!(&attempt, Err(Error::NotReady { why, .. }) if why.contains("machine m")),
        "{attempt:?}"
    );
    ensure!(
        build_isolation(world, namespace).find().await?.is_none(),
        "it is closed already"
    );
    let machines: Api<Machine> = Api::namespaced(world.seed.clone(), namespace);
    machines.delete("m", &DeleteParams::default()).await?;
    run(&by, &object).await?;
    delete(&by, &object).await?;
    Ok(())
}

/// An invalid ID, and the ID of a zone that the shoot does not use. No write reaches the cloud, and a
/// deletion needs no request.
pub async fn a_zone_that_is_none_is_refused(world: &World) -> Result<()> {
    let namespace = "shoot--dev--no-zone";
    world::namespace(&world.seed, namespace, &world.cloud).await?;
    world::pool_in(&world.seed, namespace, &["x", "y"]).await?;
    let by = world::subnet_isolation(&world.seed);
    for (id, says) in [
        ("x", zones::id_of("a")),
        (zones::id_of("z").as_str(), "its pools have the zones x, y".into()),
    ] {
        let object = zone(namespace, id)?;
        create(&by.api_of(&object), &object).await?;
        let error = run(&by, &object).await.unwrap_err();
        ensure!(error.codes() == [ErrorCode::ErrConfigurationProblem], "{error:?}");
        ensure!(error.to_string().contains(&says), "{id}: {error}");
        delete(&by, &object).await?;
    }
    let objects: Api<ConfigMap> = Api::namespaced(world.seed.clone(), ACCOUNT);
    let there = objects.get_opt(&isolation::name_of(namespace)).await?;
    ensure!(there.is_none(), "{there:?}");
    Ok(())
}

fn build_isolation(world: &World, namespace: &str) -> Isolation {
    let cloud = Cloud::inside(world.seed.clone(), ACCOUNT, MANAGER_OF_TEST);
    Isolation::new(cloud, namespace)
}
