//! etcd-main of a seed that took its shoot back and lost the shoot again, on a real API server (R17-46). An
//! annotation of the Etcd and of the namespace distinguishes an etcd that was stopped for the lost epoch from
//! a hibernated etcd.

#![allow(clippy::unwrap_used)]

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    thread,
};

use anyhow::Result;
use api::{
    constants::{OWNERSHIP_EPOCH, STOPPED_FOR_EPOCH},
    druid::Etcd,
    gardencore::Shoot,
};
use k8s_openapi::api::core::v1;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use parts::{
    Backups, Deploy, EndedEtcd, Etcds, Facts, Namespace, Operation, Secrets, Settings, Sleep, UrlOf,
};
use serde_json::{Value, json};

use parts_fixture::{NAMESPACE, OF_SEED, PROJECT, World};

const CORE: &str = "core.gardener.cloud/v1beta1";
/// The last revision of the etcd of epoch 3.
const LAST_REVISION: i64 = 9;

struct Subject {
    world: World,
    settings: Settings,
}

#[tokio::test]
async fn an_etcd_that_was_stopped_for_a_lost_epoch_does_not_count_as_hibernated() -> Result<()> {
    let subject = Box::pin(Subject::start()).await?;
    Box::pin(subject.stopped_for_a_lost_epoch()).await?;
    Box::pin(subject.without_the_annotation_of_the_etcd()).await?;
    Box::pin(subject.saved()).await?;
    Box::pin(subject.started_in_the_next_epoch()).await?;
    Box::pin(subject.hibernated()).await?;
    Box::pin(subject.stopped_by_an_older_gardenlet_or_a_user()).await
}

impl Subject {
    /// etcd-main runs in epoch 3.
    async fn start() -> Result<Self> {
        let world = World::start("former-seed").await?;
        let secret = |name| json!({"apiVersion": "v1", "kind": "Secret", "namespace": OF_SEED, "name": name});
        let dns =
            json!({"type": "local", "domain": "internal.example.test", "credentialsRef": secret("dns")});
        let seed = json!({"spec": {
            "provider": {"type": "local", "region": "local"}, "dns": {"internal": dns},
            "backup": {"provider": "local", "region": "local", "credentialsRef": secret("backup")},
            "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
            "settings": {"ownerChecks": {"enabled": true}},
        }});
        world.apply(CORE, "Seed", None, "seed-a", seed).await?;
        let identity = Patch::Merge(json!({"status": {"clusterIdentity": "seed-a-uid"}}));
        let seeds = world.any(CORE, "Seed", None);
        let params = PatchParams::default();
        seeds.patch_status("seed-a", &params, &identity).await?;

        let port = serve_final_snapshot()?;
        let settings = Settings {
            etcd_backup_url: UrlOf::new(move |_| format!("http://127.0.0.1:{port}")),
            ..Settings::default()
        };
        let subject = Self { world, settings };
        // In the creation, the Secrets may be new.
        let created = json!({"epoch": 1, "phase": "Held"});
        let facts = subject.facts(Operation::Reconcile, "Create", created).await?;
        Namespace::deploy(&facts).await?;
        Secrets::deploy(&facts).await?;
        let held = json!({"epoch": 3, "phase": "Held"});
        let facts = subject.facts(Operation::Reconcile, "Reconcile", held).await?;
        let bucket = json!({"metadata": {"name": "etcd-backup"}, "stringData": {"bucketName": "backups"}});
        let secrets = subject.world.any("v1", "Secret", Some(NAMESPACE));
        let bucket = serde_json::from_value(bucket)?;
        secrets.create(&PostParams::default(), &bucket).await?;
        Etcds::deploy(&facts).await?;
        assert_eq!(subject.state().await?, (3, 1, None));
        Ok(subject)
    }

