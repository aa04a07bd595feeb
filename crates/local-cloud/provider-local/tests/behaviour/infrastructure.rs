//! Infrastructure: networks of nodes.

use anyhow::{Context, Result, ensure};
use api::{
    extensions::{Cluster, Infrastructure},
    meta::ErrorCode,
};
use cloud_local::instances;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt, api::DeleteParams};
use serde_json::{Value, json};

use super::{
    World, codes, delete, run, run_created,
    world::{self, ACCOUNT, MANAGER_OF_TEST, THIS_SEED, create, object},
};

/// Twenty shoots request a network at the same moment.
pub async fn networks_never_overlap(world: &World) -> Result<()> {
    let reconciler = &world::infrastructure(&world.seed);
    try_join_all((0..20).map(|n| async move {
        let namespace = format!("shoot--many--s{n}");
        world::namespace(&world.seed, &namespace, &world.cloud).await?;
        let infra: Infrastructure = object(
            "infra",
            &namespace,
            json!({"providerConfig": {"pool": "10.210.0.0/16"}}),
        )?;
        run_created(reconciler, &infra).await
    }))
    .await?;
    let Value::Object(networks) = world::networks(&world.seed).await? else {
        panic!("no networks")
    };
    let ranges: std::collections::BTreeSet<_> = networks
        .iter()
        .filter(|(name, _)| name.starts_with("shoot--many--"))
        .map(|(_, n)| n["nodesCIDR"].to_string())
        .collect();
    ensure!(ranges.len() == 20, "20 networks have the ranges {ranges:?}");
    Ok(())
}

pub async fn a_lost_network_is_never_replaced(world: &World) -> Result<()> {
    let namespace = "shoot--dev--lost";
    world::namespace(&world.seed, namespace, &world.cloud).await?;
    let reconciler = world::infrastructure(&world.seed);
    let api: Api<Infrastructure> = Api::namespaced(world.seed.clone(), namespace);
    let mut infra: Infrastructure = object("infra", namespace, json!({}))?;
    infra
        .annotations_mut()
        .insert("gardener.cloud/operation".into(), "restore".into());
    create(&api, &infra).await?;
    // First no state, then a state whose network does not exist.
    let error = run(&reconciler, &infra).await.unwrap_err();
    ensure!(
        error.codes() == [ErrorCode::ErrInfraDependencies],
        "without state: {error}"
    );
    let state = json!({"state": {"networkID": "net-gone", "nodesCIDR": "10.180.0.0/24"}});
    MANAGER_OF_TEST.merge_status(&api, "infra", &state).await?;
    let error = run(&reconciler, &infra).await.unwrap_err().to_string();
    ensure!(
        error.contains("net-gone") && error.contains("put ConfigMap shoot--dev--lost back"),
        "{error}"
    );
    let clouds: Api<ConfigMap> = Api::namespaced(world.seed.clone(), ACCOUNT);
    ensure!(clouds.get_opt(namespace).await?.is_none(), "a network was made");
    let found = api.get("infra").await?;
    ensure!(
        found.annotations().get("gardener.cloud/operation").is_some(),
        "the request was lost"
    );
    // After the cause is removed, the operation continues without further action.
    let back: ConfigMap = world::named(
        json!({"metadata": {"name": namespace}, "data": {"id": "net-gone", "nodesCIDR": "10.180.0.0/24"}}),
    )?;
    create(&clouds, &back).await?;
    run(&reconciler, &infra).await?;
    let status = api.get("infra").await?.status.context("no status")?;
    ensure!(
        status.nodes_cidr.as_deref() == Some("10.180.0.0/24") && status.default.last_error.is_none(),
        "{status:?}"
    );
    Ok(())
}

/// For the cloud-controller-manager, an instance that is missing in the list is gone (I4).
pub async fn a_list_of_instances_is_begun_once(world: &World) -> Result<()> {
    let namespace = "shoot--dev--list";
    world::namespace(&world.seed, namespace, &world.cloud).await?;
    let clouds: Api<ConfigMap> = Api::namespaced(world.seed.clone(), ACCOUNT);
    let name = instances(namespace);
    let entries = || async {
        let list = clouds.get_opt(&name).await?;
        anyhow::Ok(list.map(|list| list.data.unwrap_or_default().into_keys().collect::<Vec<_>>()))
    };
    let reconciler = world::infrastructure(&world.seed);
    let api: Api<Infrastructure> = Api::namespaced(world.seed.clone(), namespace);
    let infra: Infrastructure = object("infra", namespace, json!({}))?;
    let again = |operation: &'static str| {
        let (api, reconciler, infra) = (&api, &reconciler, &infra);
        async move {
            MANAGER_OF_TEST
                .annotate(api, "infra", "gardener.cloud/operation", Some(operation))
                .await?;
            run(reconciler, infra).await
        }
    };
    run_created(&reconciler, &infra).await?;
    ensure!(entries().await? == Some(vec![]), "there is no empty list");

    let one = json!({"data": {"node-1": "{}"}});
    MANAGER_OF_TEST.merge(&clouds, &name, &one).await?;
    again("reconcile").await?;
    ensure!(
        entries().await? == Some(vec!["node-1".into()]),
        "the list was overwritten"
    );

    clouds.delete(&name, &DeleteParams::default()).await?;
    again("reconcile").await?;
    // Even if the network has to be created again: machines existed before.
    clouds.delete(namespace, &DeleteParams::default()).await?;
    again("reconcile").await?;
    ensure!(clouds.get_opt(namespace).await?.is_some(), "there is no network");
    ensure!(entries().await?.is_none(), "a list that was lost was made again");

    create(
        &clouds,
        &world::named(json!({"metadata": {"name": name}, "data": one["data"]}))?,
    )
    .await?;
    again("migrate").await?;
    ensure!(
        entries().await? == Some(vec!["node-1".into()]),
        "migrate took the list"
    );
    again("restore").await?;
    ensure!(
        entries().await? == Some(vec!["node-1".into()]),
        "restore wrote the list"
    );
    delete(&reconciler, &infra).await?;
    ensure!(entries().await?.is_none(), "the list is left");
    Ok(())
}

