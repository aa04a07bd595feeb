//! The deletion of a Shoot whose creation has never succeeded. A real API server serves as garden and seed.

#![allow(clippy::unwrap_used, clippy::large_futures)]

mod ground;

use std::sync::Arc;

use anyhow::{Result, ensure};
use api::{
    constants::{BACKUP_ENTRY_FORCE_DELETION, CONFIRMATION_DELETION},
    gardencore::{BackupEntry, BackupEntrySpec},
    meta::LastOperationType as Type,
};
use gardenlet::shoot;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use testkit::apply;
use tokio::task::JoinSet;

use ground::{CORE, Ground, NAMESPACE, PROJECT, context::context};

/// Otherwise each Shoot that a member creates and deletes leaves a BackupEntry for the grace period.
#[test]
fn the_backups_of_a_shoot_that_was_never_created_have_no_grace_period() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("half-created", false)).await?;
        apply(&ground.client, the_shoot()).await?;
        let spec = BackupEntrySpec {
            bucket_name: "bucket".into(),
            seed_name: Some("seed-a".into()),
            ..BackupEntrySpec::default()
        };
        let name = format!("{NAMESPACE}--u-1");
        let entries: Api<BackupEntry> = Api::namespaced(ground.client.clone(), PROJECT);
        let entry = BackupEntry::new(&name, spec);
        entries.create(&PostParams::default(), &entry).await?;
        let last = json!({"type": "Create", "state": "Error", "progress": 20, "description": "Infrastructure is refused.",
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
        ground::until(&ground.shoots, "the deletion has not begun", |shoot| {
            let status = shoot.status.as_ref();
            let last = status.and_then(|status| status.last_operation.as_ref());
            last.is_some_and(|last| last.type_ == Type::Delete)
        })
        .await?;
        let entry = entries.get(&name).await?;
        let forced = entry.annotations().get(BACKUP_ENTRY_FORCE_DELETION);
        ensure!(
            forced.is_some_and(|forced| forced == "true"),
            "{:?}",
            entry.metadata
        );
        Ok(())
    })
}

fn the_shoot() -> Value {
    json!({"apiVersion": CORE, "kind": "Shoot",
        "metadata": {"name": "web", "namespace": PROJECT, "finalizers": ["gardener", "example.test/kept"],
            "annotations": {CONFIRMATION_DELETION: "true"}},
        "spec": {"cloudProfile": {"name": "local"}, "region": "local", "seedName": "seed-a",
            "kubernetes": {"version": "1.34.4"}, "provider": {"type": "local"}}})
}