    /// A user stops the woken etcd, and this stop is no hibernation either.
    async fn stopped_for_a_lost_epoch(&self) -> Result<()> {
        let facts = self.takes_back(5, 3).await?;
        for _ in 0..2 {
            EndedEtcd::stop(&facts).await?;
            assert_eq!(self.state().await?, (3, 0, Some("5".to_owned())));
        }
        for _ in 0..2 {
            let why = Backups::save_what_is_left(&facts.residency, 5)
                .await
                .unwrap_err()
                .to_string();
            assert!(why.contains("stopped for ownership epoch 5"), "{why}");
            EndedEtcd::wake_to_save(&facts.residency, 5, true).await?;
            assert_eq!(self.state().await?, (3, 1, Some("5".to_owned())));
            self.scale_to_zero("kubectl").await?;
        }
        // The seed gets the shoot for the third time while the etcd runs to be saved.
        EndedEtcd::wake_to_save(&facts.residency, 5, true).await?;
        let facts = self.takes_back(7, 3).await?;
        EndedEtcd::stop(&facts).await?;
        assert_eq!(self.state().await?, (3, 0, Some("7".to_owned())));
        Ok(())
    }

    /// A user removes the annotation of the stopped Etcd, and the shoot is hibernated. The annotation of the
    /// namespace keeps the changes.
    async fn without_the_annotation_of_the_etcd(&self) -> Result<()> {
        let facts = self.takes_back(7, 3).await?;
        let etcds: Api<Etcd> = Api::namespaced(self.world.client(), NAMESPACE);
        let removal = Patch::Merge(json!({"metadata": {"annotations": {STOPPED_FOR_EPOCH: null}}}));
        etcds
            .patch("etcd-main", &PatchParams::default(), &removal)
            .await?;
        assert_eq!(self.state().await?, (3, 0, None));
        assert_eq!(self.namespace_annotation().await?.as_deref(), Some("7"));
        let unsaved = Backups::save_what_is_left(&facts.residency, 7).await.unwrap_err();
        assert!(
            unsaved.to_string().contains("stopped for ownership epoch 7"),
            "{unsaved}"
        );
        EndedEtcd::wake_to_save(&facts.residency, 7, true).await?;
        assert_eq!(self.state().await?, (3, 1, None));
        Ok(())
    }

    async fn saved(&self) -> Result<()> {
        let facts = self.takes_back(7, 3).await?;
        EndedEtcd::wake_to_save(&facts.residency, 7, true).await?;
        let end = Backups::save_what_is_left(&facts.residency, 7).await?.unwrap();
        assert_eq!((end.epoch, end.revision), (3, LAST_REVISION));
        assert_eq!(self.state().await?, (3, 1, None));
        assert_eq!(self.namespace_annotation().await?, None);
        Ok(())
    }

    /// The mark ends with the start, so that a later hibernation is no loss.
    async fn started_in_the_next_epoch(&self) -> Result<()> {
        let facts = self.takes_back(9, 3).await?;
        EndedEtcd::stop(&facts).await?;
        assert_eq!(self.state().await?, (3, 0, Some("9".to_owned())));
        for _ in 0..2 {
            Etcds::deploy(&facts).await?;
            assert_eq!(self.state().await?, (9, 1, None));
        }
        Ok(())
    }

    /// The flow has stored all data. The seed loses the shoot, takes the shoot back, and loses the shoot
    /// again.
    async fn hibernated(&self) -> Result<()> {
        Etcds::sleep(&self.owns(9).await?).await?;
        let facts = self.takes_back(11, 9).await?;
        EndedEtcd::stop(&facts).await?;
        for residency_epoch in [9, 11] {
            EndedEtcd::wake_to_save(&facts.residency, residency_epoch, true).await?;
            assert_eq!(self.state().await?, (9, 0, None));
            let end = Backups::save_what_is_left(&facts.residency, residency_epoch).await?;
            assert_eq!(end, None);
        }
        Ok(())
    }

