//! The start of the controller and a deletion, with simulated API servers.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::{convert::Infallible, sync::Mutex};

use api::{
    constants::BACKUP_ENTRY_BACKUPS_COPIED, extensions::ExtensionObject as _, gardencore::BackupEntrySpec,
};
use http::{Method, Request, Response, StatusCode};
use kube::{Client, client::Body, runtime::reflector};
use runtime::{
    bounds::SharePercent,
    client::{Garden, Permit, Seed},
    controller::Events,
    process::metrics::Metrics,
};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tower::service_fn;

use super::*;

const NAME: &str = "shoot--dev--web--uid";

#[allow(clippy::unnecessary_wraps)] // the answer of a service
fn answer(status: StatusCode, body: &Value) -> Result<Response<Body>, Infallible> {
    let mut answer = Response::new(Body::from(body.to_string().into_bytes()));
    *answer.status_mut() = status;
    Ok(answer)
}

/// A list with a single object. `next`: the token of the next page.
fn page(object: &Value, next: &str) -> Result<Response<Body>, Infallible> {
    let metadata = json!({"resourceVersion": "7", "continue": next});
    let list = json!({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": [object]});
    answer(StatusCode::OK, &list)
}

fn missing() -> Result<Response<Body>, Infallible> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
        "reason": "NotFound", "message": "gone", "code": 404});
    answer(StatusCode::NOT_FOUND, &status)
}

fn entry(seed: &str) -> BackupEntry {
    let spec = BackupEntrySpec {
        bucket_name: "bucket".into(),
        seed_name: Some(seed.into()),
        shoot_ref: None,
    };
    let mut entry = BackupEntry::new(NAME, spec);
    entry.metadata.namespace = Some("garden-dev".into());
    entry.metadata.finalizers = Some(vec![GARDENER.into()]);
    entry
}

/// A garden with an entry that seed `b` has taken over. `reads` counts the reads of the entry, which the
/// controller begins with.
fn garden(reads: watch::Sender<usize>) -> Client {
    let entry = serde_json::to_value(entry("b")).unwrap();
    let service = service_fn(move |request: Request<Body>| {
        let (entry, reads) = (entry.clone(), reads.clone());
        async move {
            let is_watch = request.uri().query().unwrap_or_default().contains("watch=true");
            if is_watch {
                std::future::pending::<()>().await;
            }
            if !request.uri().path().ends_with(NAME) {
                return page(&entry, "");
            }
            reads.send_modify(|reads| *reads += 1);
            missing()
        }
    });
    Client::new(service, "default")
}

/// A garden with an entry of seed `a` whose BackupBucket does not exist. The request for an operation stays
/// at the entry, so that each attempt begins a run. `writes`: the statuses that the controller has written.
fn garden_without_bucket(writes: watch::Sender<Vec<Value>>) -> Client {
    let mut entry = entry("a");
    entry
        .annotations_mut()
        .insert(OPERATION.into(), "reconcile".into());
    let entry = Arc::new(Mutex::new(serde_json::to_value(entry).unwrap()));
    let service = service_fn(move |request: Request<Body>| {
        let (entry, writes) = (Arc::clone(&entry), writes.clone());
        async move {
            let (parts, body) = request.into_parts();
            if parts.uri.query().unwrap_or_default().contains("watch=true") {
                std::future::pending::<()>().await;
            }
            let path = parts.uri.path();
            if path.ends_with("/status") {
                let body = body.collect_bytes().await.unwrap();
                let body: Value = serde_json::from_slice(&body).unwrap();
                let status = body["status"].clone();
                let mut entry = entry.lock().unwrap();
                for (field, value) in status.as_object().unwrap() {
                    entry["status"][field] = value.clone();
                }
                writes.send_modify(|writes| writes.push(status));
                return answer(StatusCode::OK, &entry);
            }
            let entry = entry.lock().unwrap().clone();
            if path.ends_with("/backupentries") {
                page(&entry, "")
            } else if path.ends_with(NAME) {
                answer(StatusCode::OK, &entry)
            } else {
                missing()
            }
        }
    });
    Client::new(service, "default")
}

/// A seed that still has the entry. The second page arrives after the controller has finished the work of the
/// first page: the clock of the test is paused, and moves when no task can do anything else.
fn seed() -> Client {
    let service = service_fn(|request: Request<Body>| async move {
        let query = request.uri().query().unwrap_or_default();
        if query.contains("watch=true") {
            std::future::pending::<()>().await;
        }
        if query.contains("continue=") {
            sleep(Duration::from_secs(1)).await;
            return page(&json!({"metadata": {"name": "second"}}), "");
        }
        page(&json!({"metadata": {"name": NAME}}), "next")
    });
    Client::new(service, "default")
}

/// The entry of backups in a former bucket, in deletion after copies were reported.
fn source() -> BackupEntry {
    let mut source = entry("a");
    source.metadata.name = Some(format!("source-{NAME}"));
    source.metadata.deletion_timestamp = Some(clock::now_k8s());
    source
        .annotations_mut()
        .insert(BACKUP_ENTRY_BACKUPS_COPIED.into(), "true".into());
    source
}

