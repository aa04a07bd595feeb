//! The runner without a watch: pauses, and the behaviour when the permit ends.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::sync::atomic::{AtomicU32, Ordering};

use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Client, client::Body};
use permit::{Clock, Issuer};
use tokio::{sync::watch, time::sleep};
use tower::service_fn;

use super::*;

#[test]
fn the_pause_grows_and_is_bounded() {
    assert!(pause_after(1) >= BACKOFF_FIRST);
    assert!(pause_after(1) < BACKOFF_FIRST * 3);
    assert!(pause_after(4) >= BACKOFF_FIRST * 8);
    // Jitter adds at most the longest pause once more.
    assert!(pause_after(50) <= BACKOFF_LONGEST * 2);
}

#[test]
fn a_hash_has_keys_of_the_process() {
    use std::hash::{DefaultHasher, Hasher as _};
    let mut fixed = DefaultHasher::new();
    "content".hash(&mut fixed);
    assert_ne!(hash("content"), fixed.finish());
    assert_eq!(hash("content"), hash("content"));
}

/// Counts steps, one per second.
struct Steps(Arc<AtomicU32>);

impl Reconciler<ConfigMap> for Steps {
    const NAME: &'static str = "steps";

    async fn apply(&self, _: Arc<ConfigMap>) -> Result<Next> {
        loop {
            self.0.fetch_add(1, Ordering::SeqCst);
            sleep(Duration::from_secs(1)).await;
        }
    }

    async fn cleanup(&self, object: Arc<ConfigMap>) -> Result<Next> {
        self.apply(object).await
    }
}

/// A cluster without objects.
pub(super) fn client() -> Client {
    let answer = |_: Request<Body>| async {
        let body = Body::from(br#"{"kind": "Status", "status": "Failure", "reason": "NotFound", "message": "none", "code": 404}"#.to_vec());
        Ok::<_, std::io::Error>(Response::builder().status(404).body(body).unwrap())
    };
    Client::new(service_fn(answer), "ns")
}

fn issued_for(seconds: u64) -> Issuer {
    let clock = Clock::default();
    let until = clock.now() + Duration::from_secs(seconds);
    Issuer::new("a lock", clock, until)
}

fn running(issuer: &Issuer, steps: &Arc<AtomicU32>) -> Arc<Running<ConfigMap, Steps>> {
    let client = client();
    Arc::new(Running {
        api_of: Box::new({
            let client = client.clone();
            move |_| Api::namespaced(client.clone(), "ns")
        }),
        reconciler: Arc::new(Steps(Arc::clone(steps))),
        settings: Settings {
            concurrency: 1,
            shutdown: CancellationToken::new(),
            permit: issuer.permit(),
            metrics: Metrics::default(),
            events: Events::new(client, "test"),
        },
        failures: Mutex::new(FailureCounts::new(reflector::store().0)),
        queue: None,
    })
}

/// kube runs each reconciliation in a separate task, and a guard around the controller does not stop that
/// task.
#[tokio::test(start_paused = true)]
async fn a_reconciliation_takes_no_step_when_the_right_is_lost() {
    let (issuer, steps) = (issued_for(60), Arc::default());
    let running = running(&issuer, &steps);
    let object = Arc::new(ConfigMap::default());
    let reconciling = Arc::clone(&running);
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { reconciling.reconcile(object).await });
    sleep(Duration::from_millis(2500)).await;
    issuer.end("another one has it");
    let error = tasks.join_next().await.unwrap().unwrap().unwrap_err();
    assert!(
        matches!(&error, Error::NotOwner(why) if why.contains("another one has it")),
        "{error}"
    );
    assert_eq!(steps.load(Ordering::SeqCst), 3);
    // A lost permit is not a failure: no Event reports the loss, and later pauses do not grow.
    let pause = Running::on_error(Arc::new(ConfigMap::default()), &error, Arc::clone(&running));
    assert_eq!(pause, Action::requeue(BACKOFF_LONGEST));
    assert!(running.failures().counts.is_empty());
    assert!(running.settings.metrics.encode().contains("NotOwner"));
}

#[tokio::test(start_paused = true)]
async fn without_the_right_nothing_is_reconciled() {
    let (issuer, steps) = (issued_for(60), Arc::default());
    issuer.end("another one has it");
    let refused = running(&issuer, &steps)
        .reconcile(Arc::new(ConfigMap::default()))
        .await;
    assert!(matches!(refused, Err(Error::NotOwner(_))), "{refused:?}");
    assert_eq!(steps.load(Ordering::SeqCst), 0);
}

/// A refusal by a fenced client is not a failure of the cluster behind the client.
#[tokio::test(start_paused = true)]
async fn a_refused_request_says_that_another_one_acts() {
    let issuer = issued_for(60);
    let client = crate::client::Connection::from(client()).client(&issuer.permit());
    let maps: Api<ConfigMap> = Api::namespaced(client, "ns");
    assert!(maps.get_opt("none").await.unwrap().is_none());
    issuer.end("another one has it");
    let error = Error::from(maps.get_opt("none").await.unwrap_err());
    assert!(
        matches!(&error, Error::NotOwner(why) if why.contains("another one has it")),
        "{error:?}"
    );
}

/// Cleans up at once.
struct Cleaner(Arc<AtomicU32>);

impl Reconciler<ConfigMap> for Cleaner {
    const NAME: &'static str = "cleaner";
    const FINALIZER: Option<&'static str> = Some("repot.test/cleaner");

