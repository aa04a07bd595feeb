//! The shared watch: events of a watch without an API server, and lists of a fake API server.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures::FutureExt as _;
use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Client, client::Body};
use permit::Permit;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::service_fn;

use super::*;
use crate::{
    controller::{Events, Next, Reconciler, runner},
    process::metrics::Metrics,
};

/// Longer than any step takes on a busy machine.
const SOON: Duration = Duration::from_secs(60);

fn object(name: &str, value: &str) -> ConfigMap {
    let object = json!({"metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{name}"),
        "managedFields": [{}]}, "data": {"value": value, "left-out": "x"}});
    serde_json::from_value(object).unwrap()
}

/// An API server with these objects, and the number of lists that the server has answered. A watch of the
/// server reports no event.
fn server(objects: Value) -> (Client, Arc<AtomicUsize>) {
    let lists = Arc::<AtomicUsize>::default();
    let answered = Arc::clone(&lists);
    let service = service_fn(move |request: Request<Body>| {
        let (objects, answered) = (objects.clone(), Arc::clone(&answered));
        async move {
            if request.uri().query().unwrap_or_default().contains("watch=true") {
                std::future::pending::<()>().await;
            }
            answered.fetch_add(1, Ordering::SeqCst);
            let list = json!({"kind": "ConfigMapList", "apiVersion": "v1",
                "metadata": {"resourceVersion": "7"}, "items": objects});
            Ok::<_, std::io::Error>(Response::new(Body::from(list.to_string().into_bytes())))
        }
    });
    (Client::new(service, "ns"), lists)
}

/// A shared watch whose store keeps no key `left-out`.
fn watch_of(client: &Client) -> SharedWatch<ConfigMap> {
    let trim = |object: &mut ConfigMap| {
        object.data.iter_mut().for_each(|data| {
            data.remove("left-out");
        });
    };
    SharedWatch::new(Api::all(client.clone()), watcher::Config::default(), trim)
}

fn shared() -> SharedWatch<ConfigMap> {
    watch_of(&server(json!([])).0)
}

fn take(watch: &SharedWatch<ConfigMap>, events: impl IntoIterator<Item = Event<ConfigMap>>) {
    let mut writer = watch.0.writer.try_lock().unwrap();
    for event in events {
        watch.0.apply(&mut writer, event);
    }
}

/// A list of these objects.
fn list(objects: &[(&str, &str)]) -> Vec<Event<ConfigMap>> {
    let listed = objects
        .iter()
        .map(|(name, value)| Event::InitApply(object(name, value)));
    [Event::Init]
        .into_iter()
        .chain(listed)
        .chain([Event::InitDone])
        .collect()
}

/// Name and value of each change that waits; `-` for a deleted object. Sorted: a list has no order.
fn waiting(changes: &mut (impl Stream<Item = Change<ConfigMap>> + Unpin)) -> Vec<String> {
    let read = std::iter::from_fn(|| changes.next().now_or_never().flatten());
    let mut read: Vec<_> = read
        .map(|change| {
            let data = change.object.and_then(|object| object.data.clone());
            let value = data.and_then(|data| data.get("value").cloned());
            format!("{}={}", change.reference.name, value.as_deref().unwrap_or("-"))
        })
        .collect();
    read.sort();
    read
}

/// Waits for a condition that other tasks bring about.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let waited = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, waited).await.expect(what);
}

#[tokio::test]
async fn each_subscriber_sees_each_change_and_each_deletion() {
    let watch = shared();
    let mut all = [(); 3].map(|()| Box::pin(watch.subscribe()));
    take(&watch, list(&[("a", "1"), ("b", "1")]));
    for changes in &mut all {
        assert_eq!(waiting(changes), ["a=1", "b=1"]);
    }
    take(
        &watch,
        [Event::Apply(object("a", "2")), Event::Delete(object("b", "1"))],
    );
    for changes in &mut all {
        assert_eq!(waiting(changes), ["a=2", "b=-"]);
        assert_eq!(waiting(changes), [""; 0]);
    }
}

/// The second subscriber reads no change, as a controller whose slots are all taken.
#[tokio::test]
async fn a_slow_subscriber_holds_up_nobody_and_holds_each_object_once() {
    let watch = shared();
    let (mut fast, mut slow) = (Box::pin(watch.subscribe()), Box::pin(watch.subscribe()));
    take(&watch, list(&[]));
    for number in 0..100 {
        let value = number.to_string();
        take(&watch, ["a", "b"].map(|name| Event::Apply(object(name, &value))));
        assert_eq!(waiting(&mut fast), [format!("a={value}"), format!("b={value}")]);
    }
    let pending: Vec<_> = watch.0.subscribers().iter().filter_map(Weak::upgrade).collect();
    let lengths: Vec<_> = pending.iter().map(|pending| pending.len()).collect();
    assert_eq!(lengths, [0, 2]);
    assert_eq!(waiting(&mut slow), ["a=99", "b=99"]);
    // A change after the subscriber has read the object is not lost.
    take(&watch, [Event::Apply(object("a", "100"))]);
    assert_eq!(waiting(&mut slow), ["a=100"]);
}