/// A garden with the source entry, the entry of the new bucket, and the living Shoot. The phase of the Shoot
/// asks for a note in the seed.
fn garden_with_copies() -> Client {
    let mut original = entry("a");
    original.spec.bucket_name = "new".into();
    let entries = [source(), original].map(|entry| serde_json::to_value(entry).unwrap());
    let shoot = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
        "metadata": {"name": "web", "namespace": "garden-dev"},
        "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
        "status": {"seedName": "a", "technicalID": "shoot--dev--web", "uid": "uid",
            "ownership": {"epoch": 2, "phase": "Held"}},
    });
    let service = service_fn(move |request: Request<Body>| {
        let (entries, shoot) = (entries.clone(), shoot.clone());
        async move {
            let path = request.uri().path();
            if path.ends_with("/shoots") {
                return page(&shoot, "");
            }
            let name = path.rsplit('/').next().unwrap_or_default();
            let found = entries.iter().find(|entry| entry["metadata"]["name"] == name);
            found.map_or_else(missing, |entry| answer(StatusCode::OK, entry))
        }
    });
    Client::new(service, "default")
}

/// A seed with this object of the source entry, and without the namespace of the shoot. `writes`: the methods
/// of the requests that change the object.
fn seed_with_object(object: &extensions::BackupEntry, writes: watch::Sender<Vec<Method>>) -> Client {
    let object = serde_json::to_value(object).unwrap();
    let service = service_fn(move |request: Request<Body>| {
        let (object, writes) = (object.clone(), writes.clone());
        async move {
            let end = format!("/source-{NAME}");
            if !request.uri().path().ends_with(&end) {
                return missing();
            }
            if request.method() != Method::GET {
                writes.send_modify(|writes| writes.push(request.method().clone()));
            }
            answer(StatusCode::OK, &object)
        }
    });
    Client::new(service, "default")
}

/// Runs the deletion of the source entry once. Returns the changes of the object in the seed.
async fn delete_source(object: &extensions::BackupEntry) -> Vec<Method> {
    let (sender, writes) = watch::channel(Vec::new());
    let context = Arc::new(context(garden_with_copies(), seed_with_object(object, sender)));
    let (here, _writer) = reflector::store();
    let controller = BackupEntryController { context, here };
    Box::pin(controller.cleanup(Arc::new(source()))).await.unwrap();
    writes.borrow().clone()
}

fn context(garden: Client, seed: Client) -> Context {
    let permit = Permit::sole("a test");
    let settings = runner::Settings {
        concurrency: 1,
        shutdown: CancellationToken::new(),
        permit: permit.clone(),
        metrics: Metrics::default(),
        events: Events::new(garden.clone(), "test"),
    };
    Context {
        garden: Garden::new(garden, &permit),
        seed: Seed::new(seed, &permit),
        seed_name: "a".into(),
        deletion_grace: Duration::ZERO,
        project_share: SharePercent::HALF,
        runner: settings,
    }
}

/// Otherwise the seed would keep the BackupEntry and the credentials of the bucket.
#[tokio::test(start_paused = true)]
async fn an_entry_that_was_taken_over_is_checked_after_a_list_of_two_pages() {
    let (sender, mut reads) = watch::channel(0);
    let context = context(garden(sender), seed());
    let checked = async {
        tokio::select! {
            () = run(Arc::new(context)) => {}
            checked = reads.wait_for(|reads| *reads > 0) => drop(checked.unwrap()),
        }
    };
    timeout(Duration::from_secs(600), checked).await.unwrap();
    assert_eq!(*reads.borrow(), 1);
}

/// Otherwise a move begins with an entry that fails, because the check of the move finds no error.
#[tokio::test(start_paused = true)]
async fn an_error_that_repeats_is_recorded_in_each_run() {
    let (sender, mut writes) = watch::channel(Vec::<Value>::new());
    let context = context(garden_without_bucket(sender), seed());
    let written = async {
        tokio::select! {
            () = run(Arc::new(context)) => Vec::new(),
            written = writes.wait_for(|writes| writes.len() >= 4) => written.unwrap().clone(),
        }
    };
    let written = timeout(Duration::from_secs(600), written).await.unwrap();
    let has_error = |status: &Value| status["lastError"].is_object();
    let errors: Vec<_> = written.iter().take(4).map(has_error).collect();
    assert_eq!(errors, [false, true, false, true]);
}

/// Upgrade: a former version has asked the provider for the deletion, and has written no note. A migration of
/// the object would never end.
#[tokio::test(start_paused = true)]
async fn a_deletion_that_the_provider_has_begun_goes_on() {
    let spec = extensions::BackupEntrySpec::default();
    let mut object = extensions::BackupEntry::new(&format!("source-{NAME}"), spec);
    // Without the note the backups stay: the provider is asked to release the object.
    assert_eq!(Box::pin(delete_source(&object)).await, [Method::PATCH]);
    object.metadata.deletion_timestamp = Some(clock::now_k8s());
    assert!(Box::pin(delete_source(&object)).await.is_empty());
    // A provider that has released the object removes no backups.
    object.default_status_mut().last_operation = Some(LastOperation {
        description: String::new(),
        last_update_time: clock::now_k8s(),
        progress: 100,
        state: LastOperationState::Succeeded,
        type_: LastOperationType::Migrate,
    });
    assert_eq!(
        Box::pin(delete_source(&object)).await,
        [Method::PATCH, Method::DELETE]
    );
}

/// A finalizer of the seed would keep the entry after the end of the grant, also of a dead seed.
#[tokio::test(start_paused = true)]
async fn a_seed_leaves_the_entry_of_a_preparation_alone() {
    let context = Arc::new(context(garden_with_copies(), seed()));
    let (here, _writer) = reflector::store();
    let controller = BackupEntryController { context, here };
    let mut entry = entry("a");
    assert!(controller.is_responsible(&entry));
    entry.metadata.name = Some(format!("prepared-3-1767225600-{NAME}"));
    assert!(!controller.is_responsible(&entry));
    entry.status = serde_json::from_value(json!({"seedName": "a"})).unwrap();
    entry.metadata.deletion_timestamp = Some(clock::now_k8s());
    assert!(!controller.is_responsible(&entry));
}
