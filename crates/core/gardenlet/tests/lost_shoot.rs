//! A gardenlet creates a shoot only while its seed owns the shoot, and starts no operation in an epoch that
//! was lost (R17-60, R17-61). A real API server serves as garden and seed, and the name server is real. The
//! test fakes the provider of the owner record.

#![allow(clippy::unwrap_used, clippy::panic, clippy::large_futures)]

mod ground;

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use api::{
    constants::{
        CONFIRMATION_DELETION, CONFIRMATION_FORCE_DELETION, LEFT_IN_EPOCH, OPERATION, OWNERSHIP_EPOCH,
        SHOOT_UID,
    },
    extensions::{Cluster, DNSRecord},
    gardencore::{BackupEntry, Shoot},
    meta::{LastOperation, LastOperationState as State},
};
use gardenlet::shoot;
use k8s_openapi::api::{core::v1::Namespace, events::v1::Event};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use runtime::{
    client::wait::{self, WaitState},
    clock,
};
use serde_json::{Value, json};
use testkit::{ControlPlane, NameServer, apply, eventually};
use tokio::task::JoinSet;

use ground::{CORE, DNS_ZONE, Ground, NAMESPACE, OURS, PROJECT, SOON, context::context};

const OWNER: &str = "owner.web.dev.internal.example.test";
const EPOCH: &str = "epoch.owner.web.dev.internal.example.test";
/// UID of a seed without a gardenlet here.
const THEIRS: &str = "seed-b-uid";
/// Longer than a gardenlet needs to start a requested operation.
const QUIET: Duration = Duration::from_secs(5);

struct World {
    _plane: ControlPlane,
    client: Client,
    dns: NameServer,
    shoots: Api<Shoot>,
    records: Api<DNSRecord>,
}

/// The stack is that of the threads of a gardenlet (`runtime::process::run`).
#[test]
fn nothing_is_done_for_a_shoot_that_is_lost() -> Result<()> {
    ground::story(8 << 20, async {
        let world = Box::pin(World::start()).await?;
        world.says(Some((THEIRS, 1))).await?;
        let _gardenlet = world.gardenlet()?;
        Box::pin(world.record_of_an_earlier_shoot()).await?;
        Box::pin(world.lost_while_it_is_created()).await?;
        Box::pin(world.stays_lost()).await?;
        Box::pin(world.begins_in_a_later_epoch()).await
    })
}

/// The owner checks for a shoot that is deleted together with its record.
#[test]
fn a_deletion_ends_although_its_record_goes_and_begins_for_who_has_the_shoot_alone() -> Result<()> {
    ground::story(8 << 20, async {
        let world = Box::pin(World::start()).await?;
        Box::pin(world.its_own_record_goes()).await?;
        apply(&world.client, the_shoot()).await?;
        Box::pin(world.force_is_of_no_use_for_what_is_lost()).await
    })
}

/// The seed was deleted after a takeover, and its cluster has come back: the gardenlet reports the control
/// plane that nothing cleans up, and changes no object.
#[test]
fn a_seed_that_the_status_has_forgotten_says_so() -> Result<()> {
    ground::story(8 << 20, async {
        let world = Box::pin(World::start()).await?;
        world.made().await?;
        Box::pin(world.forgets_this_seed()).await
    })
}

/// The shoot was taken over and deleted while this seed was away.
#[test]
fn a_seed_cleans_up_after_a_shoot_that_is_gone_only_with_proof() -> Result<()> {
    ground::story(8 << 20, async {
        let world = Box::pin(World::start()).await?;
        world.made().await?;
        Box::pin(world.is_deleted_elsewhere()).await
    })
}

impl World {
    async fn start() -> Result<Self> {
        let ground = Box::pin(Ground::start("lost-shoot", true)).await?;
        apply(&ground.client, the_shoot()).await?;
        Ok(Self {
            _plane: ground.plane,
            records: Api::namespaced(ground.client.clone(), NAMESPACE),
            client: ground.client,
            dns: ground.dns,
            shoots: ground.shoots,
        })
    }

