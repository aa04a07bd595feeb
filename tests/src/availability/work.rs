//! The writes and watches of a probe.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt, future::join_all, pin_mut};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Node, Service},
};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::{sync::watch, time::MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::{Book, MADE, Place, book::UNINITIALIZED};

/// Interval; each tick creates a Node and a Service.
const EVERY: Duration = Duration::from_secs(1);
/// The number of started machines that are not registered yet. A kubelet takes longer to start than readers
/// cache the cloud's list of machines.
const STARTING: u32 = 3;
/// Nodes of a burst: two managers that both assign ranges would hardly choose equal ranges for all of them.
const AT_ONCE: u32 = 12;
/// The registration pauses while more objects wait. Above the number of a hand-over (30 s of Nodes and
/// Services, and a burst). Without a pause, objects come faster than the controllers of a busy machine serve
/// the objects, and the waits grow with the duration of the test.
const MOST_WAITING: usize = 80;
/// Longer than an API server needs on a busy machine.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);

/// Selects the probe's objects.
fn made() -> watcher::Config {
    watcher::Config::default().labels(MADE)
}

/// Records every version of the Nodes. A watch that breaks continues at the same version.
pub async fn watch_nodes(place: Place, book: Arc<watch::Sender<Book>>) {
    let events = watcher(Api::<Node>::all(place.shoot), made()).default_backoff();
    pin_mut!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(node)) => book.send_modify(|book| book.see_node(&node, true, Instant::now())),
            Ok(Event::InitApply(node)) => {
                book.send_modify(|book| book.see_node(&node, false, Instant::now()));
            }
            Ok(Event::Delete(node)) => book.send_modify(|book| book.node_went(&node)),
            _ => {}
        }
    }
}

/// Records the time at which Services get addresses.
pub async fn watch_services(place: Place, book: Arc<watch::Sender<Book>>) {
    let services = Api::<Service>::default_namespaced(place.shoot);
    let changes = watcher(services, made()).default_backoff().applied_objects();
    pin_mut!(changes);
    while let Some(change) = changes.next().await {
        if let Ok(service) = change {
            book.send_modify(|book| book.see_service(&service, Instant::now()));
        }
    }
}

/// Records the holder of the migration lock.
pub async fn watch_lock(place: Place, lock: String, book: Arc<watch::Sender<Book>>) {
    let leases = Api::<Lease>::namespaced(place.shoot, "kube-system");
    let config = watcher::Config::default().fields(&format!("metadata.name={lock}"));
    let events = watcher(leases, config).default_backoff();
    pin_mut!(events);
    while let Some(event) = events.next().await {
        let (lease, gone) = match event {
            Ok(Event::Apply(lease) | Event::InitApply(lease)) => (lease, false),
            Ok(Event::Delete(lease)) => (lease, true),
            _ => continue,
        };
        let holder = lease.spec.and_then(|spec| spec.holder_identity).filter(|_| !gone);
        let version = lease.metadata.resource_version;
        book.send_modify(|book| book.see_holder(version, &holder.unwrap_or_default()));
    }
}

/// Registers objects until stopped; completes the registration under way.
pub async fn register(place: Place, book: Arc<watch::Sender<Book>>, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for name in (0..STARTING).map(node_name) {
        until_taken(&book, || machine(&place, &name)).await;
    }
    for number in 0.. {
        let mut seen = book.subscribe();
        let next = async {
            ticks.tick().await;
            let few_wait = |book: &Book| book.waiting(Instant::now()).len() <= MOST_WAITING;
            // The sender lives in this function.
            let _ = seen.wait_for(few_wait).await;
        };
        if stop.run_until_cancelled(next).await.is_none() {
            return;
        }
        let (name, later) = (node_name(number), node_name(number + STARTING));
        tokio::join!(
            until_taken(&book, || machine(&place, &later)),
            until_taken(&book, || node(&place, &book, &name)),
            until_taken(&book, || service(&place, &book, number)),
        );
    }
}

/// Repeats the attempt until the API accepts the object; a refusal by the API is no fault of a controller.
async fn until_taken<F>(book: &watch::Sender<Book>, attempt: impl Fn() -> F)
where
    F: Future<Output = kube::Result<()>>,
{
    loop {
        let why = match tokio::time::timeout(TAKEN_WITHIN, attempt()).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {TAKEN_WITHIN:?}"),
        };
        book.send_modify(|book| book.refusals.push(why));
        tokio::time::sleep(EVERY).await;
    }
}

/// The kubelets of many machines register at the same moment.
pub async fn many_nodes(place: &Place, book: &watch::Sender<Book>, burst: u32) {
    let names = names(burst);
    let nodes = names.iter();
    join_all(nodes.map(|name| until_taken(book, move || node(place, book, name)))).await;
    many_machines(place, book, burst + 1).await;
}

/// The machines of a burst. The machines start well before the registration.
pub async fn many_machines(place: &Place, book: &watch::Sender<Book>, burst: u32) {
    let names = names(burst);
    let machines = names.iter();
    join_all(machines.map(|name| until_taken(book, move || machine(place, name)))).await;
}

fn names(burst: u32) -> Vec<String> {
    let number = 0..AT_ONCE;
    number.map(|number| format!("burst-{burst}-{number}")).collect()
}

/// The cloud starts a machine.
async fn machine(place: &Place, name: &str) -> kube::Result<()> {
    let instance = json!({
        "id": format!("i-{name}"), "addresses": [{"type": "Hostname", "address": name}],
        "zone": "0", "region": "local", "type": "local", "state": "running",
    });
    let entry = json!({"data": {name: instance.to_string()}});
    place
        .cloud
        .patch(&place.list(), &PatchParams::default(), &Patch::Merge(entry))
        .await
        .map(|_| ())
}

/// The kubelet of a machine registers a Node.
async fn node(place: &Place, book: &watch::Sender<Book>, name: &str) -> kube::Result<()> {
    book.send_modify(|book| book.node_comes(name, Instant::now()));
    let body = json!({
        "metadata": {"name": name, "labels": labels()},
        "spec": {"taints": [{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}]},
    });
    create(&Api::<Node>::all(place.shoot.clone()), body).await
}

fn node_name(number: u32) -> String {
    format!("probe-{number}")
}

async fn service(place: &Place, book: &watch::Sender<Book>, number: u32) -> kube::Result<()> {
    let name = format!("balanced-{number}");
    book.send_modify(|book| book.service_comes(&name, Instant::now()));
    let body = json!({
        "metadata": {"name": name, "labels": labels()},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 443}]},
    });
    create(&Api::<Service>::default_namespaced(place.shoot.clone()), body).await
}

fn labels() -> Value {
    let (key, value) = MADE.split_once('=').unwrap_or((MADE, ""));
    json!({key: value})
}

/// An existing object was created by an attempt whose answer was lost.
async fn create<K>(api: &Api<K>, body: Value) -> kube::Result<()>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::Serialize + DeserializeOwned,
{
    let object: K = serde_json::from_value(body).map_err(kube::Error::SerdeError)?;
    match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        other => other.map(|_| ()),
    }
}