    /// A stop without the annotation: while the shoot sleeps, the stop counts as a hibernation.
    async fn stopped_by_an_older_gardenlet_or_a_user(&self) -> Result<()> {
        for manager in ["gardenlet", "kubectl"] {
            Etcds::deploy(&self.owns(9).await?).await?;
            self.scale_to_zero(manager).await?;
            let facts = self.takes_back(11, 9).await?;
            EndedEtcd::stop(&facts).await?;
            assert_eq!(self.state().await?, (9, 0, None), "{manager}");
            EndedEtcd::wake_to_save(&facts.residency, 11, true).await?;
            assert_eq!(self.state().await?, (9, 0, None), "{manager}");
            EndedEtcd::wake_to_save(&facts.residency, 11, false).await?;
            assert_eq!(self.state().await?, (9, 1, None), "{manager}");
        }
        Ok(())
    }

    /// The seed owns the shoot in this epoch.
    async fn owns(&self, epoch: i64) -> Result<Facts> {
        let record = json!({"epoch": epoch, "phase": "Held"});
        self.facts(Operation::Reconcile, "Reconcile", record).await
    }

    /// The seed, with data of epoch `data`, gets the shoot in the epoch `epoch`.
    async fn takes_back(&self, epoch: i64, data: i64) -> Result<Facts> {
        let source = json!({"name": "seed-a", "epoch": data});
        let record = json!({"epoch": epoch, "phase": "Claiming", "source": source});
        self.facts(Operation::Restore, "Restore", record).await
    }

    async fn facts(&self, operation: Operation, type_: &str, record: Value) -> Result<Facts> {
        let last = json!({"type": type_, "state": "Processing", "progress": 1, "description": "",
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        let shoots: Api<Shoot> = Api::namespaced(self.world.client(), PROJECT);
        let params = PatchParams::default();
        for status in [
            json!({"ownership": null}),
            json!({"seedName": "seed-a", "ownership": record, "lastOperation": last}),
        ] {
            let status = Patch::Merge(json!({"status": status}));
            shoots.patch_status("web", &params, &status).await?;
        }
        Box::pin(self.world.facts(operation, self.settings.clone())).await
    }

    /// Patches the replicas, like a user or a gardenlet without the annotation.
    async fn scale_to_zero(&self, manager: &str) -> Result<()> {
        let etcds: Api<Etcd> = Api::namespaced(self.world.client(), NAMESPACE);
        let params = PatchParams {
            field_manager: Some(manager.to_owned()),
            ..PatchParams::default()
        };
        let stop = Patch::Merge(json!({"spec": {"replicas": 0}}));
        etcds.patch("etcd-main", &params, &stop).await?;
        Ok(())
    }

    /// The annotation of the stop on the namespace.
    async fn namespace_annotation(&self) -> Result<Option<String>> {
        let namespaces: Api<v1::Namespace> = Api::all(self.world.client());
        let namespace = namespaces.get(NAMESPACE).await?;
        Ok(namespace.annotations().get(STOPPED_FOR_EPOCH).cloned())
    }

    /// Epoch of the data, replicas, and the annotation of the stop on the Etcd.
    async fn state(&self) -> Result<(i64, i32, Option<String>)> {
        let etcd: Etcd = self.world.read("etcd-main").await?;
        let annotations = etcd.annotations();
        let epoch = annotations
            .get(OWNERSHIP_EPOCH)
            .map_or(Ok(1), |epoch| epoch.parse())?;
        let stopped_for = annotations.get(STOPPED_FOR_EPOCH).cloned();
        Ok((epoch, etcd.spec.replicas, stopped_for))
    }
}

/// A fake etcd-backup-restore with the final snapshot of epoch 3, until the end of the test process.
fn serve_final_snapshot() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let snapshot = json!({"isFinal": true, "verified": true, "lastRevision": LAST_REVISION,
        "etcdRevision": LAST_REVISION, "epoch": 3, "snapName": "Full-final", "sha256": "0".repeat(64)});
    let body = json!({"finished": true, "fullSnapshot": snapshot}).to_string();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // The answer comes after the head of the request; the requests here have no body.
            let head = BufReader::new(&stream).lines().map_while(Result::ok);
            head.take_while(|line| !line.is_empty()).for_each(drop);
            // A client that has gone needs no answer.
            stream.write_all(answer.as_bytes()).ok();
        }
    });
    Ok(port)
}
