//! The role of the seed: the shoot of a different seed is not touched, not even in the middle of an
//! operation.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use api::{
    extensions::{Cluster, Infrastructure},
    meta::LastOperationState,
};
use async_trait::async_trait;
use extension::{Actuator, Context, Outcome};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt};
use runtime::{Error, client::Cluster as _};
use serde_json::json;
use tokio::sync::Notify;

use super::{
    World, run,
    world::{self, SOON, create, gone, object},
};

pub async fn only_the_acting_seed_acts(world: &World) -> Result<()> {
    a_shoot_of_another_seed_is_left_alone(world, "shoot--dev--theirs").await?;
    work_ends_when_another_seed_acts(world, "shoot--dev--given-away", SOON).await
}

pub async fn a_shoot_of_another_seed_is_left_alone(world: &World, namespace: &str) -> Result<()> {
    world::namespace(&world.seed, namespace, &world.cloud).await?;
    world::cluster(&world.seed, namespace, "another-seed").await?;
    let reconciler = world::infrastructure(&world.seed);
    let api: Api<Infrastructure> = Api::namespaced(world.seed.clone(), namespace);
    let infra: Infrastructure = object("infra", namespace, json!({}))?;
    create(&api, &infra).await?;
    let no_network = async |why: &str| {
        let networks = world::networks(&world.seed).await?;
        ensure!(networks.get(namespace).is_none(), "a network was made: {why}");
        anyhow::Ok(())
    };
    let error = run(&reconciler, &infra).await.unwrap_err();
    ensure!(matches!(error, Error::NotOwner(_)), "{error:?}");
    ensure!(error.to_string().contains("another-seed"), "{error}");
    no_network("another seed acts").await?;
    let status = api.get("infra").await?.status.context("it is not told")?;
    ensure!(status.default.last_error.is_none(), "it is told as a failure");
    let state = status.default.last_operation.map(|last| last.state);
    ensure!(state == Some(LastOperationState::Processing), "{state:?}");

    gone(&Api::<Cluster>::all(world.seed.clone()), namespace).await?;
    let error = run(&reconciler, &infra).await.unwrap_err();
    ensure!(
        matches!(error, Error::NotOwner(_)),
        "without a Cluster: {error:?}"
    );
    no_network("there is no Cluster").await
}

/// An actuator that works until stopped, and signals the begin.
pub struct Endless(pub Arc<Notify>);

#[async_trait]
impl Actuator<Infrastructure> for Endless {
    const NAME: &'static str = "endless";

    async fn reconcile(&self, context: &Context<Infrastructure>) -> runtime::Result<Outcome> {
        self.0.notify_one();
        let maps: Api<ConfigMap> = context.seed.namespaced(&context.namespace()?);
        loop {
            // A request like any of an actuator: only the end of the permit makes the request fail.
            maps.get_opt("nothing").await?;
            tokio::task::yield_now().await;
        }
    }

    async fn restore(&self, context: &Context<Infrastructure>) -> runtime::Result<Outcome> {
        self.reconcile(context).await
    }

    async fn migrate(&self, _: &Context<Infrastructure>) -> runtime::Result<Outcome> {
        Ok(Outcome::none())
    }

    async fn delete(&self, _: &Context<Infrastructure>) -> runtime::Result<()> {
        Ok(())
    }
}

pub async fn work_ends_when_another_seed_acts(
    world: &World,
    namespace: &str,
    patience: Duration,
) -> Result<()> {
    world::namespace(&world.seed, namespace, &world.cloud).await?;
    let begun = Arc::new(Notify::new());
    let reconciler = world::infrastructure_by(&world.seed, Endless(Arc::clone(&begun)));
    let api: Api<Infrastructure> = Api::namespaced(world.seed.clone(), namespace);
    let mut infra: Infrastructure = object("infra", namespace, json!({}))?;
    infra
        .annotations_mut()
        .insert("gardener.cloud/operation".into(), "reconcile".into());
    create(&api, &infra).await?;
    let giving_away = async {
        begun.notified().await;
        world::cluster(&world.seed, namespace, "another-seed").await
    };
    let working = tokio::time::timeout(patience, run(&reconciler, &infra));
    let (ended, given) = tokio::join!(working, giving_away);
    given?;
    let error = ended.context("it worked on")?.unwrap_err();
    ensure!(matches!(error, Error::NotOwner(_)), "{error:?}");
    ensure!(error.to_string().contains("another-seed"), "{error}");
    Ok(())
}
