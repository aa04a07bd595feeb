//! The preparation for a shoot that a different seed serves. A real API server serves as garden and seed. The
//! gardenlet of `seed-a` has the grant, and the shoot is on `seed-b`, which has no gardenlet here: the test
//! makes the object with the keys. In the last test the shoot is on `seed-a`, and `seed-b` has the grant.

#![allow(clippy::unwrap_used, clippy::large_futures)]

mod ground;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use api::{
    constants::{BACKUP_ENTRY_ASSIGNED_IN_EPOCH, PREPARED_BY_GRANT, SHOOT_UID, condition::PREPARED},
    gardencore::{BackupEntry, InternalSecret, Seed, Shoot},
    meta::{Condition, ConditionStatus, find_condition},
};
use gardenlet::shoot;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    ByteString,
    api::core::v1::{Namespace, Secret},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use parts::{Facts, Operation, PreparationState, Secrets, Settings, UrlOf, prepared_in};
use runtime::{client::wait, clock};
use serde_json::{Value, json};
use testkit::{FakeGate, apply, eventually};
use tokio::task::JoinSet;

use ground::{CORE, Ground, NAMESPACE, PROJECT, SOON, context::context};

const UID: &str = "u-1";
const FLAG: &str = "--enable-preparation";
/// For the report that keys or an entry are missing: the gardenlet reports after 30 s and a repetition.
const REPORT_WITHIN: Duration = Duration::from_secs(150);
/// Longer than two checks of a prepared namespace.
const QUIET: Duration = Duration::from_secs(21);

/// Each end of a grant removes the namespace, and a later grant prepares anew.
#[test]
fn a_seed_prepares_under_a_grant_and_leaves_nothing() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("preparation", false)).await?;
        let preparing = Preparing::new(ground).await?;
        let _gardenlet = preparing.gardenlet(&[FLAG])?;
        let expiry = far();
        preparing.grant(expiry).await?;
        let namespace = preparing.until_prepared().await?;
        ensure!(prepared_in(&namespace) == Some(3), "{:?}", namespace.metadata);
        ensure!(namespace.annotations()[SHOOT_UID] == UID);
        // The source has made no keys.
        let condition = preparing.until_reported("PreparationFailed").await?;
        ensure!(
            condition.message.contains("has not made InternalSecret"),
            "{condition:?}"
        );
        // garden-controller-manager has not placed the entry.
        ensure!(
            condition.message.contains("has not placed BackupEntry"),
            "{condition:?}"
        );
        ensure!(preparing.secrets().await?.is_empty());
        preparing.publish(expiry).await?;
        preparing.until_entry_alone_is_missing().await?;
        preparing.place_entry(expiry).await?;
        let condition = preparing.until_reported("PartsMissing").await?;
        ensure!(condition.status == ConditionStatus::False, "{condition:?}");
        ensure!(condition.message.contains("does not exist yet"), "{condition:?}");
        let keys: usize = preparing.secrets().await?.iter().map(keys_of).sum();
        ensure!(keys == PreparationState::data_keys().count(), "{keys} keys");

        preparing.status(json!({"liveMigration": null})).await?;
        preparing.until_gone().await?;

        // Without a write of garden-controller-manager.
        let soon = clock::now() + SignedDuration::from_secs(30);
        preparing.grant(soon).await?;
        preparing.until_prepared().await?;
        preparing.until_gone().await?;
        ensure!(
            clock::now() >= soon - SignedDuration::from_secs(1),
            "it was too early"
        );

        // A takeover by a third seed: no process withdraws the grant.
        preparing.grant(far()).await?;
        preparing.until_prepared().await?;
        let taken = json!({"seedName": "seed-c", "ownership": {"epoch": 4}});
        preparing.status(taken).await?;
        preparing.until_gone().await?;

        let back = json!({"seedName": "seed-b", "ownership": {"epoch": 3}, "liveMigration": null});
        preparing.status(back).await?;
        preparing.grant(far()).await?;
        preparing.until_prepared().await?;
        preparing.shoots.delete("web", &DeleteParams::default()).await?;
        preparing.until_gone().await
    })
}

