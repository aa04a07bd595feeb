//! Without the permit no request leaves the process, and running work stops after the request in progress.

use crate::lab::{BUCKET, EtcdServer, Gate, Lab, eventually, noise, set_tls_provider};
use etcd_backup_restore::compression::Compression;
use etcd_backup_restore::error::Class;
use etcd_backup_restore::etcd::EtcdConfig;
use etcd_backup_restore::garbage::Policy;
use etcd_backup_restore::schedule::Schedule;
use etcd_backup_restore::snapshot_name::{Kind, Snapshot};
use etcd_backup_restore::snapshotter::{Settings, Snapshotter};
use etcd_backup_restore::store::{Provider, Store, StoreConfig};
use permit::{Clock, Issuer, Permit};
use sidecar_protocol::SnapshotterPhase;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const HOUR: Duration = Duration::from_secs(60 * 60);

fn right() -> Issuer {
    let clock = Clock::default();
    let until = clock.now() + HOUR;
    Issuer::new("the lock of a test", clock, until)
}

fn store(lab: &Lab, gate: &Gate, permit: Permit) -> Store {
    set_tls_provider();
    let config = StoreConfig {
        provider: Provider::S3,
        container: BUCKET.to_owned(),
        prefix: "p".to_owned(),
        credentials_dir: Some(lab.credentials()),
        endpoint: Some(gate.endpoint.clone()),
        permit,
    };
    Store::new(config).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_loses_its_right_sends_no_other_part_and_never_appears() {
    let lab = Lab::new();
    let gate = Gate::before(&lab.s3.endpoint).await;
    let issuer = right();
    let store = Arc::new(store(&lab, &gate, issuer.permit()));
    let snapshot = Snapshot::new(Kind::Full, (0, 9), Compression::None, false);
    let mut upload = store.upload(&snapshot).unwrap();
    // The upload begins, and its first part is stored.
    upload.write(&noise(1, 18 << 20)).await.unwrap();
    eventually("parts are sent", async || (gate.requests() > 1).then_some(())).await;
    gate.hold("PUT ");
    let mut writing = JoinSet::new();
    writing.spawn(async move {
        let written = upload.write(&noise(2, 40 << 20)).await;
        upload.abort().await;
        written
    });
    // As many requests as are sent in parallel: no further request is in transfer.
    gate.are_held(2).await;
    let seen = gate.requests();
    issuer.end("another holds it");
    let written = writing.join_next().await.unwrap().unwrap();
    assert_eq!(written.unwrap_err().class, Class::NotPermitted);
    // Neither the rest of the upload, nor its removal, nor a new request.
    gate.release();
    let refused = [
        store.list().await.map(drop).unwrap_err(),
        store.delete(&snapshot).await.unwrap_err(),
        store.put_note("n", Vec::new()).await.unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.class, Class::NotPermitted, "{error}");
        assert!(error.message.contains("another holds it"), "{error}");
    }
    assert_eq!(gate.requests(), seen);
    assert!(lab.objects("p").is_empty());
    // A process with the permit can use the store.
    let other = self::store(&lab, &gate, right().permit());
    let regained = other.list().await;
    assert_eq!(
        regained.unwrap_err().class,
        Class::NotPermitted,
        "its issuer is gone"
    );
    let holder = right();
    let other = self::store(&lab, &gate, holder.permit());
    assert!(other.list().await.unwrap().is_empty());
    assert!(gate.requests() > seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_process_that_loses_its_right_asks_neither_store_nor_etcd_again() {
    let lab = Lab::new();
    let gate = Gate::before(&lab.s3.endpoint).await;
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.put_key("/a", "1").await;
    let issuer = right();
    let settings = Settings {
        etcd: EtcdConfig::plain(etcd.endpoint.clone(), Duration::from_secs(30), issuer.permit()),
        store: Arc::new(store(&lab, &gate, issuer.permit())),
        compression: Compression::None,
        schedule: Schedule::parse("0 0 29 2 *").unwrap(),
        full_window: HOUR,
        delta_period: HOUR,
        delta_limit: 10 << 20,
        policy: Policy::LimitBased,
        max_backups: 7,
        gc_period: HOUR,
    };
    let (snapshotter, handle) = Snapshotter::new(settings);
    let mut running = JoinSet::new();
    // Not under a guard: the task keeps trying, like code that forgot its guard.
    running.spawn(snapshotter.run(CancellationToken::new()));
    eventually("snapshots are taken", async || {
        (handle.state.health().0 == SnapshotterPhase::Active).then_some(())
    })
    .await;
    etcd.put_key("/a", "2").await;
    assert!(handle.delta().await.unwrap().is_some());
    let objects = lab.objects("p");
    issuer.end("another holds it");
    let seen = gate.requests();
    etcd.put_key("/a", "3").await;
    let refused = handle.full().await.unwrap_err();
    assert_eq!(refused.class, Class::NotPermitted, "{refused}");
    assert!(handle.delta().await.is_err());
    let refused = handle.finish().await.unwrap_err();
    assert_eq!(refused.class, Class::NotPermitted, "{refused}");
    // A new session begins after the failure, and is refused too.
    eventually("a session is refused", async || {
        let (_, error) = handle.state.health();
        error
            .filter(|error| error.starts_with("NotPermitted: "))
            .map(drop)
    })
    .await;
    assert_eq!(gate.requests(), seen);
    assert_eq!(lab.objects("p"), objects);
}