    /// Starts a gardenlet that ends with the returned set.
    fn gardenlet(&self) -> Result<JoinSet<()>> {
        let mut gardenlet = JoinSet::new();
        gardenlet.spawn(Box::pin(shoot::run(Arc::new(context(&self.client, &[])?))));
        Ok(gardenlet)
    }

    async fn says(&self, owner: Option<(&str, i64)>) -> Result<()> {
        self.say(owner.map(|(identity, _)| identity), owner.map(|(_, epoch)| epoch))
            .await
    }

    async fn say(&self, identity: Option<&str>, epoch: Option<i64>) -> Result<()> {
        let epoch = epoch.map(|epoch| epoch.to_string());
        let (identity, epoch) = (Vec::from_iter(identity), Vec::from_iter(epoch.as_deref()));
        let names: [(&str, &[&str]); 2] = [(OWNER, &identity), (EPOCH, &epoch)];
        self.dns.write_texts(DNS_ZONE, &names).await
    }

    /// The gardenlet starts no operation while the record of an earlier shoot of this name exists. After the
    /// removal of that record the gardenlet creates the shoot, because the garden names this seed: the record
    /// of this seed does not exist yet.
    async fn record_of_an_earlier_shoot(&self) -> Result<()> {
        let refused = format!(
            "cannot tell that it has the shoot, in ownership epoch 1: the owner record names {THEIRS}"
        );
        self.until_error(&refused).await?;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        ensure!(
            namespaces.get_opt(NAMESPACE).await?.is_none(),
            "something was begun"
        );
        ensure!(self.events().await?.is_empty(), "nothing was lost");
        self.says(None).await?;
        self.until_record_of("1").await
    }

    /// The running operation ends, and the Shoot reports the loss once.
    async fn lost_while_it_is_created(&self) -> Result<()> {
        self.says(Some((OURS, 1))).await?;
        self.write_record().await?;
        // Only the epoch: a reader of two names in sequence could see the new identity in the epoch of this
        // seed.
        self.says(Some((OURS, 2))).await?;
        let last = self
            .until_error("seed seed-a has lost the shoot in ownership epoch 1: epoch 2 has begun")
            .await?;
        ensure!(last.state == State::Error, "{last:?}");
        ensure!(!last.description.contains("retried"), "{last:?}");
        let told = eventually("it is told by an Event", SOON, || async {
            let found = self.events().await.map_err(|error| error.to_string())?;
            if found.is_empty() {
                Err("there is none".to_owned())
            } else {
                Ok(found)
            }
        });
        let told = told.await?;
        let note = told[0].note.clone().unwrap_or_default();
        ensure!(note.contains("epoch 2 has begun"), "{note}");
        Ok(())
    }

    /// R17-49: neither a later record that names this seed nor a request by a user revives the epoch.
    async fn stays_lost(&self) -> Result<()> {
        self.says(Some((OURS, 1))).await?;
        let before = self.last().await?;
        let ask = json!({"metadata": {"annotations": {OPERATION: "reconcile"}}});
        let params = PatchParams::default();
        self.shoots.patch("web", &params, &Patch::Merge(ask)).await?;
        self.until("the request is not heard", |shoot| {
            !shoot.annotations().contains_key(OPERATION)
        })
        .await?;
        // The absence of a change can only be waited for.
        tokio::time::sleep(QUIET).await;
        let after = self.last().await?;
        ensure!(after == before, "{after:?}");
        let events = self.events().await?;
        ensure!(events.len() == 1, "{events:?}");
        let repeated = events[0].series.as_ref().map(|series| series.count);
        ensure!(repeated.is_none(), "it was told {repeated:?} times");
        Ok(())
    }

    async fn begins_in_a_later_epoch(&self) -> Result<()> {
        let epoch = json!({"status": {"ownership": {"epoch": 3}}});
        let params = PatchParams::default();
        self.shoots
            .patch_status("web", &params, &Patch::Merge(epoch))
            .await?;
        self.until_record_of("3").await
    }