/// The removal belongs to no setting: the operator may switch preparations off at any time.
#[test]
fn a_seed_prepares_nothing_by_default_and_removes_what_it_has_prepared() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("no-preparation", false)).await?;
        let preparing = Preparing::new(ground).await?;
        preparing.grant(far()).await?;
        {
            let _gardenlet = preparing.gardenlet(&[])?;
            // The absence of a namespace can only be waited for.
            tokio::time::sleep(Duration::from_secs(5)).await;
            ensure!(preparing.namespaces.get_opt(NAMESPACE).await?.is_none());
        }
        {
            let _gardenlet = preparing.gardenlet(&[FLAG])?;
            preparing.until_prepared().await?;
        }
        let _gardenlet = preparing.gardenlet(&[])?;
        preparing.status(json!({"liveMigration": null})).await?;
        preparing.until_gone().await
    })
}

/// An earlier control plane of the shoot in this seed.
#[test]
fn a_namespace_that_was_not_prepared_stays_as_it_is() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("not-prepared", false)).await?;
        let preparing = Preparing::new(ground).await?;
        let labels = json!({"gardener.cloud/role": "shoot", "shoot.gardener.cloud/namespace": PROJECT,
            "shoot.gardener.cloud/name": "web"});
        let metadata = json!({"name": NAMESPACE, "labels": labels, "annotations": {SHOOT_UID: UID}});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        apply(&preparing.ground.client, namespace).await?;
        let _gardenlet = preparing.gardenlet(&[FLAG])?;
        preparing.grant(far()).await?;
        let condition = preparing.until_reported("PreparationFailed").await?;
        ensure!(condition.message.contains("was not prepared"), "{condition:?}");
        preparing.status(json!({"liveMigration": null})).await?;
        // The absence of a deletion can only be waited for.
        tokio::time::sleep(QUIET).await;
        let kept = preparing.namespaces.get(NAMESPACE).await?;
        ensure!(
            kept.metadata.deletion_timestamp.is_none(),
            "the namespace is deleted"
        );
        ensure!(prepared_in(&kept).is_none(), "the namespace is marked");
        Ok(())
    })
}

/// The gate of etcd admits the certificate of the destination for the time of the grant alone.
#[test]
fn a_source_lists_the_destination_at_its_gate_until_the_grant_ends() -> Result<()> {
    ground::story(8 << 20, async {
        let ground = Box::pin(Ground::start("prepared-source", false)).await?;
        let gate = FakeGate::default();
        let (source, _gardenlet) = Preparing::of_source(ground, &gate).await?;
        let grant = |expiry: Timestamp| source.grant_of_seeds(("seed-a", "seed-b"), 1, expiry);
        grant(far()).await?;
        let first = until_listed(&gate, 1).await?;
        let objects: Api<InternalSecret> = Api::namespaced(source.ground.client.clone(), PROJECT);
        eventually("the keys are issued", SOON, || async {
            let found = objects.list(&ListParams::default()).await;
            let found = found.map_err(|error| error.to_string())?.items;
            let is_issued = found
                .iter()
                .any(|object| object.name_any().starts_with("web.preparation-1-"));
            is_issued.then_some(()).ok_or_else(|| "there are none".to_owned())
        })
        .await?;
        // A later grant takes the place of the first grant.
        grant(far() + SignedDuration::from_hours(1)).await?;
        eventually("the later grant is listed", SOON, || async {
            let listed = gate.serials().unwrap_or_default();
            let is_later = listed.len() == 1 && listed != first;
            is_later.then_some(()).ok_or_else(|| format!("{listed:?}"))
        })
        .await?;
        source.status(json!({"liveMigration": null})).await?;
        until_listed(&gate, 0).await?;
        // A takeover: no process withdraws the grant.
        grant(far()).await?;
        until_listed(&gate, 1).await?;
        source.status(json!({"ownership": {"epoch": 2}})).await?;
        until_listed(&gate, 0).await?;
        Ok(())
    })
}

/// The serial numbers, once the gate has a list with that many.
async fn until_listed(gate: &FakeGate, count: usize) -> Result<Vec<String>> {
    eventually("the gate has the list", SOON, || async {
        let listed = gate.serials();
        let found = listed.clone().filter(|serials| serials.len() == count);
        found.ok_or_else(|| format!("{listed:?}"))
    })
    .await
}

