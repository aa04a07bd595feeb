//! The source BackupEntry of a Shoot whose cached version is late, with a simulated API server.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::sync::atomic::{AtomicUsize, Ordering};

use api::{
    constants::BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH,
    gardencore::{BackupEntrySpec, SeedSpec},
};
use http::{Method, Request, Response};
use kube::{Client, client::Body, runtime::reflector};
use serde_json::Value;
use tower::service_fn;

use super::*;

fn moved(phase: &str) -> Shoot {
    serde_json::from_value(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
        "metadata": {"name": "web", "namespace": "garden-dev", "uid": "u"},
        "spec": {"region": "r", "seedName": "b", "provider": {"type": "t"}, "kubernetes": {}},
        "status": {"seedName": "b", "technicalID": "t", "uid": "u", "ownership": {"epoch": 2, "phase": phase,
            "source": {"name": "a", "epoch": 1}, "sourceBucket": {"name": "bucket-a", "epoch": 1}}},
    }))
    .unwrap()
}

/// The outcome, and the creations of a source entry, with this Shoot in the cache. The own entry has the
/// mark of the end, and the source entry does not exist.
async fn place_after_the_end(cached: &str, latest: &'static str) -> (Result<Next>, usize) {
    let created = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&created);
    let service = service_fn(move |request: Request<Body>| {
        let counted = Arc::clone(&counted);
        async move {
            let path = request.uri().path();
            let mut own = BackupEntry::new(&names::backup_entry("t", "u"), BackupEntrySpec::default());
            own.spec.seed_name = Some("b".to_owned());
            own.spec.bucket_name = "bucket-b".to_owned();
            let mark = BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH.to_owned();
            own.annotations_mut().insert(mark, "2".to_owned());
            let (code, body): (u16, Value) = if request.method() == Method::POST {
                if path.ends_with("/backupentries") {
                    counted.fetch_add(1, Ordering::SeqCst);
                }
                (201, json!(own))
            } else if path.contains(SOURCE) {
                let missing = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                    "message": "not found", "reason": "NotFound", "code": 404});
                (404, missing)
            } else if path.contains("/backupentries/") {
                (200, json!(own))
            } else {
                (200, json!(moved(latest)))
            };
            let answer = Response::builder().status(code);
            Ok::<_, std::io::Error>(answer.body(Body::from(body.to_string().into_bytes())).unwrap())
        }
    });
    let (seeds, mut writer) = reflector::store::<Seed>();
    let mut host = Seed::new("b", SeedSpec::default());
    host.metadata.uid = Some("bucket-b".to_owned());
    writer.apply_watcher_event(&watcher::Event::Apply(host));
    let context = Context::of_simulated_garden(&Client::new(service, "default"));
    let placement = BackupEntryPlacement { context, seeds };
    let outcome = placement.place_entries(&moved(cached)).await;
    (outcome, created.load(Ordering::SeqCst))
}

/// The cache of Shoots is late. The mark of a thief ends no source entry, because the API server shows
/// phase `Claiming`, too.
#[tokio::test]
async fn a_late_cache_creates_no_source_entry_again() {
    let (next, created) = Box::pin(place_after_the_end("Claiming", "Held")).await;
    assert_eq!((next.unwrap(), created), (Next::After(CONFLICT_REQUEUE), 0));
    let (_, created) = Box::pin(place_after_the_end("Claiming", "Claiming")).await;
    assert_eq!(created, 1);
}
