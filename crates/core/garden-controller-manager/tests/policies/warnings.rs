//! Writes that are allowed with a warning.

use std::time::Duration;

use api::gardencore::Shoot;
use kube::{
    Api,
    api::{Patch, PatchParams},
    client::Body,
    core::Request,
};
use serde_json::json;

use crate::garden::{Garden, NAMESPACE};

/// HibernationPossible: the user is warned before the sleep, as a shoot that sleeps cannot be asked.
pub async fn a_sleep_that_a_webhook_may_not_let_end(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    garden
        .shoot("webhooks", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let constraint = |status: &str| {
        json!({"type": "HibernationPossible", "status": status, "reason": "R", "message": "Webhook w.",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"})
    };
    let report = async |status: &str| {
        let patch = Patch::Merge(json!({"status": {"constraints": [constraint(status)]}}));
        let params = PatchParams::default();
        shoots.patch_status("webhooks", &params, &patch).await.unwrap();
    };
    report("False").await;
    // A policy takes effect some time after its creation.
    let warned = || async {
        let warnings = warnings(garden).await;
        let is_warned = warnings.contains("may not wake up from its sleep: Webhook w.");
        is_warned.then_some(()).ok_or(warnings)
    };
    testkit::eventually("the warning of the webhook", Duration::from_secs(150), warned)
        .await
        .unwrap();
    report("True").await;
    assert_eq!(warnings(garden).await, "");
}

/// The warnings of an edit that hibernates the shoot, without the edit.
async fn warnings(garden: &Garden) -> String {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let patch = Patch::Merge(json!({"spec": {"hibernation": {"enabled": true}}}));
    let params = PatchParams::default().dry_run();
    let request = Request::new(shoots.resource_url()).patch("webhooks", &params, &patch);
    let request = request.unwrap().map(Body::from);
    let answer = garden.administrator().send(request).await.unwrap();
    assert!(answer.status().is_success(), "{}", answer.status());
    let warnings = answer.headers().get_all("warning").iter();
    let warnings: Vec<_> = warnings.filter_map(|value| value.to_str().ok()).collect();
    warnings.join("; ")
}
