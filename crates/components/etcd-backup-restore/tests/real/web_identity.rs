//! Backups with the keys of a role: moto is the bucket, and issues the keys for the token in the Secret.

use crate::lab::{BUCKET, EtcdServer, Gate, KeyBucket, Lab, Server, set_tls_provider};
use etcd_backup_restore::error::Class;
use etcd_backup_restore::store::{Provider, Store, StoreConfig};
use permit::{Clock, Issuer};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

const TOKEN: &str = "aGVhZA.Ym9keQ.c2ln";

/// The bucket, and a gate before the bucket and the token service. The mounted Secret names a role.
async fn bucket_of_role(lab: &Lab) -> (KeyBucket, Gate) {
    let bucket = KeyBucket::start(lab).await;
    let gate = Gate::before(bucket.endpoint()).await;
    let folder = lab.credentials();
    for key in ["accessKeyID", "secretAccessKey"] {
        std::fs::remove_file(folder.join(key)).unwrap();
    }
    for (key, value) in [
        ("roleARN", "arn:aws:iam::123456789012:role/backups"),
        ("token", TOKEN),
        ("endpoint", &gate.endpoint),
        ("stsEndpoint", &gate.endpoint),
    ] {
        std::fs::write(folder.join(key), value).unwrap();
    }
    (bucket, gate)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_stores_and_restores_snapshots() {
    let lab = Lab::new();
    let (_bucket, gate) = bucket_of_role(&lab).await;
    let etcd = EtcdServer::start(&lab.path("etcd")).await;
    etcd.put_key("/a", "1").await;
    let server = Server::start(&lab, "p", &etcd.endpoint, &[]).await;
    server.snapshot("/snapshot/full?final=true").await;
    drop(server);
    let before = etcd.dump().await;
    etcd.stop();

    let data = lab.path("volume/new.etcd");
    let ran = lab.initialize("p", &data, &["--ownership-epoch=1"]).await;
    assert!(ran.success, "{}", ran.errors);
    let restored = EtcdServer::start(&data).await;
    assert!(restored.dump().await.0 == before.0);
    restored.stop();

    let heads = gate.heads();
    let (keys, objects): (Vec<&String>, Vec<&String>) =
        heads.iter().partition(|head| head.starts_with("post / "));
    assert!(!keys.is_empty() && keys.len() < objects.len(), "{heads:?}");
    for head in objects {
        assert!(head.contains("x-amz-security-token: "), "{head}");
    }
    for head in &heads {
        assert!(!head.contains(&TOKEN.to_lowercase()), "{head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_loses_its_right_asks_for_no_keys() {
    let lab = Lab::new();
    let (_bucket, gate) = bucket_of_role(&lab).await;
    set_tls_provider();
    let clock = Clock::default();
    let until = clock.now() + Duration::from_secs(60 * 60);
    let issuer = Issuer::new("the lock of a test", clock, until);
    let config = StoreConfig {
        provider: Provider::S3,
        container: BUCKET.to_owned(),
        prefix: "p".to_owned(),
        credentials_dir: Some(lab.credentials()),
        endpoint: None,
        permit: issuer.permit(),
    };
    let store = Arc::new(Store::new(config).unwrap());
    gate.hold("POST / ");
    let mut listing = JoinSet::new();
    let listed = Arc::clone(&store);
    listing.spawn(async move { listed.everything().await.map(drop) });
    gate.something_is_held().await;
    issuer.end("another holds it");
    let refused = listing.join_next().await.unwrap().unwrap().unwrap_err();
    assert_eq!(refused.class, Class::NotPermitted, "{refused}");
    gate.release();
    let refused = store.everything().await.unwrap_err();
    assert_eq!(refused.class, Class::NotPermitted, "{refused}");
    assert_eq!(gate.requests(), 1, "{:?}", gate.heads());
}
