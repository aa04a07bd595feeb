//! Objects of a shoot are changed only by the owning seed (R17-60..62). A real name server answers for the
//! owner record; the process beside etcd is silent.

use std::time::Duration;

use anyhow::{Result, ensure};
use api::{constants::LEFT_IN_EPOCH, meta::ConditionStatus};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace},
    events::v1::Event,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::json;
use testkit::{OwnerRecord, eventually};

use crate::world::{SOON, ShootNamespace, World, change, map, uid};

/// Another seed takes the shoot over: from then on neither drifted nor deleted objects are touched, until
/// this seed owns the shoot again.
pub async fn a_shoot_that_is_lost(world: &World) -> Result<()> {
    let place = world.shoot("shoot--dev--lost").await?;
    let record = OwnerRecord::start().await?;
    testkit::apply(&world.seed, record.cluster(place.name, "seed-a", 1)).await?;
    record.says("seed-a", 1).await?;
    let inside = [map(place.name, "map", "1", &[])];
    place.resource("core", json!({}), &inside).await?;
    place.applied("core", None).await?;
    let maps: Api<ConfigMap> = place.in_shoot();

    record.says("seed-b", 2).await?;
    change(&maps, "map", json!({"data": {"k": "drift"}})).await?;
    tells_of_its_loss(&place).await?;
    let as_it_was = place.resources().get("core").await?;
    place
        .manifests("core", &[map(place.name, "map", "2", &[])])
        .await?;
    place.delete("core").await?;
    still_waits(&place).await?;
    ensure!(read_value(&maps).await? == "drift", "it was written");
    let now = place.resources().get("core").await?;
    ensure!(now.status == as_it_was.status, "it says {:?}", now.status);

    // A gardenlet that moves a shoot sets `keepObjects`.
    let before = uid(&maps, "map").await?;
    change(&place.resources(), "core", json!({"spec": {"keepObjects": true}})).await?;
    place.gone("core").await?;
    ensure!(uid(&maps, "map").await? == before, "it was deleted");

    // In a later epoch the shoot belongs to this seed again.
    record.says("seed-a", 3).await?;
    testkit::apply(&world.seed, record.cluster(place.name, "seed-a", 3)).await?;
    place.resource("core", json!({}), &inside).await?;
    place.applied("core", None).await?;
    ensure!(read_value(&maps).await? == "1", "it was not written");
    Ok(())
}

/// No work begins before a witness confirms the seed (R17-48), and a deletion ends with the namespace.
pub async fn a_shoot_of_which_nobody_says_whose_it_is(world: &World) -> Result<()> {
    let place = world.shoot("shoot--dev--nobodys").await?;
    let mut record = OwnerRecord::start().await?;
    testkit::apply(&world.seed, record.cluster(place.name, "seed-a", 1)).await?;
    let inside = [map(place.name, "map", "1", &[])];
    place.resource("core", json!({}), &inside).await?;
    let told = "it is not confirmed that this seed has the shoot, in ownership epoch 1";
    let waits = place.tells("core", "ResourcesApplied", ConditionStatus::Unknown, told);
    let waits = waits.await?;
    let observed = waits.status.and_then(|status| status.observed_generation);
    ensure!(observed.is_none(), "it was not acted on, and says {observed:?}");
    let maps: Api<ConfigMap> = place.in_shoot();
    ensure!(maps.get_opt("map").await?.is_none(), "it was made");
    record.says("seed-a", 1).await?;
    place.applied("core", None).await?;

    record.falls_silent();
    place.delete("core").await?;
    let told = "no authority answers";
    place
        .tells("core", "ResourcesApplied", ConditionStatus::Progressing, told)
        .await?;
    ensure!(read_value(&maps).await? == "1", "it was deleted");
    Api::<Namespace>::all(world.seed.clone())
        .delete(place.name, &DeleteParams::default())
        .await?;
    place.gone("core").await?;
    ensure!(read_value(&maps).await? == "1", "it was deleted");
    Ok(())
}

