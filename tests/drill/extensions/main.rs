//! A seed gets the extensions that the seed's shoots need, and loses unused extensions. The test runs
//! garden-controller-manager, gardenlet and resource-manager with the rights of their charts, and helm. A
//! single real API server has the role of garden and seed.

#![allow(clippy::unwrap_used, clippy::panic)]

mod chart;
mod lacking;
mod world;

use anyhow::{Context as _, Result, ensure};
use api::{
    constants::GARDEN_NAMESPACE,
    extensions::Network,
    gardencore::{ControllerInstallation, ControllerRegistration, Shoot},
    meta::find_condition,
};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace, Secret},
    rbac::v1::ClusterRole,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;
use testkit::eventually;
use world::{NAMESPACE, SOON, World, refused};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seed_has_the_extensions_that_its_shoots_need() -> Result<()> {
    let world = World::start().await?;
    world
        .register("mesh", "OnDemand", "Network", Some(&chart::good()?))
        .await?;
    world
        .register("by-hand", "OnDemand", "Infrastructure", None)
        .await?;
    world.shoot("web", "seed-a").await?;

    let here = world.installed("mesh", "seed-a").await?;
    is_installed(&world).await?;
    lost_manifests_are_written_again(&world).await?;
    world.installed("by-hand", "seed-a").await?;
    other_seeds_keep_off(&world, &here).await?;

    // A move that is only requested: both seeds have the extension.
    let status = json!({"status": {"seedName": "seed-a"}});
    let shoots: Api<Shoot> = Api::namespaced(world.admin(), "garden-dev");
    shoots
        .patch_status("web", &PatchParams::default(), &Patch::Merge(status))
        .await?;
    change(&shoots, "web", json!({"spec": {"seedName": "seed-b"}})).await?;
    world
        .until::<ControllerInstallation>("an installation for seed-b", |all| {
            all.iter().any(|found| world::is_of(found, "mesh", "seed-b"))
        })
        .await?;
    change(&shoots, "web", json!({"spec": {"seedName": "seed-a"}})).await?;
    // No gardenlet runs for that seed, so no gardenlet releases the installation.
    let there = world.all::<ControllerInstallation>().await?;
    for one in there.iter().filter(|found| world::seed_of(found) == "seed-b") {
        world.delete::<ControllerInstallation>(&one.name_any()).await?;
    }

    // An extension in use stays without the shoot, and is removed after the use has ended.
    world.network().await?;
    world
        .tells(&here, "Required", "True", &format!("{NAMESPACE}/web"))
        .await?;
    shoots.delete("web", &DeleteParams::default()).await?;
    world
        .until::<ControllerInstallation>("no installation of by-hand", |all| {
            !all.iter().any(|found| world::is_of(found, "by-hand", "seed-a"))
        })
        .await?;
    let stays = world
        .get::<ControllerInstallation>(&here)
        .await?
        .context("mesh")?;
    ensure!(stays.metadata.deletion_timestamp.is_none(), "{stays:?}");
    a_registration_in_use_stays(&world, &here).await?;
    let networks: Api<Network> = Api::namespaced(world.admin(), NAMESPACE);
    networks.delete("web", &DeleteParams::default()).await?;
    world.gone::<ControllerInstallation>(&here).await?;
    world.gone::<Namespace>("extension-mesh").await?;
    world.gone::<ClusterRole>("mesh").await?;
    world.gone::<ControllerRegistration>("mesh").await?;
    charts_that_cannot_be_rendered(&world).await?;
    lacking::no_move_begins(&world).await
}

async fn is_installed(world: &World) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(world.admin(), "extension-mesh");
    let map = maps.get("mesh").await?;
    let data = map.data.context("data")?;
    ensure!(data["seed"] == "seed-a" && data["garden"] == "garden", "{data:?}");
    ensure!(data["color"] == "green", "values of the deployment: {data:?}");
    let namespace = world
        .get::<Namespace>("extension-mesh")
        .await?
        .context("a namespace")?;
    ensure!(namespace.labels()["controllerregistration.core.gardener.cloud/name"] == "mesh");
    ensure!(
        maps.get_opt("hook").await?.is_none(),
        "only an installation by helm runs hooks"
    );
    world
        .get::<ClusterRole>("mesh")
        .await?
        .context("rights that the resource-manager has not itself")
        .map(drop)
}

