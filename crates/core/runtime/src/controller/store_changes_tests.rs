//! Changes during an outage of the watch, with a list of two pages afterwards.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::time::Duration;

use futures::{FutureExt as _, channel::mpsc};
use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, client::Body, runtime::reflector};
use permit::Permit;
use serde_json::json;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tower::service_fn;

use super::*;
use crate::{
    controller::{
        Events, Next, Reconciler,
        runner::{self, controller_of_events},
    },
    process::metrics::Metrics,
};

type EventSender = mpsc::UnboundedSender<Result<Event<ConfigMap>, watcher::Error>>;

fn object(name: &str, value: &str) -> ConfigMap {
    let object = json!({"metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{name}")},
        "data": {"value": value}});
    serde_json::from_value(object).unwrap()
}

/// Name and value.
fn shown(object: &ConfigMap) -> String {
    let value = object.data.as_ref().and_then(|data| data.get("value"));
    format!("{}={}", object.name_any(), value.unwrap())
}

fn fingerprint(object: &ConfigMap) -> Option<u64> {
    runner::fingerprint(object.data.as_ref()?.get("value")?)
}

fn send(events: &EventSender, page: impl IntoIterator<Item = Event<ConfigMap>>) {
    for event in page {
        events.unbounded_send(Ok(event)).unwrap();
    }
}

fn item(name: &str, value: &str) -> Event<ConfigMap> {
    Event::InitApply(object(name, value))
}

/// The changes that wait, sorted, since a list has no order. `-`: a deleted object.
fn waiting(changes: &mut (impl Stream<Item = Change<ConfigMap>> + Unpin)) -> Vec<String> {
    let read = std::iter::from_fn(|| changes.next().now_or_never().flatten());
    let mut read: Vec<_> = read
        .map(|change| match &change.object {
            Some(object) => shown(object),
            None => format!("{}=-", change.reference.name),
        })
        .collect();
    read.sort();
    read
}

#[test]
fn a_list_of_several_pages_is_reported_after_the_last_page() {
    let (events, stream) = mpsc::unbounded();
    let (_, writer) = reflector::store();
    let mut changes = Box::pin(changes(stream, writer));
    send(&events, [Event::Init, item("a", "1")]);
    assert_eq!(waiting(&mut changes), [""; 0], "the first list is not complete");
    send(&events, [item("b", "1"), item("c", "1"), Event::InitDone]);
    assert_eq!(waiting(&mut changes), ["a=1", "b=1", "c=1"]);
    send(&events, [Event::Apply(object("a", "2"))]);
    assert_eq!(waiting(&mut changes), ["a=2"]);
    // In the outage, `a` is changed, `b` is deleted and `d` is created. The first attempt to list fails.
    events
        .unbounded_send(Err(watcher::Error::NoResourceVersion))
        .unwrap();
    send(&events, [Event::Init, item("a", "3")]);
    events
        .unbounded_send(Err(watcher::Error::NoResourceVersion))
        .unwrap();
    send(&events, [Event::Init, item("a", "3"), item("d", "1")]);
    assert_eq!(waiting(&mut changes), [""; 0], "the store shows the old objects");
    send(&events, [item("c", "1"), Event::InitDone]);
    assert_eq!(waiting(&mut changes), ["a=3", "b=-", "c=1", "d=1"]);
    send(&events, [Event::Delete(object("c", "1"))]);
    assert_eq!(waiting(&mut changes), ["c=-"]);
}

#[test]
fn a_controller_is_woken_by_another_fingerprint_alone() {
    let mut last = HashMap::new();
    let mut wakes_on = |object: Option<ConfigMap>| {
        let change = Change {
            reference: Arc::new(ObjectRef::new("a").within("ns")),
            object: object.map(Arc::new),
        };
        wakes(&mut last, &change, fingerprint)
    };
    assert!(wakes_on(Some(object("a", "1"))));
    assert!(!wakes_on(Some(object("a", "1"))));
    assert!(wakes_on(Some(object("a", "2"))));
    let mut created_again = object("a", "2");
    created_again.metadata.uid = Some("another".into());
    assert!(wakes_on(Some(created_again.clone())));
    // The store shows no object, so that nothing can be reconciled.
    assert!(!wakes_on(None));
    assert!(wakes_on(Some(created_again)), "the deletion was seen");
    let mut without = object("a", "1");
    without.data = None;
    assert!(
        wakes_on(Some(without.clone())) && wakes_on(Some(without)),
        "without a fingerprint"
    );
}

/// A client for a controller that sends no request.
fn client() -> Client {
    let refuse = |_: Request<Body>| ready(Err::<Response<Body>, _>(std::io::Error::other("no server")));
    Client::new(service_fn(refuse), "ns")
}

/// Records the objects that are reconciled.
struct Recorder(watch::Sender<Vec<String>>);

impl Reconciler<ConfigMap> for Recorder {
    const NAME: &'static str = "recorder";

    async fn apply(&self, object: Arc<ConfigMap>) -> crate::Result<Next> {
        self.0.send_modify(|all| all.push(shown(&object)));
        Ok(Next::Change)
    }

    async fn cleanup(&self, object: Arc<ConfigMap>) -> crate::Result<Next> {
        self.apply(object).await
    }
}

/// Each page arrives after the controller has finished the work of the earlier page. The clock is paused, so
/// a sleep ends when no task can do anything else.
#[tokio::test(start_paused = true)]
async fn a_change_during_an_outage_is_reconciled_after_a_list_of_two_pages() {
    let (events, stream) = mpsc::unbounded();
    let settings = runner::Settings {
        concurrency: 1,
        shutdown: CancellationToken::new(),
        permit: Permit::sole("a test"),
        metrics: Metrics::default(),
        events: Events::new(client(), "test"),
    };
    let (sender, mut reconciled) = watch::channel(Vec::new());
    let mut running = JoinSet::new();
    running.spawn(runner::run(
        controller_of_events(stream, fingerprint),
        |_| Api::namespaced(client(), "ns"),
        Arc::new(Recorder(sender)),
        settings,
    ));
    let pages = [
        vec![Event::Init, item("a", "1"), item("b", "1")],
        vec![item("c", "1"), Event::InitDone],
        // In the outage, `a` is changed and `d` is created.
        vec![Event::Init, item("a", "2"), item("d", "1")],
        vec![item("b", "1"), item("c", "1"), Event::InitDone],
    ];
    for page in pages {
        send(&events, page);
        sleep(Duration::from_secs(1)).await;
    }
    let has_all = |all: &Vec<String>| {
        ["a=2", "d=1"]
            .iter()
            .all(|new| all.iter().any(|done| done == new))
    };
    let waited = timeout(Duration::from_secs(600), reconciled.wait_for(has_all)).await;
    let mut all = waited.expect("the change is lost").unwrap().clone();
    all.sort();
    assert_eq!(all, ["a=1", "a=2", "b=1", "c=1", "d=1"], "each content once");
}
