//! The gardenlet of a seed that has lost its shoot, and whose etcd may have changes that no snapshot has
//! (R17-46). The seed took the shoot back and lost the shoot again, or a stolen certificate has handed over
//! the shoot. A real API server serves as garden and seed.

#![allow(clippy::unwrap_used, clippy::large_futures)]

mod ground;

use std::{sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use api::{
    constants::{HANDED_OVER_IN_EPOCH, OWNERSHIP_EPOCH, SHOOT_UID, STOPPED_FOR_EPOCH},
    druid::Etcd,
};
use gardenlet::shoot;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use runtime::client::wait::{self, WaitState};
use serde_json::{Value, json};
use testkit::apply;
use tokio::task::JoinSet;

use ground::{CORE, Ground, NAMESPACE, PROJECT, SOON, context::context};

const UID: &str = "u-1";
/// Longer than a gardenlet needs for a clean-up without a wait.
const QUIET: Duration = Duration::from_secs(5);

/// The stop for epoch 5 looks like a hibernation. The changes of epoch 3 are on the volume alone.
#[test]
fn an_etcd_with_unsaved_changes_is_woken_although_the_shoot_is_hibernated() -> Result<()> {
    ground::story(8 << 20, async {
        let former = Box::pin(Former::start("unsaved")).await?;
        let stop = json!({"metadata": {"annotations": {STOPPED_FOR_EPOCH: "5"}}, "spec": {"replicas": 0}});
        let params = PatchParams {
            field_manager: Some("gardenlet".to_owned()),
            ..PatchParams::default()
        };
        former
            .etcds
            .patch("etcd-main", &params, &Patch::Merge(stop))
            .await?;
        former.record("Claiming", "Processing", Value::Null).await?;
        let _gardenlet = former.gardenlet()?;
        former.until_replicas(1).await?;
        // The new seed has chosen. etcd-backup-restore does not run here, so the changes cannot be saved.
        former.record("Held", "Succeeded", begun()).await?;
        // The absence of a deletion can only be waited for.
        tokio::time::sleep(QUIET).await;
        let etcd = former.etcds.get("etcd-main").await?;
        let mark = etcd.annotations().get(STOPPED_FOR_EPOCH);
        ensure!(etcd.metadata.deletion_timestamp.is_none(), "the Etcd is deleted");
        ensure!(mark.is_some_and(|epoch| epoch == "5"), "the mark is {mark:?}");
        // A stop by a user, before the changes are saved, is undone by the next attempt.
        let stop = Patch::Merge(json!({"spec": {"replicas": 0}}));
        let params = PatchParams::default();
        former.etcds.patch("etcd-main", &params, &stop).await?;
        former.until_replicas(1).await
    })
}

/// All data were stored before the hibernation, so that the clean-up waits for no snapshot.
#[test]
fn an_etcd_that_was_hibernated_in_this_seed_is_cleaned_up_asleep() -> Result<()> {
    ground::story(8 << 20, async {
        let former = Box::pin(Former::start("hibernated")).await?;
        former.applies(0).await?;
        former.record("Held", "Succeeded", begun()).await?;
        let _gardenlet = former.gardenlet()?;
        ground::until(&former.ground.shoots, "the entry of the seed stays", |shoot| {
            let status = shoot.status.as_ref();
            status.is_some_and(|status| status.former_seeds.is_empty())
        })
        .await?;
        let namespaces: Api<Namespace> = Api::all(former.ground.client.clone());
        let left = namespaces.get_opt(NAMESPACE).await?;
        ensure!(left.is_none(), "the namespace is left");
        Ok(())
    })
}

/// Security: a stolen certificate of this seed has written the hand-over. The Shoot says that the seed is
/// drained, and the etcd with the only copy of the last changes runs.
#[test]
fn an_etcd_that_the_gardenlet_has_not_handed_over_stays_whatever_the_shoot_says() -> Result<()> {
    ground::story(8 << 20, async {
        let former = Box::pin(Former::start("forged")).await?;
        former.handed_over("Claiming", "Processing").await?;
        let _gardenlet = former.gardenlet()?;
        // The absence of a deletion can only be waited for.
        tokio::time::sleep(QUIET).await;
        former.has_etcd().await?;
        // The new seed has recorded the restore. etcd-backup-restore does not run here, so no final snapshot
        // is reported.
        former.handed_over("Held", "Succeeded").await?;
        tokio::time::sleep(QUIET).await;
        former.has_etcd().await
    })
}

/// The gardenlet has handed over the shoot, and no process has to report the final snapshot again.
#[test]
fn an_etcd_that_the_gardenlet_has_handed_over_is_cleaned_up() -> Result<()> {
    ground::story(8 << 20, async {
        let former = Box::pin(Former::start("handed-over")).await?;
        let noted = json!({"metadata": {"annotations": {HANDED_OVER_IN_EPOCH: "3"}}});
        let params = PatchParams::default();
        former
            .etcds
            .patch("etcd-main", &params, &Patch::Merge(noted))
            .await?;
        former.handed_over("Held", "Succeeded").await?;
        let _gardenlet = former.gardenlet()?;
        ground::until(&former.ground.shoots, "the entry of the seed stays", |shoot| {
            let status = shoot.status.as_ref();
            status.is_some_and(|status| status.former_seeds.is_empty())
        })
        .await?;
        ensure!(
            former.etcds.get_opt("etcd-main").await?.is_none(),
            "the Etcd is left"
        );
        Ok(())
    })
}

struct Former {
    ground: Ground,
    etcds: Api<Etcd>,
}

impl Former {
    /// A flow of the gardenlet has started etcd-main in epoch 3.
    async fn start(name: &str) -> Result<Self> {
        let ground = Box::pin(Ground::start(name, false)).await?;
        apply(&ground.client, the_shoot()).await?;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": NAMESPACE, "annotations": {SHOOT_UID: UID}}});
        apply(&ground.client, namespace).await?;
        let etcds = Api::namespaced(ground.client.clone(), NAMESPACE);
        let former = Self { ground, etcds };
        former.applies(1).await?;
        Ok(former)
    }

    /// Applies the Etcd with these replicas, as a flow does.
    async fn applies(&self, replicas: i32) -> Result<()> {
        let check =
            json!({"name": "owner.web.example.test", "id": "a", "zone": "example.test", "shootUID": UID});
        let etcd = json!({
            "apiVersion": "druid.gardener.cloud/v1alpha1", "kind": "Etcd",
            "metadata": {"name": "etcd-main", "annotations": {OWNERSHIP_EPOCH: "3"}},
            "spec": {"labels": {}, "etcd": {}, "replicas": replicas,
                "backup": {"ownerCheck": check, "store": {"prefix": "p"}}},
        });
        let params = PatchParams::apply("gardenlet").force();
        self.etcds
            .patch("etcd-main", &params, &Patch::Apply(&etcd))
            .await?;
        Ok(())
    }

    /// Records the move of the hibernated shoot to seed `seed-b`, which begins with the data of epoch 3.
    async fn record(&self, phase: &str, state: &str, restored: Value) -> Result<()> {
        let last = json!({"type": "Restore", "state": state, "progress": 50, "description": "",
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        let source = json!({"name": "seed-a", "epoch": 3});
        let ownership = json!({"epoch": 6, "phase": phase, "source": source, "restored": restored});
        let status = json!({"seedName": "seed-b", "technicalID": NAMESPACE, "uid": UID, "hibernated": true,
            "formerSeeds": [{"name": "seed-a", "epoch": 5}], "ownership": ownership, "lastOperation": last});
        let status = Patch::Merge(json!({"status": status}));
        let params = PatchParams::default();
        self.ground.shoots.patch_status("web", &params, &status).await?;
        Ok(())
    }

    /// Records a planned move to seed `seed-b`, whose source has handed over the shoot in epoch 3.
    async fn handed_over(&self, phase: &str, state: &str) -> Result<()> {
        let last = json!({"type": "Restore", "state": state, "progress": 50, "description": "",
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        let source = json!({"name": "seed-a", "epoch": 3});
        let ownership = json!({"epoch": 4, "phase": phase, "drained": true, "source": source});
        let status = json!({"seedName": "seed-b", "technicalID": NAMESPACE, "uid": UID,
            "formerSeeds": [{"name": "seed-a", "epoch": 3}], "ownership": ownership, "lastOperation": last});
        let status = Patch::Merge(json!({"status": status}));
        let params = PatchParams::default();
        self.ground.shoots.patch_status("web", &params, &status).await?;
        Ok(())
    }

    async fn has_etcd(&self) -> Result<()> {
        let etcd = self.etcds.get_opt("etcd-main").await?;
        let stays = etcd.is_some_and(|etcd| etcd.metadata.deletion_timestamp.is_none());
        ensure!(stays, "the Etcd is deleted");
        Ok(())
    }

    /// Starts a gardenlet that ends with the returned set.
    fn gardenlet(&self) -> Result<JoinSet<()>> {
        let mut gardenlet = JoinSet::new();
        let context = context(&self.ground.client, &[])?;
        gardenlet.spawn(Box::pin(shoot::run(Arc::new(context))));
        Ok(gardenlet)
    }

    async fn until_replicas(&self, replicas: i32) -> Result<()> {
        let look = |etcd: Option<&Etcd>| match etcd {
            Some(etcd) if etcd.spec.replicas == replicas => WaitState::Done,
            Some(etcd) => WaitState::Wait(format!("etcd-main has {} replicas", etcd.spec.replicas)),
            None => WaitState::Wait("etcd-main is gone".to_owned()),
        };
        let scaled = testkit::measured("etcd-main is scaled", SOON, |bound| {
            wait::until(&self.etcds, "etcd-main", bound, look)
        });
        scaled.await?;
        Ok(())
    }
}

/// The new seed began with the data of epoch 3, without the changes after revision 832.
fn begun() -> Value {
    json!({"epoch": 6, "lastRevision": 832, "saved": "2026-01-01T00:00:00Z", "fenced": "2026-01-01T00:01:30Z",
        "source": {"name": "seed-a", "epoch": 3}})
}

fn the_shoot() -> Value {
    json!({"apiVersion": CORE, "kind": "Shoot", "metadata": {"name": "web", "namespace": PROJECT},
        "spec": {"cloudProfile": {"name": "local"}, "region": "local", "seedName": "seed-b",
            "kubernetes": {"version": "1.34.4"}, "provider": {"type": "local"}, "hibernation": {"enabled": true}}})
}
