//! The runner with workers that projects share: objects of a project hang, and objects arrive, change and
//! disappear while they wait.

#![allow(clippy::unwrap_used)]

use futures::channel::mpsc;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::reflector::store::Writer;
use serde_json::json;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{tests::client, *};

const WORKERS: u16 = 4;

/// Objects of the namespace `hanging` do not end before the release.
struct HangingWork {
    /// Namespace, name and version of each object whose work has started.
    started: watch::Sender<Vec<String>>,
    released: watch::Receiver<bool>,
}

impl Reconciler<ConfigMap> for HangingWork {
    const NAME: &'static str = "hanging-work";

    async fn apply(&self, object: Arc<ConfigMap>) -> Result<Next> {
        let namespace = object.namespace().unwrap();
        let version = object.resource_version().unwrap();
        let started = format!("{namespace}/{}@{version}", object.name_any());
        self.started.send_modify(|all| all.push(started));
        if namespace == "hanging" {
            let mut released = self.released.clone();
            released.wait_for(|released| *released).await.unwrap();
        }
        Ok(Next::Change)
    }

    async fn cleanup(&self, object: Arc<ConfigMap>) -> Result<Next> {
        self.apply(object).await
    }
}

struct Fixture {
    writer: Writer<ConfigMap>,
    changes: mpsc::UnboundedSender<std::result::Result<ConfigMap, watcher::Error>>,
    started: watch::Receiver<Vec<String>>,
    release: watch::Sender<bool>,
    metrics: Metrics,
    // Aborts the runner at the end.
    _runner: JoinSet<()>,
}

impl Fixture {
    fn start() -> Self {
        let (reader, mut writer) = reflector::store();
        writer.apply_watcher_event(&watcher::Event::Init);
        writer.apply_watcher_event(&watcher::Event::InitDone);
        let (changes, stream) = mpsc::unbounded();
        let (started, reported) = watch::channel(Vec::new());
        let (release, released) = watch::channel(false);
        let metrics = Metrics::default();
        let settings = Settings {
            concurrency: WORKERS,
            shutdown: CancellationToken::new(),
            permit: Permit::sole("a test"),
            metrics: metrics.clone(),
            events: Events::new(client(), "test"),
        };
        let by_project = ByProject {
            share: SharePercent::HALF,
            project: |object: &ConfigMap| object.namespace().unwrap(),
        };
        let mut runner = JoinSet::new();
        runner.spawn(run_by_project(
            Controller::for_stream(stream, reader),
            |_| Api::namespaced(client(), "ns"),
            Arc::new(HangingWork { started, released }),
            settings,
            by_project,
        ));
        Self {
            writer,
            changes,
            started: reported,
            release,
            metrics,
            _runner: runner,
        }
    }

    fn change(&mut self, namespace: &str, name: &str, version: &str) {
        let object: ConfigMap = serde_json::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": namespace, "name": name, "resourceVersion": version}}))
        .unwrap();
        let event = watcher::Event::Apply(object.clone());
        self.writer.apply_watcher_event(&event);
        self.changes.unbounded_send(Ok(object)).unwrap();
    }

    fn remove(&mut self, namespace: &str, name: &str) {
        let object: ConfigMap = serde_json::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": namespace, "name": name, "resourceVersion": "9"}}))
        .unwrap();
        self.writer.apply_watcher_event(&watcher::Event::Delete(object));
    }

    /// Waits until the started objects satisfy the condition.
    async fn until(&mut self, holds: impl FnMut(&Vec<String>) -> bool) -> Vec<String> {
        let waited = timeout(Duration::from_secs(600), self.started.wait_for(holds)).await;
        waited.unwrap().unwrap().clone()
    }

    /// Twenty objects of a project arrive, and the objects with a worker hang.
    async fn hang(&mut self) -> Vec<String> {
        for number in 0..20 {
            self.change("hanging", &format!("o{number}"), "1");
        }
        self.until(|all| all.len() >= usize::from(WORKERS)).await
    }
}

#[tokio::test(start_paused = true)]
async fn twenty_objects_that_hang_do_not_delay_the_object_of_a_neighbour() {
    let mut fixture = Fixture::start();
    let first = fixture.hang().await;
    // The project was alone, and holds all workers.
    assert_eq!(first.len(), usize::from(WORKERS), "{first:?}");
    for name in ["new", "moved"] {
        let before = Instant::now();
        fixture.change("neighbour", name, "1");
        let expected = format!("neighbour/{name}@1");
        let all = fixture.until(|all| all.contains(&expected)).await;
        assert!(before.elapsed() < Duration::from_secs(1), "{all:?}");
        let hanging = all.iter().filter(|one| one.starts_with("hanging/")).count();
        assert_eq!(hanging, usize::from(WORKERS), "{all:?}");
    }
    // All tasks have run by then.
    sleep(Duration::from_secs(1)).await;
    let waiting = "controller_waiting_objects{controller=\"hanging-work\"} 16";
    let text = fixture.metrics.encode();
    assert!(text.contains(waiting), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_waited_is_reconciled_in_the_newest_version_or_not_at_all() {
    let mut fixture = Fixture::start();
    let first = fixture.hang().await;
    // All tasks have run by then, and wait for a worker.
    sleep(Duration::from_secs(1)).await;
    let is_waiting = |name: &&String| !first.contains(&format!("hanging/{name}@1"));
    let names: Vec<String> = (0..20).map(|number| format!("o{number}")).collect();
    let mut waiting = names.iter().filter(is_waiting);
    let (changed, removed) = (waiting.next().unwrap(), waiting.next().unwrap());
    fixture.change("hanging", changed, "2");
    fixture.remove("hanging", removed);
    fixture.release.send_replace(true);
    // The object that has changed is reconciled for the change, too.
    let all = fixture.until(|all| all.len() >= 20).await;
    let of = |name: &str| -> Vec<String> {
        let prefix = format!("hanging/{name}@");
        let works = all.iter().filter(|one| one.starts_with(&prefix));
        works.cloned().collect()
    };
    assert_eq!(of(changed), vec![format!("hanging/{changed}@2"); 2]);
    assert_eq!(of(removed), Vec::<String>::new());
    sleep(Duration::from_secs(600)).await;
    assert_eq!(fixture.started.borrow().len(), 20);
}