/// The source of a move: an extension deletes a ManagedResource late, after the departure of the shoot. The
/// ManagedResource ends, and its objects stay in the shoot, whether or not the seed checks owners. A
/// deletion that has waited ends too.
pub async fn a_shoot_that_has_left(world: &World) -> Result<()> {
    for (name, with_checks) in [("shoot--dev--left", true), ("shoot--dev--left-without", false)] {
        let place = world.shoot(name).await?;
        let record = OwnerRecord::start().await?;
        if with_checks {
            testkit::apply(&world.seed, record.cluster(place.name, "seed-a", 1)).await?;
            record.says("seed-a", 1).await?;
        }
        for resource in ["waits", "late"] {
            let inside = [map(place.name, resource, "1", &[])];
            place.resource(resource, json!({}), &inside).await?;
            place.applied(resource, None).await?;
        }
        let maps: Api<ConfigMap> = place.in_shoot();
        let before = uid(&maps, "late").await?;
        if with_checks {
            record.says("seed-b", 2).await?;
            place.delete("waits").await?;
            eventually("the loss is told", SOON, || async {
                ensure!(!losses(&place).await?.is_empty(), "there is no Event");
                Ok(())
            })
            .await?;
        }
        mark_as_left(&place).await?;
        if with_checks {
            tell_of_departure(&place, &record, 1).await?;
        }
        place.delete("late").await?;
        place.gone("late").await?;
        ensure!(uid(&maps, "late").await? == before, "the object was deleted");
        if with_checks {
            place.gone("waits").await?;
            maps.get("waits").await?;
        }
    }
    Ok(())
}

/// The shoot is back in a namespace with the mark of an earlier residency: objects that were held back are
/// applied, and a deletion deletes the objects.
pub async fn a_shoot_that_is_back(world: &World) -> Result<()> {
    let place = world.shoot("shoot--dev--back").await?;
    let record = OwnerRecord::start().await?;
    tell_of_departure(&place, &record, 3).await?;
    record.says("seed-a", 3).await?;
    mark_as_left(&place).await?;
    let inside = [map(place.name, "map", "1", &[])];
    place.resource("core", json!({}), &inside).await?;
    eventually("the resource-manager has taken it up", SOON, || async {
        let resource = place.resources().get("core").await?;
        ensure!(!resource.finalizers().is_empty(), "there is no finalizer");
        Ok(())
    })
    .await?;
    let maps: Api<ConfigMap> = place.in_shoot();
    ensure!(maps.get_opt("map").await?.is_none(), "it was made");
    testkit::apply(&world.seed, record.cluster(place.name, "seed-a", 3)).await?;
    place.applied("core", None).await?;
    maps.get("map").await?;
    place.delete("core").await?;
    place.gone("core").await?;
    ensure!(maps.get_opt("map").await?.is_none(), "the object was left behind");
    Ok(())
}

/// Writes the Cluster of a shoot that has left for another seed.
async fn tell_of_departure(place: &ShootNamespace<'_>, record: &OwnerRecord, epoch: i64) -> Result<()> {
    let mut cluster = record.cluster(place.name, "seed-a", epoch);
    cluster["spec"]["shoot"]["status"]["seedName"] = json!("seed-b");
    testkit::apply(&place.world.seed, cluster).await.map(drop)
}

/// Marks the namespace, as a gardenlet does after the hand-over.
async fn mark_as_left(place: &ShootNamespace<'_>) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(place.world.seed.clone());
    let mark = json!({"metadata": {"annotations": {(LEFT_IN_EPOCH): "1"}}});
    change(&namespaces, place.name, mark).await.map(drop)
}

async fn read_value(maps: &Api<ConfigMap>) -> Result<String> {
    let data = maps.get("map").await?.data.unwrap_or_default();
    Ok(data.get("k").cloned().unwrap_or_default())
}

/// The Event comes exactly once, also after further changes.
async fn tells_of_its_loss(place: &ShootNamespace<'_>) -> Result<()> {
    eventually("the loss is told", SOON, || async {
        match losses(place).await?.as_slice() {
            [Some(note)] if note.contains("epoch 2 has begun") => Ok(()),
            other => anyhow::bail!("{other:?}"),
        }
    })
    .await
}

/// The notes of the Events about a loss.
async fn losses(place: &ShootNamespace<'_>) -> Result<Vec<Option<String>>> {
    let events: Api<Event> = place.in_seed();
    let all = events.list(&ListParams::default()).await?.items;
    let lost = all
        .into_iter()
        .filter(|event| event.reason.as_deref() == Some("OwnershipLost"));
    Ok(lost.map(|event| event.note).collect())
}

/// The object was deleted, and still exists.
async fn still_waits(place: &ShootNamespace<'_>) -> Result<()> {
    // The absence of an effect can only be waited for: much longer than the same deletion takes without an
    // owner check.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let found = place.resources().get("core").await?;
    ensure!(found.metadata.deletion_timestamp.is_some(), "nobody deletes it");
    ensure!(!found.finalizers().is_empty(), "it was let go");
    Ok(())
}