pub async fn refused_cloud_credentials(world: &World) -> Result<()> {
    let namespace = "shoot--dev--refused";
    let stranger = world::credentials_of(&world.control_plane, "stranger")?;
    world::namespace(&world.seed, namespace, &stranger).await?;
    let reconciler = world::infrastructure(&world.seed);
    let infra: Infrastructure = object("infra", namespace, json!({}))?;
    let api: Api<Infrastructure> = Api::namespaced(world.seed.clone(), namespace);
    create(&api, &infra).await?;
    ensure!(run(&reconciler, &infra).await.is_err(), "a stranger was let in");
    codes(&api, "infra", "ERR_INFRA_UNAUTHORIZED").await?;
    let mut nobody = world.cloud.clone();
    let kubeconfig = String::from_utf8(nobody["kubeconfig"].clone())?;
    let mut kubeconfig: Value = serde_json::from_str(&kubeconfig)?;
    kubeconfig["users"][0]["user"] = json!({"token": "of-nobody"});
    nobody.insert("kubeconfig".into(), serde_json::to_vec(&kubeconfig)?);
    world::set_credentials(&world.seed, namespace, &nobody).await?;
    ensure!(
        run(&reconciler, &infra).await.is_err(),
        "a wrong token was let in"
    );
    let error = codes(&api, "infra", "ERR_INFRA_UNAUTHENTICATED").await?;
    ensure!(!error.contains("of-nobody"), "a secret in an error: {error}");
    world::set_credentials(&world.seed, namespace, &world.cloud).await?;
    run(&reconciler, &infra).await?;
    Ok(())
}

pub async fn unknown_configuration_survives(world: &World) -> Result<()> {
    let namespace = "shoot--dev--config";
    world::namespace(&world.seed, namespace, &world.cloud).await?;
    world::pool_in(&world.seed, namespace, &["b", "a"]).await?;
    let config = json!({"networks": {"workers": "10.222.0.0/20", "zones": [{"name": "z"}]}, "future": {"field": true}});
    let infra: Infrastructure = object("infra", namespace, json!({"providerConfig": config}))?;
    run_created(&world::infrastructure(&world.seed), &infra).await?;
    let infra = Api::<Infrastructure>::namespaced(world.seed.clone(), namespace)
        .get("infra")
        .await?;
    ensure!(
        infra.spec.default.provider_config == Some(config.into()),
        "{:?}",
        infra.spec.default.provider_config
    );
    let status = infra.status.unwrap_or_default();
    let reported = status.default.provider_status.unwrap_or_default().0;
    ensure!(
        reported["zones"] == json!([{"name": "a", "id": "az-a"}, {"name": "b", "id": "az-b"}]),
        "a gardenlet knows zones by their IDs: {reported}"
    );
    ensure!(
        status.nodes_cidr.as_deref() == Some("10.222.0.0/20"),
        "the range asked for"
    );
    Ok(())
}

pub async fn a_failed_shoot_is_left_alone(world: &World) -> Result<()> {
    let namespace = "shoot--dev--failed";
    world::namespace(&world.seed, namespace, &world.cloud).await?;
    let clusters: Api<Cluster> = Api::all(world.seed.clone());
    let cluster = |state: &str| {
        world::named::<Cluster>(
            json!({"metadata": {"name": namespace}, "spec": {"cloudProfile": {}, "seed": {"metadata": {"name": THIS_SEED}}, "shoot": {
                "metadata": {"generation": 2}, "status": {"seedName": THIS_SEED, "observedGeneration": 2, "lastOperation": {"state": state}},
            }}}),
        )
    };
    MANAGER_OF_TEST.apply(&clusters, &cluster("Failed")?).await?;
    let reconciler = world::infrastructure(&world.seed);
    let infra: Infrastructure = object("infra", namespace, json!({}))?;
    run_created(&reconciler, &infra).await?;
    let api: Api<Infrastructure> = Api::namespaced(world.seed.clone(), namespace);
    ensure!(
        api.get("infra").await?.status.is_none(),
        "a failed shoot was reconciled"
    );
    MANAGER_OF_TEST.apply(&clusters, &cluster("Processing")?).await?;
    run(&reconciler, &infra).await?;
    ensure!(
        api.get("infra").await?.status.is_some(),
        "a retried shoot was not reconciled"
    );
    Ok(())
}