    async fn apply(&self, _: Arc<ConfigMap>) -> Result<Next> {
        Ok(Next::Change)
    }

    async fn cleanup(&self, _: Arc<ConfigMap>) -> Result<Next> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Next::Change)
    }
}

fn going(version: &str, generation: i64) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "one", "namespace": "ns", "uid": "u", "resourceVersion": version, "generation": generation,
            "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["repot.test/cleaner", "x/y"]},
    })
}

/// A fake API server with the object in this version and generation; records the finalizers of each write.
fn serving(version: &'static str, generation: i64, written: &Arc<Mutex<Vec<serde_json::Value>>>) -> Client {
    let written = Arc::clone(written);
    let answer = move |request: Request<Body>| {
        let written = Arc::clone(&written);
        async move {
            let is_read = request.method() == http::Method::GET;
            let body = request.into_body().collect_bytes().await.unwrap_or_default();
            let found = going(version, generation);
            let patch: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
            let conflicts = !is_read && patch["metadata"]["resourceVersion"] != version;
            if !is_read && !conflicts {
                written
                    .lock()
                    .unwrap()
                    .push(patch["metadata"]["finalizers"].clone());
            }
            let conflict = r#"{"kind": "Status", "status": "Failure", "reason": "Conflict", "message": "newer", "code": 409}"#;
            let (status, text) = if conflicts {
                (409, conflict.to_owned())
            } else {
                (200, found.to_string())
            };
            Ok::<_, std::io::Error>(
                Response::builder()
                    .status(status)
                    .body(Body::from(text.into_bytes()))
                    .unwrap(),
            )
        }
    };
    Client::new(service_fn(answer), "ns")
}

/// A cleanup writes the status of the object, and so creates a newer version: the cleanup must not run again
/// for that version. A change by a user is reconciled.
#[tokio::test]
async fn what_a_clean_up_writes_does_not_make_it_begin_again() {
    for (generation, expected) in [(7, vec![serde_json::json!(["x/y"])]), (8, vec![])] {
        let (count, written, issuer) = (Arc::default(), Arc::default(), issued_for(60));
        let client = serving("2", generation, &written);
        let running = Running {
            api_of: Box::new({
                let client = client.clone();
                move |_| Api::namespaced(client.clone(), "ns")
            }),
            reconciler: Arc::new(Cleaner(Arc::clone(&count))),
            settings: Settings {
                concurrency: 1,
                shutdown: CancellationToken::new(),
                permit: issuer.permit(),
                metrics: Metrics::default(),
                events: Events::new(client, "test"),
            },
            failures: Mutex::new(FailureCounts::new(reflector::store().0)),
            queue: None,
        };
        let object: ConfigMap = serde_json::from_value(going("1", 7)).unwrap();
        let ended = running.call(Arc::new(object)).await;
        assert_eq!(ended.is_ok(), !expected.is_empty(), "{ended:?}");
        assert_eq!(count.load(Ordering::SeqCst), 1);
        assert_eq!(*written.lock().unwrap(), expected);
    }
}

/// A cluster without objects that answers a list from `listed` on. Watches stay silent.
fn client_that_lists(listed: watch::Receiver<bool>) -> Client {
    let answer = move |request: Request<Body>| {
        let mut listed = listed.clone();
        async move {
            if request
                .uri()
                .query()
                .is_some_and(|query| query.contains("watch="))
            {
                std::future::pending::<()>().await;
            }
            listed
                .wait_for(|listed| *listed)
                .await
                .map_err(std::io::Error::other)?;
            let list = br#"{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}"#;
            Ok::<_, std::io::Error>(Response::new(Body::from(list.to_vec())))
        }
    };
    Client::new(service_fn(answer), "ns")
}

#[tokio::test(start_paused = true)]
async fn a_controller_is_not_ready_before_its_objects_are_listed() {
    let (list, listed) = watch::channel(false);
    let client = client_that_lists(listed);
    let (metrics, shutdown) = (Metrics::default(), CancellationToken::new());
    let settings = Settings {
        concurrency: 1,
        shutdown: shutdown.clone(),
        permit: Permit::sole("a test"),
        metrics: metrics.clone(),
        events: Events::new(client.clone(), "test"),
    };
    let api: Api<ConfigMap> = Api::namespaced(client, "ns");
    let controller = controller(api.clone(), watcher::Config::default(), |_| None);
    let mut running = tokio::task::JoinSet::new();
    let steps = Arc::new(Steps(Arc::default()));
    running.spawn(run(controller, move |_| api.clone(), steps, settings));
    assert_eq!(metrics.not_synced(), None);
    sleep(Duration::from_secs(60)).await;
    let why = metrics.not_synced().unwrap();
    assert!(why.contains("not listed their objects yet: steps"), "{why}");
    assert!(
        metrics
            .encode()
            .contains("controller_synced{controller=\"steps\"} 0")
    );
    list.send_replace(true);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(metrics.not_synced(), None);
    assert!(
        metrics
            .encode()
            .contains("controller_synced{controller=\"steps\"} 1")
    );
    shutdown.cancel();
    running.join_next().await.unwrap().unwrap();
}

#[test]
fn a_controller_that_ended_is_not_waited_for() {
    let metrics = Metrics::default();
    let (first, second) = (metrics.begin_sync("shoot"), metrics.begin_sync("shoot"));
    drop(first);
    assert!(metrics.not_synced().is_some());
    drop(second);
    assert_eq!(metrics.not_synced(), None);
}
