//! Measures whether a shoot's controllers serve while the controllers move between managers. A probe
//! registers Nodes as kubelets do and creates Services of type LoadBalancer, without pause. The probe records
//! the wait of each object and the manager that served the object.

mod book;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod book_tests;
mod work;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Service};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

pub use book::{Book, Manager, NodeRecord, Range, ServiceRecord, Waits};

use crate::{landscape::Landscape, proof, shoot::UserShoot};

/// Namespace that is the account in the cloud, see hack/install.sh.
const ACCOUNT: &str = "cloud";
/// The ledger of load balancers of all clusters in the account.
const LEDGER: &str = "load-balancers";
/// Label of the probe's objects.
const MADE: &str = "repot.test/made=probe";
/// Maximum wait of a Node or a Service: two locks expire in sequence, on a slow machine. A longer wait is a
/// hang.
const SERVED_WITHIN: Duration = Duration::from_secs(150);
/// Bounds the release of all load balancers. A slower machine has more load balancers: one for each second.
const REMOVED_WITHIN: Duration = Duration::from_secs(300);

/// The clients of a probe.
#[derive(Clone)]
struct Place {
    shoot: Client,
    cloud: Api<ConfigMap>,
    /// The shoot's technical id, also the cluster's name in the cloud.
    cluster: String,
}

/// Bounds the time until an API accepts the work.
async fn taken(when: &str, work: impl Future<Output = ()>) -> Result<()> {
    let in_time = testkit::timeout(SERVED_WITHIN, work).await;
    in_time.with_context(|| format!("{when}: Nodes and machines cannot be registered"))
}

/// A probe at work.
pub struct Probe {
    place: Place,
    book: Arc<watch::Sender<Book>>,
    stop: CancellationToken,
    bursts: AtomicU32,
    registering: JoinSet<()>,
    _watching: JoinSet<()>,
}

impl Probe {
    /// Starts. `lock` is the name of the migration lock in the shoot's kube-system.
    pub async fn start(landscape: &Landscape, shoot: &UserShoot, lock: &str) -> Result<Self> {
        let path = landscape.variable("LANDSCAPE_STATE")?.to_owned() + "/cloud.kubeconfig";
        let account = Kubeconfig::read_from(&path).with_context(|| format!("cannot read {path}"))?;
        let account = Config::from_custom_kubeconfig(account, &KubeConfigOptions::default()).await?;
        let place = Place {
            shoot: shoot.client().await?,
            cloud: Api::namespaced(Client::try_from(account)?, ACCOUNT),
            cluster: proof::technical_id(shoot).await?,
        };
        let (book, stop) = (
            Arc::new(watch::Sender::new(Book::default())),
            CancellationToken::new(),
        );
        taken("at first", work::many_machines(&place, &book, 0)).await?;
        let (mut registering, mut watching) = (JoinSet::new(), JoinSet::new());
        watching.spawn(work::watch_nodes(place.clone(), Arc::clone(&book)));
        watching.spawn(work::watch_services(place.clone(), Arc::clone(&book)));
        watching.spawn(work::watch_lock(
            place.clone(),
            lock.to_owned(),
            Arc::clone(&book),
        ));
        registering.spawn(work::register(place.clone(), Arc::clone(&book), stop.clone()));
        Ok(Self {
            place,
            book,
            stop,
            bursts: AtomicU32::new(0),
            registering,
            _watching: watching,
        })
    }

    /// Registers many Nodes at once, so that two managers that both assign ranges would be detected. Waits
    /// until these Nodes and all earlier objects are served. Returns the managers that assigned the ranges of
    /// Nodes created after now.
    pub async fn served(&self, when: &str) -> Result<BTreeSet<Option<Manager>>> {
        let now = Instant::now();
        let burst = self.bursts.fetch_add(1, Ordering::Relaxed);
        taken(when, work::many_nodes(&self.place, &self.book, burst)).await?;
        let came = Instant::now();
        let served = |book: &Book| book.waiting(came).is_empty();
        let mut seen = self.book.subscribe();
        // The result of the wait holds a lock on the book, and the lock must be dropped.
        let in_time = testkit::timeout(SERVED_WITHIN, seen.wait_for(served))
            .await
            .is_ok();
        let book = self.book();
        ensure!(
            in_time,
            "{when}: not served within {SERVED_WITHIN:?}: {:?}; attempts to register that failed: {}, the last one: {:?}",
            book.waiting(came),
            book.refusals.len(),
            book.refusals.last()
        );
        Ok(book.givers(now))
    }

    /// The same, where all ranges must be of this manager.
    pub async fn served_by(&self, manager: Manager, when: &str) -> Result<()> {
        let givers = self.served(when).await?;
        ensure!(
            givers == BTreeSet::from([Some(manager)]),
            "{when}: ranges are of {givers:?}, and not of {manager:?} alone"
        );
        Ok(())
    }

    /// The observations until now.
    #[must_use]
    pub fn book(&self) -> Book {
        self.book.borrow().clone()
    }

    /// Stops the registration, waits until no object waits, removes all created objects, and returns the
    /// book.
    pub async fn stop(mut self) -> Result<Book> {
        self.stop.cancel();
        let ended = testkit::timeout(SERVED_WITHIN, self.registering.join_next()).await;
        let refused = || format!("cannot register: {:?}", self.book().refusals.last());
        ended.with_context(refused)?.transpose()?;
        let now = Instant::now();
        let mut seen = self.book.subscribe();
        let nobody_waits = |book: &Book| book.waiting(now).is_empty();
        let in_time = testkit::timeout(SERVED_WITHIN, seen.wait_for(nobody_waits))
            .await
            .is_ok();
        let book = self.book();
        ensure!(in_time, "never served: {:?}", book.waiting(now));
        self.remove().await?;
        Ok(book)
    }

    /// Services first: the addresses must be released.
    async fn remove(&self) -> Result<()> {
        let services = Api::<Service>::default_namespaced(self.place.shoot.clone());
        let nodes = Api::<Node>::all(self.place.shoot.clone());
        let (delete, made) = (DeleteParams::default(), ListParams::default().labels(MADE));
        services.delete_collection(&delete, &made).await?;
        let left = proof::until_nothing(REMOVED_WITHIN, || async {
            Ok(services
                .list(&made)
                .await?
                .iter()
                .map(ResourceExt::name_any)
                .collect())
        })
        .await?;
        ensure!(left.is_empty(), "Services do not go: {left:?}");
        let of_cluster = format!("{}.", self.place.cluster);
        let ledger = self.place.cloud.get_opt(LEDGER).await?;
        let kept: Vec<_> = ledger
            .and_then(|ledger| ledger.data)
            .unwrap_or_default()
            .into_keys()
            .filter(|key| key.starts_with(&of_cluster))
            .collect();
        ensure!(kept.is_empty(), "the cloud still has load balancers: {kept:?}");
        nodes.delete_collection(&delete, &made).await?;
        self.place
            .cloud
            .patch(
                &self.place.list(),
                &PatchParams::default(),
                &Patch::Merge(json!({"data": null})),
            )
            .await?;
        Ok(())
    }
}

impl Place {
    /// Name of the cloud's list of the shoot's instances.
    fn list(&self) -> String {
        format!("instances.{}", self.cluster)
    }
}
