//! Both locks on a real API server.

use std::{
    future::{Future, pending},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use lease::{Elector, Lock, Lost, Metrics, Timing};
use serde_json::json;
use testkit::{ControlPlane, eventually};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::run_with_leader_migration;

/// Longer than any hand-over here on a busy machine; a bound, not a measurement.
const BOUND: Duration = Duration::from_secs(40);
const NAMESPACE: &str = "kube-system";
const SHARED: &str = "shared";

/// Number of runs now, and maximum number of runs at the same time.
#[derive(Default)]
struct Running {
    now: AtomicUsize,
    most: AtomicUsize,
    starts: AtomicUsize,
}

/// A run of some work, until dropped.
struct Run(Arc<Running>);

impl Run {
    fn begin(running: &Arc<Running>) -> Self {
        let now = running.now.fetch_add(1, Ordering::SeqCst) + 1;
        running.most.fetch_max(now, Ordering::SeqCst);
        running.starts.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(running))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Running {
    fn now(&self) -> usize {
        self.now.load(Ordering::SeqCst)
    }
}

/// A process of a manager that shares the migration lock.
#[derive(Clone)]
struct Process {
    client: Client,
    manager: &'static str,
    identity: &'static str,
    main: Arc<Running>,
    migrated: Arc<Running>,
    shutdown: CancellationToken,
    metrics: Metrics,
}

impl Process {
    fn new(
        plane: &ControlPlane,
        manager: &'static str,
        identity: &'static str,
        migrated: &Arc<Running>,
    ) -> Self {
        Self {
            client: plane.admin(),
            manager,
            identity,
            main: Arc::default(),
            migrated: Arc::clone(migrated),
            shutdown: CancellationToken::new(),
            metrics: Metrics::default(),
        }
    }

    /// No lock has to expire in these tests. So the lease is long (a busy machine must not lose a lock), and
    /// reads are frequent.
    fn elector(&self, lock: &str) -> Elector {
        let seconds = Duration::from_secs;
        let timing = Timing::new(seconds(30), seconds(20), Duration::from_millis(500)).unwrap();
        let lock = Lock::new(self.client.clone(), NAMESPACE, lock, self.identity);
        Elector::new(lock, timing, self.metrics.clone())
    }

    async fn run(self) -> Result<(), Lost> {
        for lock in [self.manager, SHARED] {
            free(&self.client, lock).await;
        }
        let (main, migration) = (self.elector(self.manager), self.elector(SHARED));
        run_with_leader_migration(
            &main,
            Some(&migration),
            self.shutdown.clone(),
            |_| work(&self.main),
            |_| work(&self.migrated),
        )
        .await
    }
}

fn work(running: &Arc<Running>) -> impl Future<Output = ()> + use<> {
    let running = Arc::clone(running);
    async move {
        let _run = Run::begin(&running);
        pending::<()>().await;
    }
}

/// Creates a released Lease if there is no Lease: no candidate has to wait as for a deleted Lease.
async fn free(client: &Client, lock: &str) {
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let lease = json!({"metadata": {"name": lock}, "spec": {"holderIdentity": ""}});
    let lease = serde_json::from_value(lease).unwrap();
    match leases.create(&PostParams::default(), &lease).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(error) => panic!("{error}"),
    }
}

async fn holder(client: &Client, lock: &str) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let lease = leases.get_opt(lock).await.unwrap()?;
    lease.spec?.holder_identity.filter(|holder| !holder.is_empty())
}

/// Waits until the lock has this holder; empty means no holder.
async fn held_by(client: &Client, lock: &str, expected: &str) {
    eventually(&format!("{lock} is held by {expected:?}"), BOUND, async || {
        let now = holder(client, lock).await.unwrap_or_default();
        if now == expected {
            Ok(())
        } else {
            Err(format!("held by {now:?}"))
        }
    })
    .await
    .unwrap();
}

async fn runs(running: &Running, expected: usize) {
    eventually("the work", BOUND, async || {
        let now = running.now();
        if now == expected {
            Ok(())
        } else {
            Err(format!("{now} run"))
        }
    })
    .await
    .unwrap();
}

/// The results of all processes. A process that does not end fails the test instead of blocking the test.
async fn ended(mut processes: JoinSet<Result<(), Lost>>) -> Vec<Result<(), Lost>> {
    let mut all = Vec::new();
    while let Some(process) = testkit::timeout(BOUND, processes.join_next()).await.unwrap() {
        all.push(process.unwrap());
    }
    all
}

