//! A forced deletion in the middle of a move reports each machine that only the ShootState names. A real API
//! server serves as garden and seed.

#![allow(clippy::unwrap_used, clippy::large_futures)]

mod ground;

use std::sync::Arc;

use anyhow::{Result, ensure};
use api::{
    constants::{CONFIRMATION_DELETION, CONFIRMATION_FORCE_DELETION},
    gardencore::{GardenerResourceData, Shoot, ShootState, ShootStateSpec},
    machine::{Machine, labels, state},
    meta::{LastOperationState as State, LastOperationType as Type},
};
use gardenlet::shoot;
use k8s_openapi::api::events::v1::Event;
use kube::{
    Api, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use testkit::{apply, eventually};
use tokio::task::JoinSet;

use ground::{CORE, Ground, NAMESPACE, PROJECT, SOON, context::context};

const NAMED: &str = "machine m-1 (aws:///eu-west-1a/i-1) may be left behind: only ShootState web names the machine (of \
                     MachineDeployment web-a-z1), because the deletion was forced before seed seed-a had restored the Worker";

/// The takeover fails at the Infrastructure, so that the seed has no Worker and no Machine.
#[test]
fn a_forced_deletion_before_the_worker_is_restored_names_the_machines_of_the_shoot_state() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("forced-deletion", false)).await?;
        apply(&ground.client, the_shoot()).await?;
        carry_a_machine(&ground).await?;
        let last = json!({"type": "Restore", "state": "Error", "progress": 20, "description": "Infrastructure is refused.",
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        let status = json!({"status": {"seedName": "seed-a", "technicalID": NAMESPACE, "uid": "u-1", "lastOperation": last}});
        let params = PatchParams::default();
        ground
            .shoots
            .patch_status("web", &params, &Patch::Merge(status))
            .await?;
        ground.shoots.delete("web", &DeleteParams::default()).await?;
        let mut gardenlet = JoinSet::new();
        gardenlet.spawn(Box::pin(shoot::run(Arc::new(context(&ground.client, &[])?))));

        // The second finalizer keeps the Shoot.
        let shoot = ground::until(&ground.shoots, "the deletion has not ended", |shoot| {
            let status = shoot.status.as_ref();
            let last = status.and_then(|status| status.last_operation.as_ref());
            last.is_some_and(|last| last.type_ == Type::Delete && last.state == State::Succeeded)
        })
        .await?;
        let errors = shoot.status.unwrap().last_errors;
        for words in [NAMED, "The deletion was forced in the middle of a move"] {
            ensure!(
                errors.iter().any(|error| error.description.starts_with(words)),
                "lastErrors does not say {words:?}: {errors:?}"
            );
            eventually(words, SOON, || is_reported(&ground, words)).await?;
        }
        Ok(())
    })
}

async fn is_reported(ground: &Ground, words: &str) -> Result<(), String> {
    let events: Api<Event> = Api::namespaced(ground.client.clone(), PROJECT);
    let all = events.list(&ListParams::default()).await;
    let all = all.map_err(|error| error.to_string())?;
    let is_report = |event: &Event| {
        event.reason.as_deref() == Some("LeftBehind")
            && event.note.as_deref().is_some_and(|note| note.contains(words))
    };
    all.items
        .iter()
        .any(is_report)
        .then_some(())
        .ok_or_else(|| "no Event LeftBehind".to_owned())
}

async fn carry_a_machine(ground: &Ground) -> Result<()> {
    let machine: Machine = serde_json::from_value(json!({
        "metadata": {"name": "m-1", "namespace": NAMESPACE, "labels": {(labels::NAME): "web-a-z1"}},
        "spec": {"providerID": "aws:///eu-west-1a/i-1"},
    }))?;
    let entry = GardenerResourceData {
        name: state::ENTRY.to_owned(),
        type_: state::ENTRY.to_owned(),
        data: state::encode(&state::collect(&[], &[], &[machine], &[]))?,
        ..GardenerResourceData::default()
    };
    let spec = ShootStateSpec {
        gardener: vec![entry],
        ..ShootStateSpec::default()
    };
    let shoot: Shoot = ground.shoots.get("web").await?;
    let mut state = ShootState::new("web", spec);
    state.metadata.owner_references = shoot.controller_owner_ref(&()).map(|owner| vec![owner]);
    let states: Api<ShootState> = Api::namespaced(ground.client.clone(), PROJECT);
    states.create(&PostParams::default(), &state).await?;
    Ok(())
}

fn the_shoot() -> Value {
    json!({"apiVersion": CORE, "kind": "Shoot",
        "metadata": {"name": "web", "namespace": PROJECT, "finalizers": ["gardener", "example.test/kept"],
            "annotations": {CONFIRMATION_DELETION: "true", CONFIRMATION_FORCE_DELETION: "true"}},
        "spec": {"cloudProfile": {"name": "local"}, "region": "local", "seedName": "seed-a",
            "kubernetes": {"version": "1.34.4"}, "provider": {"type": "local"}}})
}
