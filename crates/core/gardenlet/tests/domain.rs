//! A gardenlet takes a Shoot only after the reservation of the domain. A real API server serves as garden and
//! seed.

#![allow(clippy::unwrap_used, clippy::large_futures)]

mod ground;

use std::sync::Arc;

use anyhow::{Result, ensure};
use gardenlet::shoot;
use k8s_openapi::api::{core::v1::Namespace, events::v1::Event};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use placement::is_hosted;
use serde_json::{Value, json};
use testkit::{apply, eventually};
use tokio::task::JoinSet;

use ground::{CORE, Ground, NAMESPACE, PROJECT, SOON, context::context};

const DOMAIN: &str = "web.customer.test";

#[test]
fn a_shoot_is_taken_after_the_reservation_of_its_domain() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("domain", false)).await?;
        apply(&ground.client, shoot_with_domain("web")).await?;
        let mut gardenlet = JoinSet::new();
        gardenlet.spawn(Box::pin(shoot::run(Arc::new(context(&ground.client, &[])?))));
        eventually("the creation waits for the reservation", SOON, || {
            is_reported(&ground, "is not reserved for this Shoot")
        })
        .await?;
        let waiting = ground.shoots.get("web").await?;
        ensure!(waiting.status.is_none(), "{:?}", waiting.status);
        let namespaces: Api<Namespace> = Api::all(ground.client.clone());
        ensure!(
            namespaces.get_opt(NAMESPACE).await?.is_none(),
            "something was begun"
        );
        is_deleted_without_a_reservation(&ground).await?;

        let reserved = Patch::Merge(json!({"status": {"reservedDomain": DOMAIN}}));
        ground
            .shoots
            .patch_status("web", &PatchParams::default(), &reserved)
            .await?;
        ground::until(&ground.shoots, "no seed has taken the Shoot", is_hosted).await?;
        Ok(())
    })
}

async fn is_deleted_without_a_reservation(ground: &Ground) -> Result<()> {
    ground.create_and_delete(shoot_with_domain("short")).await?;
    ground.until_gone("short").await
}

async fn is_reported(ground: &Ground, words: &str) -> Result<(), String> {
    let events: Api<Event> = Api::namespaced(ground.client.clone(), PROJECT);
    let all = events.list(&ListParams::default()).await;
    let mut all = all.map_err(|error| error.to_string())?.items.into_iter();
    let is_report = |event: Event| event.note.is_some_and(|note| note.contains(words));
    all.any(is_report)
        .then_some(())
        .ok_or_else(|| format!("no Event with {words}"))
}

fn shoot_with_domain(name: &str) -> Value {
    json!({"apiVersion": CORE, "kind": "Shoot", "metadata": {"name": name, "namespace": PROJECT},
        "spec": {"cloudProfile": {"name": "local"}, "region": "local", "seedName": "seed-a",
            "kubernetes": {"version": "1.34.4"}, "provider": {"type": "local"}, "dns": {"domain": DOMAIN}}})
}