struct Preparing {
    ground: Ground,
    shoots: Api<Shoot>,
    namespaces: Api<Namespace>,
}

impl Preparing {
    /// The shoot is on `seed-b` in epoch 3.
    async fn new(ground: Ground) -> Result<Self> {
        apply(&ground.client, the_shoot()).await?;
        let preparing = Self {
            shoots: ground.shoots.clone(),
            namespaces: Api::all(ground.client.clone()),
            ground,
        };
        let last = json!({"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "",
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        let status = json!({"seedName": "seed-b", "technicalID": NAMESPACE, "uid": UID, "ownership": {"epoch": 3},
            "lastOperation": last});
        preparing.status(status).await?;
        Ok(preparing)
    }

    /// The shoot is on `seed-a` in epoch 1, with the Secrets of a control plane and with this gate. The
    /// gardenlet ends with the returned set.
    async fn of_source(ground: Ground, gate: &FakeGate) -> Result<(Self, JoinSet<()>)> {
        let mut shoot = the_shoot();
        shoot["spec"]["seedName"] = json!("seed-a");
        apply(&ground.client, shoot).await?;
        let mut context = context(&ground.client, &[FLAG])?;
        let url = gate.start()?;
        context.settings = Arc::new(Settings {
            etcd_backup_url: UrlOf::new(move |_| url.clone()),
            ..context.config.settings()
        });
        let shoot = ground.shoots.get("web").await?;
        let last = json!({"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "",
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        let status = json!({"seedName": "seed-a", "technicalID": NAMESPACE, "uid": shoot.uid(),
            "ownership": {"epoch": 1}, "lastOperation": last, "observedGeneration": shoot.metadata.generation});
        let facts = Facts::new(
            context.garden.clone(),
            context.seed.clone(),
            Arc::clone(&context.settings),
            "seed-a",
            Arc::new(shoot),
            Operation::Create,
        );
        let facts = facts.await?;
        parts::Namespace::deploy(&facts).await?;
        Secrets::deploy(&facts).await?;
        let source = Self {
            shoots: ground.shoots.clone(),
            namespaces: Api::all(ground.client.clone()),
            ground,
        };
        source.status(status).await?;
        let mut gardenlet = JoinSet::new();
        gardenlet.spawn(Box::pin(shoot::run(Arc::new(context))));
        Ok((source, gardenlet))
    }

    /// Starts a gardenlet that ends with the returned set.
    fn gardenlet(&self, flags: &[&str]) -> Result<JoinSet<()>> {
        let mut gardenlet = JoinSet::new();
        let context = context(&self.ground.client, flags)?;
        gardenlet.spawn(Box::pin(shoot::run(Arc::new(context))));
        Ok(gardenlet)
    }

    async fn status(&self, status: Value) -> Result<()> {
        let status = Patch::Merge(json!({"status": status}));
        let params = PatchParams::default();
        self.shoots.patch_status("web", &params, &status).await?;
        Ok(())
    }

    /// A grant for the gardenlet in epoch 3, as garden-controller-manager writes the grant.
    async fn grant(&self, expiry: Timestamp) -> Result<()> {
        self.grant_of_seeds(("seed-b", "seed-a"), 3, expiry).await
    }

    /// A grant from a source to a destination.
    async fn grant_of_seeds(
        &self,
        (source, destination): (&str, &str),
        epoch: i64,
        expiry: Timestamp,
    ) -> Result<()> {
        let uid = self.shoots.get("web").await?.uid().context("a uid")?;
        let expiry = expiry.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let grant = json!({"uid": uid, "source": source, "destination": destination, "epoch": epoch,
            "expiry": expiry});
        let status = json!({"liveMigration": {"preparation": grant, "conditions": []}});
        self.status(status).await
    }

    /// The object with the keys for a grant with this expiry, as the source makes the object.
    async fn publish(&self, expiry: Timestamp) -> Result<()> {
        let shoot = self.shoots.get("web").await?;
        let data = PreparationState::data_keys().map(|key| (key, ByteString(b"x".to_vec())));
        let object: InternalSecret = serde_json::from_value(json!({
            "metadata": {"name": format!("web.preparation-3-{}", expiry.as_second()),
                "ownerReferences": [shoot.owner_ref(&())]},
            "type": "gardener.cloud/shoot-preparation", "immutable": true,
            "data": data.collect::<BTreeMap<_, _>>(),
        }))?;
        let objects: Api<InternalSecret> = Api::namespaced(self.ground.client.clone(), PROJECT);
        objects.create(&PostParams::default(), &object).await?;
        Ok(())
    }

    /// The BackupEntry for a grant with this expiry, as garden-controller-manager places the entry.
    async fn place_entry(&self, expiry: Timestamp) -> Result<()> {
        let client = &self.ground.client;
        let (shoot, seeds) = (self.shoots.get("web").await?, Api::<Seed>::all(client.clone()));
        let name = format!("prepared-3-{}-{NAMESPACE}--{UID}", expiry.as_second());
        let entry: BackupEntry = serde_json::from_value(json!({
            "metadata": {"name": name, "annotations": {(BACKUP_ENTRY_ASSIGNED_IN_EPOCH): "4"},
                "ownerReferences": [shoot.owner_ref(&())]},
            "spec": {"bucketName": seeds.get("seed-a").await?.uid(), "seedName": "seed-a"},
        }))?;
        let entries: Api<BackupEntry> = Api::namespaced(client.clone(), PROJECT);
        entries.create(&PostParams::default(), &entry).await?;
        Ok(())
    }

    /// Condition `Prepared` names the BackupEntry, and the seed has the keys.
    async fn until_entry_alone_is_missing(&self) -> Result<()> {
        self.until_condition(|found| {
            let message = &found.message;
            message.contains("has not placed BackupEntry") && !message.contains("InternalSecret")
        })
        .await
        .map(drop)
    }

    /// The Secrets that the seed has made for the preparation.
    async fn secrets(&self) -> Result<Vec<Secret>> {
        let secrets: Api<Secret> = Api::namespaced(self.ground.client.clone(), NAMESPACE);
        let found = secrets
            .list(&ListParams::default().labels(PREPARED_BY_GRANT))
            .await?;
        Ok(found.items)
    }

    async fn until_prepared(&self) -> Result<Namespace> {
        eventually("the namespace is prepared", SOON, || async {
            let found = self.namespaces.get_opt(NAMESPACE).await;
            let found = found.map_err(|error| error.to_string())?;
            let active = found.filter(|found| found.metadata.deletion_timestamp.is_none());
            active.ok_or_else(|| "there is none".to_owned())
        })
        .await
    }

    async fn until_gone(&self) -> Result<()> {
        let gone = testkit::measured("the namespace is gone", REPORT_WITHIN, |bound| {
            wait::until_gone(&self.namespaces, NAMESPACE, bound)
        });
        gone.await?;
        Ok(())
    }

    /// Condition `Prepared` with this reason.
    async fn until_reported(&self, reason: &str) -> Result<Condition> {
        self.until_condition(|found| found.reason == reason).await
    }

    async fn until_condition(&self, holds: impl Fn(&Condition) -> bool) -> Result<Condition> {
        eventually("the seed reports", REPORT_WITHIN, || async {
            let shoot = self.shoots.get("web").await.map_err(|error| error.to_string())?;
            let status = shoot.status.unwrap_or_default();
            let conditions = status.live_migration.unwrap_or_default().conditions;
            let found = find_condition(&conditions, PREPARED).cloned();
            let found = found.filter(&holds);
            found.ok_or_else(|| format!("{conditions:?}"))
        })
        .await
    }
}

fn keys_of(secret: &Secret) -> usize {
    secret.data.as_ref().map_or(0, BTreeMap::len)
}

fn far() -> Timestamp {
    clock::now() + SignedDuration::from_hours(1)
}

fn the_shoot() -> Value {
    json!({"apiVersion": CORE, "kind": "Shoot", "metadata": {"name": "web", "namespace": PROJECT},
        "spec": {"cloudProfile": {"name": "local"}, "region": "local", "seedName": "seed-b",
            "kubernetes": {"version": "1.34.4"}, "provider": {"type": "local"}}})
}