async fn steal(client: &Client, lock: &str) {
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let patch = serde_json::json!({"spec": {"holderIdentity": "a-hand"}});
    leases
        .patch(lock, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
}

/// RK-05, RK-22: while the old manager has the migration lock, the new manager runs its main controllers and
/// waits. The new manager takes over when the old manager ends, and hands back on the same path (RK-24). The
/// migrated controllers never run in both.
#[tokio::test]
async fn controllers_move_to_another_manager_and_back() {
    let plane = ControlPlane::start("migration").await.unwrap();
    let client = plane.admin();
    let migrated = Arc::<Running>::default();
    let mut processes = JoinSet::new();

    let old = Process::new(&plane, "old-manager", "old-1", &migrated);
    processes.spawn(old.clone().run());
    held_by(&client, SHARED, "old-1").await;
    runs(&migrated, 1).await;
    assert_eq!(old.main.now(), 1);
    assert!(old.metrics.is_active(SHARED) && old.metrics.is_active("old-manager"));

    let new = Process::new(&plane, "new-manager", "new-1", &migrated);
    processes.spawn(new.clone().run());
    runs(&new.main, 1).await;
    assert_eq!(holder(&client, SHARED).await.as_deref(), Some("old-1"));
    assert!(!new.metrics.is_active(SHARED));

    old.shutdown.cancel();
    held_by(&client, SHARED, "new-1").await;
    held_by(&client, "old-manager", "").await;
    runs(&migrated, 1).await;

    let again = Process::new(&plane, "old-manager", "old-2", &migrated);
    processes.spawn(again.clone().run());
    runs(&again.main, 1).await;
    new.shutdown.cancel();
    held_by(&client, SHARED, "old-2").await;
    runs(&migrated, 1).await;
    again.shutdown.cancel();

    assert!(ended(processes).await.iter().all(Result::is_ok));
    assert_eq!(
        migrated.most.load(Ordering::SeqCst),
        1,
        "two managers ran what is migrated"
    );
    assert_eq!(migrated.starts.load(Ordering::SeqCst), 3);
    held_by(&client, SHARED, "").await;
}

/// The main lock first: a process that waits for the main lock does not request the migration lock, although
/// the migration lock is free.
#[tokio::test]
async fn the_migration_lock_is_not_asked_for_without_the_main_lock() {
    let plane = ControlPlane::start("order").await.unwrap();
    let client = plane.admin();
    let first = Process::new(&plane, "manager", "first", &Arc::default());
    let second = Process::new(&plane, "manager", "second", &Arc::default());
    let mut processes = JoinSet::new();

    // The first process takes no part in the migration, as before an upgrade.
    let main_only = first.clone();
    processes.spawn(async move {
        let main = main_only.elector("manager");
        let (under_main, never) = (|_| work(&main_only.main), |_| work(&main_only.migrated));
        run_with_leader_migration(&main, None, main_only.shutdown.clone(), under_main, never).await
    });
    held_by(&client, "manager", "first").await;
    processes.spawn(second.clone().run());
    // After several renewals the second process has seen that the main lock is held.
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let renewed = async || {
        leases
            .get("manager")
            .await
            .unwrap()
            .metadata
            .resource_version
            .unwrap()
    };
    for _ in 0..6 {
        let before = renewed().await;
        eventually("a renewal", BOUND, async || {
            if renewed().await == before {
                Err("not yet")
            } else {
                Ok(())
            }
        })
        .await
        .unwrap();
    }
    assert_eq!(
        holder(&client, SHARED).await,
        None,
        "asked for without the main lock"
    );
    assert_eq!(second.main.now() + first.migrated.now(), 0);

    first.shutdown.cancel();
    held_by(&client, "manager", "second").await;
    held_by(&client, SHARED, "second").await;
    runs(&second.migrated, 1).await;
    second.shutdown.cancel();
    assert!(ended(processes).await.iter().all(Result::is_ok));
}

/// RK-33: whichever lock is lost, both works end, the process must exit, and the second lock is released.
#[tokio::test]
async fn the_loss_of_one_lock_ends_both() {
    let plane = ControlPlane::start("loss").await.unwrap();
    let client = plane.admin();
    for (manager, lost, kept) in [
        ("loses-main", "loses-main", SHARED),
        ("loses-shared", SHARED, "loses-shared"),
    ] {
        let process = Process::new(&plane, manager, manager, &Arc::default());
        let mut running = JoinSet::new();
        running.spawn(process.clone().run());
        runs(&process.main, 1).await;
        runs(&process.migrated, 1).await;
        steal(&client, lost).await;
        let expected = Lost::Taken {
            lock: format!("{NAMESPACE}/{lost}"),
            holder: "a-hand".to_owned(),
        };
        assert_eq!(ended(running).await, [Err(expected)]);
        assert_eq!(process.main.now() + process.migrated.now(), 0);
        assert_eq!(holder(&client, kept).await, None, "{kept} is given back");
    }
}

/// A work that ends also ends the second work, without an error.
#[tokio::test]
async fn the_end_of_one_work_ends_both() {
    let plane = ControlPlane::start("end").await.unwrap();
    let client = plane.admin();
    for lock in ["ends", SHARED] {
        free(&client, lock).await;
    }
    for ends in ["main", "migrated"] {
        let process = Process::new(&plane, "ends", ends, &Arc::default());
        let (main, migration) = (process.elector("ends"), process.elector(SHARED));
        let both = CancellationToken::new();
        let until_both = |work: &'static str, running: &Arc<Running>| {
            let (both, running) = (both.clone(), Arc::clone(running));
            async move {
                let _run = Run::begin(&running);
                if work == "migrated" {
                    both.cancel();
                }
                both.cancelled().await;
                if work != ends {
                    pending::<()>().await;
                }
            }
        };
        let running = run_with_leader_migration(
            &main,
            Some(&migration),
            process.shutdown.clone(),
            |_| until_both("main", &process.main),
            |_| until_both("migrated", &process.migrated),
        );
        testkit::timeout(BOUND, running).await.unwrap().unwrap();
        assert_eq!(process.main.now() + process.migrated.now(), 0);
        assert!(
            !process.shutdown.is_cancelled(),
            "the process decides on its own end"
        );
        held_by(&client, "ends", "").await;
        held_by(&client, SHARED, "").await;
    }
}
