//! The reports of an object with a faulty provider, and the objects left by a cleanup.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use api::{
    constants::{OPERATION, operation::RECONCILE},
    extensions::Infrastructure,
    resources::ManagedResource,
};
use extension::{cleanup, reconciler::namespaced};
use kube::{Api, ResourceExt};
use runtime::{
    client::{Permit, Seed, wait},
    controller::finalizer,
};
use serde_json::{Value, json};

use crate::{
    toy::{Cloud, Toy, infrastructure},
    world::{Seeds, TEST, create, object, reconciler},
    wrong::Wrong,
};

const NAMESPACE: &str = "shoot--toy--reports";

pub async fn tell_what_is_wrong(seeds: &Seeds) -> Result<()> {
    seeds.shoot(NAMESPACE, ("cloudprovider", &[])).await?;
    of_a_state(seeds).await?;
    of_kept_objects(seeds).await
}

/// A state that is too large is neither written nor lost; an invalid state is reported as invalid.
async fn of_a_state(seeds: &Seeds) -> Result<()> {
    let wanted = infrastructure(NAMESPACE)?;
    let by = |wrong| reconciler(&seeds.a, namespaced, Toy::new(&Arc::new(Cloud::default()), wrong));
    let api = by(Wrong::Nothing).api_of(&wanted);
    create(&api, &wanted).await?;
    by(Wrong::Nothing).run(&wanted).await?;
    let before = state(&api).await?;
    ensure!(before["id"].is_string(), "{before}");

    TEST.annotate(&api, "one", OPERATION, Some(RECONCILE)).await?;
    let refused = by(Wrong::StateTooLarge).run(&wanted).await;
    ensure!(refused.is_err(), "two megabytes were written");
    let said = last_error(&api).await?;
    ensure!(
        said.contains("Infrastructure one has a status of 2000"),
        "{said:.300}"
    );
    ensure!(state(&api).await? == before, "the former state is lost");

    TEST.merge_status(&api, "one", &json!({"state": {"id": 7, "sealed": []}}))
        .await?;
    let toy = by(Wrong::ReadsStrictly).run(&wanted).await;
    ensure!(toy.is_err(), "garbage was understood");
    let said = last_error(&api).await?;
    ensure!(said.contains("status.state cannot be understood"), "{said}");
    Ok(())
}

async fn state(api: &Api<Infrastructure>) -> Result<Value> {
    let status = api.get("one").await?.status.context("no status")?;
    Ok(status.default.state.map_or(Value::Null, |state| state.0))
}

async fn last_error(api: &Api<Infrastructure>) -> Result<String> {
    let status = api.get("one").await?.status.context("no status")?;
    Ok(status.default.last_error.context("no lastError")?.description)
}

/// RX-23: a deleted ManagedResource would remove the objects from the shoot.
async fn of_kept_objects(seeds: &Seeds) -> Result<()> {
    const FINALIZER: &str = "resources.gardener.cloud/gardener-resource-manager";
    let resources: Api<ManagedResource> = Api::namespaced(seeds.a.clone(), NAMESPACE);
    let resource =
        json!({"metadata": {"name": "addon", "finalizers": [FINALIZER]}, "spec": {"secretRefs": []}});
    create(&resources, &object(resource)?).await?;
    let seed = Seed::new(seeds.a.clone(), &Permit::sole("a test"));
    let manager = async {
        let going = |found: Option<&ManagedResource>| match found {
            Some(found) if found.metadata.deletion_timestamp.is_some() => wait::WaitState::Done,
            _ => wait::WaitState::Wait("it is not being deleted".into()),
        };
        let bound = std::time::Duration::from_secs(60);
        let found = testkit::measured("the ManagedResource is deleted", bound, |bound| {
            wait::until(&resources, "addon", bound, going)
        });
        let found = found
            .await?
            .context("it is gone before its manager has seen it")?;
        ensure!(
            found.spec.keep_objects == Some(true),
            "{} would lose its objects",
            found.name_any()
        );
        Ok(finalizer::remove(&resources, &found, FINALIZER).await?)
    };
    let names = ["addon", "none"];
    let (removed, kept) = tokio::join!(
        cleanup::managed_resources(&seed, TEST, NAMESPACE, &names),
        manager
    );
    removed?;
    kept
}
