//! A forced deletion gives the machine manager a bounded time once, on a real API server.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use anyhow::{Context as _, Result};
use api::{constants::FORCED_DELETION_BEGAN, gardencore::Shoot};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use parts::{ForcedMachines, Operation, Settings};
use parts_fixture::{NAMESPACE, PROJECT, World};
use serde_json::json;

/// Longer than the list and the report of a machine take, and much shorter than the time of the machine
/// manager.
const SOON: Duration = Duration::from_secs(60);

/// Each attempt, and each restart of the gardenlet, gave the machine manager five more minutes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_is_repeated_gives_the_machine_manager_no_further_time() -> Result<()> {
    let world = World::start("forced-machines").await?;
    world.apply("v1", "Namespace", None, NAMESPACE, json!({})).await?;
    let shoots: Api<Shoot> = Api::namespaced(world.client(), PROJECT);
    let uid = shoots.get("web").await?.uid().unwrap();
    let namespaces: Api<Namespace> = Api::all(world.client());
    let annotated = |annotations| Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    let params = PatchParams::default();
    let bound = annotated(json!({api::constants::SHOOT_UID: uid}));
    namespaces.patch(NAMESPACE, &params, &bound).await?;
    // The cloud keeps the instance.
    world
        .apply(
            "machine.sapcloud.io/v1alpha1",
            "Machine",
            Some(NAMESPACE),
            "m-1",
            json!({"spec": {"providerID": "aws:///eu-west-1a/i-1", "class": {"kind": "MachineClass", "name": "c"}}}),
        )
        .await?;
    let kept = Patch::Merge(json!({"metadata": {"finalizers": ["machine.sapcloud.io/machine-controller"]}}));
    let machines = world.any("machine.sapcloud.io/v1alpha1", "Machine", Some(NAMESPACE));
    machines.patch("m-1", &params, &kept).await?;
    let last = json!({"type": "Delete", "state": "Processing", "progress": 1, "description": "d",
        "lastUpdateTime": "2026-01-01T00:00:00Z"});
    let status = Patch::Merge(
        json!({"status": {"seedName": "seed-a", "technicalID": NAMESPACE, "uid": uid, "lastOperation": last}}),
    );
    shoots.patch_status("web", &params, &status).await?;
    let facts = world.facts(Operation::ForceDelete, Settings::default()).await?;

    ForcedMachines::ask(&facts.residency).await?;
    let recorded = async || {
        let namespace = namespaces.get(NAMESPACE).await?;
        anyhow::Ok(namespace.annotations().get(FORCED_DELETION_BEGAN).cloned())
    };
    let first = recorded().await?.context("the beginning is not recorded")?;
    ForcedMachines::ask(&facts.residency).await?;
    assert_eq!(recorded().await?, Some(first));

    let past = annotated(json!({FORCED_DELETION_BEGAN: "2026-01-01T00:00:00Z"}));
    namespaces.patch(NAMESPACE, &params, &past).await?;
    testkit::timeout(SOON, ForcedMachines::wait(&facts))
        .await
        .context("the attempt waits anew")??;
    let errors = shoots.get("web").await?.status.unwrap().last_errors;
    assert!(
        errors[0]
            .description
            .starts_with("machine m-1 (aws:///eu-west-1a/i-1) may be left behind: "),
        "{errors:?}"
    );
    Ok(())
}