    /// A deletion acts under the permit of the owner until the record is removed. A gardenlet that reads DNS
    /// between the removal of the two names gets the answer of the garden: the seed has the shoot. The shoot
    /// is not lost, and the deletion ends.
    async fn its_own_record_goes(&self) -> Result<()> {
        self.made().await?;
        let held = json!({"metadata": {"finalizers": ["test.example/provider"]}});
        self.change_record(held).await?;
        self.deleted(json!({CONFIRMATION_DELETION: "true"})).await?;
        let _gardenlet = self.gardenlet()?;
        let look = |record: Option<&DNSRecord>| match record {
            Some(record) if record.metadata.deletion_timestamp.is_none() => {
                WaitState::Wait("the owner record is not deleted".to_owned())
            }
            _ => WaitState::Done,
        };
        let deleted = testkit::measured("the owner record is deleted", SOON, |bound| {
            wait::until(&self.records, "web-owner", bound, look)
        });
        deleted.await?;
        // The identity is removed first. The garden reports that this seed has the shoot, so the deletion
        // continues.
        self.say(None, Some(1)).await?;
        self.say(None, None).await?;
        self.change_record(json!({"metadata": {"finalizers": null}}))
            .await?;
        testkit::measured("the object is gone", SOON, |bound| {
            wait::until_gone(&self.shoots, "web", bound)
        })
        .await?;
        self.namespace_is_gone().await?;
        ensure!(self.events().await?.is_empty(), "nothing was lost");
        Ok(())
    }

    /// R17-61: a forced deletion of a lost shoot removes no object, reports the reason, and continues in a
    /// later epoch.
    async fn force_is_of_no_use_for_what_is_lost(&self) -> Result<()> {
        self.made().await?;
        self.says(Some((THEIRS, 2))).await?;
        self.deleted(json!({CONFIRMATION_DELETION: "true", CONFIRMATION_FORCE_DELETION: "true"}))
            .await?;
        let _gardenlet = self.gardenlet()?;
        let says = "seed seed-a has lost the shoot in ownership epoch 1: epoch 2 has begun";
        let last = self.until_error(says).await?;
        ensure!(last.state == State::Error, "{last:?}");
        self.until_error("the shoot needs a later epoch; see Event OwnershipLost")
            .await?;
        // The absence of a change can only be waited for.
        tokio::time::sleep(QUIET).await;
        let record = self.records.get("web-owner").await?;
        ensure!(
            record.metadata.deletion_timestamp.is_none(),
            "the record was taken away"
        );
        let namespace = Api::<Namespace>::all(self.client.clone()).get(NAMESPACE).await?;
        ensure!(
            namespace.metadata.deletion_timestamp.is_none(),
            "the namespace was taken away"
        );

        let epoch = Patch::Merge(json!({"status": {"ownership": {"epoch": 3}}}));
        let params = PatchParams::default();
        self.shoots.patch_status("web", &params, &epoch).await?;
        testkit::measured("the object is gone", SOON, |bound| {
            wait::until_gone(&self.shoots, "web", bound)
        })
        .await?;
        self.namespace_is_gone().await
    }

    async fn forgets_this_seed(&self) -> Result<()> {
        let (params, elsewhere) = (PatchParams::default(), json!({"seedName": "seed-b"}));
        let status = Patch::Merge(json!({"status": elsewhere}));
        self.shoots.patch_status("web", &params, &status).await?;
        let spec = Patch::Merge(json!({"spec": elsewhere}));
        self.shoots.patch("web", &params, &spec).await?;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let before = namespaces.get(NAMESPACE).await?;
        let _gardenlet = self.gardenlet()?;
        let told = self.report_on_namespace("ShootElsewhere").await?;
        ensure!(told.contains("runs in seed \"seed-b\""), "{told}");
        let after = namespaces.get(NAMESPACE).await?;
        ensure!(after.metadata == before.metadata, "the namespace was changed");
        Ok(())
    }