/// The chart and the values stay the same. Without the Secret, the resource-manager cannot apply the objects.
async fn lost_manifests_are_written_again(world: &World) -> Result<()> {
    let secrets: Api<Secret> = Api::namespaced(world.admin(), GARDEN_NAMESPACE);
    let name = "managedresource-extension-mesh";
    let lost = secrets.get(name).await?.uid();
    secrets.delete(name, &DeleteParams::default()).await?;
    eventually("the Secret of the extension is written again", SOON, || async {
        let found = secrets.get_opt(name).await?;
        ensure!(found.is_some_and(|found| found.uid() != lost), "it is lost");
        anyhow::Ok(())
    })
    .await?;
    world.installed("mesh", "seed-a").await.map(drop)
}

/// Each gardenlet with separate credentials, and the policy of the garden's chart.
async fn other_seeds_keep_off(world: &World, name: &str) -> Result<()> {
    let mine: Api<ControllerInstallation> = Api::all(world.gardenlet("seed-a").await?);
    let other: Api<ControllerInstallation> = Api::all(world.gardenlet("seed-b").await?);
    let params = PatchParams::default();
    let status = Patch::Merge(json!({"status": {"conditions": []}}));
    // A policy is in force only some time after the creation.
    let probe = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    eventually("the policy is in force", SOON, || async {
        match other.patch_status(name, &probe, &status).await {
            Err(_) => Ok(()),
            Ok(_) => Err("it was allowed"),
        }
    })
    .await?;
    let finalizers = Patch::Merge(json!({"metadata": {"finalizers": []}}));
    let deployment = Patch::Merge(json!({"spec": {"deploymentRef": {"name": "mine"}}}));
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    refused(
        other.patch_status(name, &params, &status).await,
        "of seed \"seed-a\"",
    );
    refused(
        other.patch(name, &params, &finalizers).await,
        "of seed \"seed-a\"",
    );
    refused(mine.patch(name, &params, &deployment).await, "and nothing else");
    refused(mine.patch(name, &params, &label).await, "and nothing else");
    refused(mine.delete(name, &DeleteParams::default()).await, "cannot delete");
    Ok(())
}

async fn a_registration_in_use_stays(world: &World, installation: &str) -> Result<()> {
    world.delete::<ControllerRegistration>("mesh").await?;
    // The same for a manual deletion of an installation: the served object still exists.
    world.delete::<ControllerInstallation>(installation).await?;
    world
        .wait_for_event(installation, "ControllerInstallationRequired")
        .await?;
    let registration = world
        .get::<ControllerRegistration>("mesh")
        .await?
        .context("it stays")?;
    ensure!(registration.metadata.deletion_timestamp.is_some());
    world
        .get::<ClusterRole>("mesh")
        .await?
        .context("nothing was taken away")
        .map(drop)
}

/// Each fault is reported, no fault stops the remaining installations, and a valid chart afterwards is
/// installed.
async fn charts_that_cannot_be_rendered(world: &World) -> Result<()> {
    world
        .register("bad", "Always", "Bastion", Some(b"no archive"))
        .await?;
    let name = world.made("bad", "seed-a").await?;
    world
        .tells(&name, "Valid", "False", "no archive that gzip")
        .await?;
    for (archive, words) in [
        (chart::empty_archive(), "helm cannot render the chart"),
        (
            chart::with("{{ fail \"the words of the chart\" }}")?,
            "the words of the chart",
        ),
        (
            chart::with("{{- define \"l\" }}{{ include \"l\" . }}{{ end }}{{ include \"l\" . }}")?,
            "helm cannot render the chart",
        ),
        (chart::with("{{ range until 2000000000 }}{{ end }}")?, "of memory"),
        (
            chart::with("{{ .Files.Get \"/etc/passwd\" }}{{ .Files.Get \"../../etc/passwd\" }}")?,
            "renders nothing",
        ),
        (chart::with_dependency("file:///etc")?, "missing in charts"),
        (chart::with("just words")?, "YAML parse error"),
    ] {
        world.deployment("bad", &archive).await?;
        world.tells(&name, "Valid", "False", words).await?;
    }
    world.deployment("bad", &chart::with(chart::CONFIG_MAP)?).await?;
    world.tells(&name, "Installed", "True", "applied").await?;
    let installation = world.get::<ControllerInstallation>(&name).await?.context("bad")?;
    let conditions = installation.status.context("status")?.conditions;
    ensure!(find_condition(&conditions, "Healthy").is_some());
    Ok(())
}

async fn change<K>(api: &Api<K>, name: &str, body: serde_json::Value) -> Result<()>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    api.patch(name, &PatchParams::default(), &Patch::Merge(body))
        .await?;
    Ok(())
}