#[tokio::test]
async fn a_list_after_an_interruption_reports_all_objects_and_vanished_objects() {
    let watch = shared();
    let mut changes = Box::pin(watch.subscribe());
    take(&watch, list(&[("a", "1"), ("b", "1")]));
    assert_eq!(waiting(&mut changes), ["a=1", "b=1"]);
    let mut again = list(&[("b", "1"), ("c", "1")]);
    let end = again.pop();
    take(&watch, again);
    assert_eq!(waiting(&mut changes), [""; 0], "the list is not complete");
    take(&watch, end);
    assert_eq!(waiting(&mut changes), ["a=-", "b=1", "c=1"]);
}

#[tokio::test]
async fn a_late_subscriber_gets_all_objects() {
    let watch = shared();
    let mut early = Box::pin(watch.subscribe());
    assert_eq!(waiting(&mut early), [""; 0]);
    take(&watch, list(&[("a", "1")]));
    take(&watch, [Event::Apply(object("b", "1"))]);
    let mut late = Box::pin(watch.subscribe());
    assert_eq!(waiting(&mut late), ["a=1", "b=1"]);
    assert_eq!(waiting(&mut early), ["a=1", "b=1"]);
}

#[tokio::test]
async fn a_subscriber_that_has_ended_costs_nothing() {
    let watch = shared();
    drop(watch.subscribe());
    take(&watch, list(&[("a", "1")]));
    assert!(watch.0.subscribers().is_empty());
}

#[tokio::test]
async fn the_store_holds_what_is_left_after_the_trim() {
    let watch = shared();
    take(&watch, list(&[("a", "1")]));
    take(&watch, [Event::Apply(object("b", "1"))]);
    for object in watch.store().state() {
        assert!(object.metadata.managed_fields.iter().flatten().next().is_none());
        assert_eq!(
            object
                .data
                .iter()
                .flat_map(|data| data.keys())
                .collect::<Vec<_>>(),
            ["value"]
        );
    }
}

#[tokio::test]
async fn a_single_caller_runs_the_watch_and_the_next_caller_lists_again() {
    let (client, lists) = server(json!([object("a", "1")]));
    let watch = watch_of(&client);
    let [mut first, mut second] = [(); 2].map(|()| {
        let (watch, mut callers) = (watch.clone(), JoinSet::new());
        callers.spawn(async move { watch.run().await });
        callers
    });
    tokio::time::timeout(SOON, watch.wait_until_ready())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(lists.load(Ordering::SeqCst), 1);
    let mut changes = Box::pin(watch.subscribe());
    assert_eq!(waiting(&mut changes), ["a=1"]);
    first.shutdown().await;
    let listed_again = tokio::time::timeout(SOON, changes.next()).await.unwrap().unwrap();
    assert_eq!(listed_again.reference.name, "a");
    assert_eq!(lists.load(Ordering::SeqCst), 2);
    second.shutdown().await;
    // The store may be old, so a subscriber waits for the next list.
    assert_eq!(waiting(&mut Box::pin(watch.subscribe())), [""; 0]);
    assert!(watch.wait_until_ready().now_or_never().is_none());
}

struct Idle<const NUMBER: usize>;

impl Reconciler<ConfigMap> for Idle<1> {
    const NAME: &'static str = "first";

    async fn apply(&self, _: Arc<ConfigMap>) -> Result<Next> {
        Ok(Next::Change)
    }

    async fn cleanup(&self, _: Arc<ConfigMap>) -> Result<Next> {
        Ok(Next::Change)
    }
}

impl Reconciler<ConfigMap> for Idle<2> {
    const NAME: &'static str = "second";

    async fn apply(&self, _: Arc<ConfigMap>) -> Result<Next> {
        Ok(Next::Change)
    }

    async fn cleanup(&self, _: Arc<ConfigMap>) -> Result<Next> {
        Ok(Next::Change)
    }
}

/// The store of kube wakes the last waiter alone, and without objects there is no change that would wake the
/// others.
#[tokio::test]
async fn each_controller_is_ready_after_an_empty_list() {
    let (client, _) = server(json!([]));
    let watch = watch_of(&client);
    let metrics = Metrics::default();
    let settings = runner::Settings {
        concurrency: 1,
        shutdown: CancellationToken::new(),
        permit: Permit::sole("a test"),
        metrics: metrics.clone(),
        events: Events::new(client.clone(), "test"),
    };
    let mut running = JoinSet::new();
    let api_of = move |_: &ConfigMap| Api::namespaced(client.clone(), "ns");
    let (first, second) = (watch.controller(|_| None), watch.controller(|_| None));
    running.spawn(runner::run(
        first,
        api_of.clone(),
        Arc::new(Idle::<1>),
        settings.clone(),
    ));
    running.spawn(runner::run(second, api_of, Arc::new(Idle::<2>), settings));
    tokio::task::yield_now().await;
    running.spawn(async move {
        watch.run().await;
    });
    for name in ["first", "second"] {
        let synced = format!("controller_synced{{controller=\"{name}\"}} 1");
        until(name, || metrics.encode().contains(&synced)).await;
    }
}

#[tokio::test]
async fn the_watch_ends_with_the_work_beside() {
    let watch = shared();
    let work = async {
        watch.wait_until_ready().await.unwrap();
        7
    };
    assert_eq!(watch.run_beside(work).await, 7);
}