    /// Without proof the gardenlet reports the possible causes and changes no object. A BackupEntry of a
    /// later epoch, in deletion, is the proof.
    async fn is_deleted_elsewhere(&self) -> Result<()> {
        self.deleted(json!({CONFIRMATION_DELETION: "true"})).await?;
        let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        self.shoots.patch("web", &PatchParams::default(), &free).await?;
        testkit::measured("the object is gone", SOON, |bound| {
            wait::until_gone(&self.shoots, "web", bound)
        })
        .await?;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let before = namespaces.get(NAMESPACE).await?;
        let mut gardenlet = self.gardenlet()?;
        let told = self.report_on_namespace("ShootMissing").await?;
        for part in [
            "deleted or taken over while this seed was away",
            "old backup",
            LEFT_IN_EPOCH,
        ] {
            ensure!(told.contains(part), "{told}");
        }
        let after = namespaces.get(NAMESPACE).await?;
        ensure!(after.metadata == before.metadata, "the namespace was changed");
        gardenlet.shutdown().await;

        let uid = before.annotations().get(SHOOT_UID).context("a uid")?;
        let name = format!("{NAMESPACE}--{uid}");
        let meta = json!({"name": name, "namespace": PROJECT, "finalizers": ["test.example/grace"],
            "annotations": {(OWNERSHIP_EPOCH): "2"}});
        let spec = json!({"bucketName": "bucket", "seedName": "seed-b"});
        let entry = json!({"apiVersion": CORE, "kind": "BackupEntry", "metadata": meta, "spec": spec});
        apply(&self.client, entry).await?;
        let entries: Api<BackupEntry> = Api::namespaced(self.client.clone(), PROJECT);
        entries.delete(&name, &DeleteParams::default()).await?;
        // The entry is older than the last operation in this seed.
        let created = entries.get(&name).await?.metadata.creation_timestamp;
        let clusters: Api<Cluster> = Api::all(self.client.clone());
        let last = json!({"description": "d", "lastUpdateTime": created, "progress": 100, "state": "Succeeded",
            "type": "Reconcile"});
        let known = Patch::Merge(json!({"spec": {"shoot": {"status": {"lastOperation": last}}}}));
        clusters.patch(NAMESPACE, &PatchParams::default(), &known).await?;
        let _gardenlet = self.gardenlet()?;
        // The provider of the DNSRecord does not run, so the clean-up does not end.
        eventually("the clean-up begins", SOON, || async {
            let namespace = namespaces.get(NAMESPACE).await?;
            let mark = namespace.annotations().get(LEFT_IN_EPOCH);
            ensure!(mark.is_some_and(|mark| mark == "1"), "the mark is {mark:?}");
            let cluster = clusters.get(NAMESPACE).await?;
            let host = &cluster.spec.shoot.0["status"]["seedName"];
            ensure!(host == "unknown", "the Cluster names {host}");
            anyhow::Ok(())
        })
        .await?;
        let told = self.report_on_namespace("ShootDeletedElsewhere").await?;
        ensure!(told.contains("taken over by seed seed-b"), "{told}");
        Ok(())
    }

    /// Waits for an Event on a namespace with this reason.
    async fn report_on_namespace(&self, reason: &str) -> Result<String> {
        let events: Api<Event> = Api::all(self.client.clone());
        eventually("an Event on the namespace", SOON, || async {
            let all = events.list(&ListParams::default()).await?.items;
            let is_report = |event: &Event| event.reason.as_deref() == Some(reason);
            let report = all.into_iter().find(is_report);
            let report = report.with_context(|| format!("there is no {reason}"))?;
            anyhow::Ok(report.note.unwrap_or_default())
        })
        .await
    }

    /// A first gardenlet has started the creation and ended, and the owner record is published.
    async fn made(&self) -> Result<()> {
        let mut gardenlet = self.gardenlet()?;
        self.until_record_of("1").await?;
        self.says(Some((OURS, 1))).await?;
        self.write_record().await?;
        gardenlet.shutdown().await;
        Ok(())
    }

