//! The Shoot reports a webhook that can stop a wake-up before the sleep and before a move. Case 8 covers a
//! webhook that the API server ignores too late. A real API server serves as garden, seed and shoot.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "ground/context.rs"]
mod context;

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use api::{
    constants::condition::{HIBERNATION_POSSIBLE, PROBLEMATIC_WEBHOOKS, WEBHOOKS_ON_LEASES},
    gardencore::Shoot,
    meta::ConditionStatus,
};
use gardenlet::{Context, care};
use k8s_openapi::api::{
    admissionregistration::v1::ValidatingWebhookConfiguration,
    core::v1::{Namespace, Secret},
    events::v1::Event,
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use parts::{Settings, UrlOf};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use testkit::{ControlPlane, eventually};
use tokio::task::JoinSet;

use context::context;

const PROJECT: &str = "garden-dev";
const NAMESPACE: &str = "shoot--dev--web";
const SLEEPS: &str = "SleepsWithProblematicWebhooks";
/// For a busy machine.
const SOON: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_can_stop_a_wake_up_is_reported_before_the_sleep() -> Result<()> {
    let plane = ControlPlane::start("webhooks").await?;
    let client = plane.admin();
    let crds: Vec<_> = api::all_crds().into_iter().map(|crd| crd.definition).collect();
    testkit::apply_crds(&client, &crds).await?;
    a_shoot(&plane).await?;
    let url = plane.url().to_owned();
    let context = context(&client, &["--care-sync-period=1s"])?;
    let settings = Settings {
        shoot_api_url: UrlOf::new(move |_| url.clone()),
        ..(*context.settings).clone()
    };
    let mut running = JoinSet::new();
    running.spawn(care::run(Arc::new(Context {
        settings: Arc::new(settings),
        ..context
    })));
    reported(&client, ConditionStatus::True, "NoProblematicWebhooks", "").await?;

    let webhook = json!({"name": "w.example.test", "failurePolicy": "Ignore", "timeoutSeconds": 10, "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "clientConfig": {"service": {"namespace": "default", "name": "none"}},
        "rules": [{"apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["leases"]}]});
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    create(
        &configurations,
        json!({"metadata": {"name": "users"}, "webhooks": [webhook]}),
    )
    .await?;
    let named = "ValidatingWebhookConfiguration users (webhook w.example.test, failurePolicy Ignore, timeoutSeconds 10)";
    reported(&client, ConditionStatus::False, WEBHOOKS_ON_LEASES, named).await?;
    warned(&client, PROBLEMATIC_WEBHOOKS).await?;
    configure(&client, json!({"spec": {"hibernation": {"enabled": true}}})).await?;
    warned(&client, SLEEPS).await?;
    configure(&client, json!({"spec": {"hibernation": {"enabled": false}}})).await?;
    configurations.delete("users", &DeleteParams::default()).await?;
    reported(&client, ConditionStatus::True, "NoProblematicWebhooks", "").await
}

async fn reported(client: &Client, status: ConditionStatus, reason: &str, words: &str) -> Result<()> {
    let shoots: Api<Shoot> = Api::namespaced(client.clone(), PROJECT);
    eventually(&format!("{HIBERNATION_POSSIBLE} is {status:?}"), SOON, || async {
        let found = shoots.get("web").await?.status.unwrap_or_default();
        let found = found
            .constraint(HIBERNATION_POSSIBLE)
            .context("no such constraint")?;
        ensure!(
            found.status == status && found.reason == reason && found.message.contains(words),
            "{found:?}"
        );
        Ok(())
    })
    .await
}

async fn warned(client: &Client, reason: &str) -> Result<()> {
    let events: Api<Event> = Api::namespaced(client.clone(), PROJECT);
    eventually(&format!("Event {reason}"), SOON, || async {
        let events = events.list(&ListParams::default()).await?.items;
        let found = events.iter().any(|event| event.reason.as_deref() == Some(reason));
        ensure!(found, "{} others", events.len());
        Ok(())
    })
    .await
}

async fn configure(client: &Client, patch: Value) -> Result<()> {
    let shoots: Api<Shoot> = Api::namespaced(client.clone(), PROJECT);
    shoots
        .patch("web", &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    Ok(())
}

/// A Shoot that uses the API server of this test.
async fn a_shoot(plane: &ControlPlane) -> Result<()> {
    let client = plane.admin();
    for name in [PROJECT, NAMESPACE] {
        create(
            &Api::<Namespace>::all(client.clone()),
            json!({"metadata": {"name": name}}),
        )
        .await?;
    }
    let kubeconfig = serde_json::to_string(&plane.kubeconfig("gardenlet", &["system:masters"])?)?;
    create(
        &Api::<Secret>::namespaced(client.clone(), NAMESPACE),
        json!({"metadata": {"name": "gardenlet"}, "stringData": {"kubeconfig": kubeconfig}}),
    )
    .await?;
    create(
        &Api::<api::gardencore::Seed>::all(client.clone()),
        json!({"metadata": {"name": "seed-a"}, "spec": {"networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
            "dns": {}, "provider": {"type": "local", "region": "local"}}}),
    )
    .await?;
    let shoots: Api<Shoot> = Api::namespaced(client, PROJECT);
    create(
        &shoots,
        json!({"metadata": {"name": "web"}, "spec": {"cloudProfile": {"name": "local"}, "region": "local",
            "seedName": "seed-a", "kubernetes": {"version": "1.34.4"}, "provider": {"type": "local"}}}),
    )
    .await?;
    let status = json!({"status": {"technicalID": NAMESPACE, "uid": "u", "seedName": "seed-a",
        "lastOperation": {"type": "Create", "state": "Succeeded", "progress": 100, "description": "",
            "lastUpdateTime": "2026-01-01T00:00:00Z"}}});
    shoots
        .patch_status("web", &PatchParams::default(), &Patch::Merge(status))
        .await?;
    Ok(())
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    let object: K = serde_json::from_value(object)?;
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}