    /// Deletes the Shoot as its user does, with these annotations.
    async fn deleted(&self, annotations: Value) -> Result<()> {
        let patch = json!({"metadata": {"annotations": annotations}});
        let params = PatchParams::default();
        self.shoots.patch("web", &params, &Patch::Merge(patch)).await?;
        self.shoots.delete("web", &DeleteParams::default()).await?;
        let left = self.shoots.get("web").await?;
        ensure!(
            left.metadata.deletion_timestamp.is_some(),
            "nobody holds it: {left:?}"
        );
        Ok(())
    }

    async fn change_record(&self, patch: Value) -> Result<()> {
        let params = PatchParams::default();
        self.records
            .patch("web-owner", &params, &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    async fn namespace_is_gone(&self) -> Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let left = namespaces.get_opt(NAMESPACE).await?;
        ensure!(left.is_none(), "the namespace is left");
        Ok(())
    }

    /// Reports success of the owner record, as the provider does.
    async fn write_record(&self) -> Result<()> {
        let record = self.records.get("web-owner").await?;
        ensure!(record.spec.values == [OURS], "{:?}", record.spec.values);
        let params = PatchParams::default();
        let begun = json!({"metadata": {"annotations": {OPERATION: null}}});
        let begun = self
            .records
            .patch("web-owner", &params, &Patch::Merge(begun))
            .await?;
        let done = json!({"status": {"observedGeneration": begun.metadata.generation, "lastOperation": {
            "type": "Create", "state": "Succeeded", "progress": 100, "description": "",
            "lastUpdateTime": clock::now_k8s()}}});
        self.records
            .patch_status("web-owner", &params, &Patch::Merge(done))
            .await?;
        Ok(())
    }

    async fn until_record_of(&self, epoch: &str) -> Result<()> {
        let look = |record: Option<&DNSRecord>| {
            let of = record.and_then(|record| record.annotations().get(OWNERSHIP_EPOCH));
            if of.is_some_and(|of| of == epoch) {
                WaitState::Done
            } else {
                WaitState::Wait(format!("the owner record is of epoch {of:?}"))
            }
        };
        let seen = testkit::measured("the owner record has the epoch", SOON, |bound| {
            wait::until(&self.records, "web-owner", bound, look)
        });
        seen.await?;
        Ok(())
    }

    async fn until(&self, why: &str, holds: impl Fn(&Shoot) -> bool + Send + Sync) -> Result<Shoot> {
        ground::until(&self.shoots, why, holds).await
    }

    /// Waits until the single error contains `part`, and returns the last operation.
    async fn until_error(&self, part: &str) -> Result<LastOperation> {
        let told = self.until(part, |shoot| {
            let status = shoot.status.as_ref();
            status.is_some_and(
                |status| matches!(status.last_errors.as_slice(), [only] if only.description.contains(part)),
            )
        });
        last_of(&told.await?)
    }

    async fn last(&self) -> Result<LastOperation> {
        last_of(&self.shoots.get("web").await?)
    }

    async fn events(&self) -> Result<Vec<Event>> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), PROJECT);
        let all = events.list(&ListParams::default()).await?;
        let lost = |event: &Event| event.reason.as_deref() == Some("OwnershipLost");
        Ok(all.into_iter().filter(lost).collect())
    }
}

fn last_of(shoot: &Shoot) -> Result<LastOperation> {
    let last = shoot
        .status
        .as_ref()
        .and_then(|status| status.last_operation.clone());
    last.context("a last operation")
}

fn the_shoot() -> Value {
    json!({"apiVersion": CORE, "kind": "Shoot", "metadata": {"name": "web", "namespace": PROJECT},
        "spec": {"cloudProfile": {"name": "local"}, "region": "local", "seedName": "seed-a",
            "kubernetes": {"version": "1.34.4"}, "provider": {"type": "local"}}})
}
