//! An example for authors: a controller moves from a manager to a second manager of the same author, on a
//! real API server. Only the public parts of the crate are used.
//!
//! The store runs `orders` and `invoices`. Billing has `reminders` and can run `invoices` as a guest. Both
//! managers have the same file, and share the migration lock of the file. When the store ends, billing runs
//! `invoices`.
#![allow(clippy::unwrap_used)]
#![cfg(all(feature = "clap", feature = "yaml"))]

use std::{
    collections::BTreeSet,
    fs,
    future::pending,
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use clap::Parser;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, api::PostParams};
use leader_migration::{Flags, Locks, Manager, ManagerTable, OnDisagreement, RunError};
use serde_json::json;
use testkit::{ControlPlane, eventually};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const STORE: Manager = Manager {
    component: "store",
    controllers: &["orders", "invoices"],
    guests: &[],
};

const BILLING: Manager = Manager {
    component: "billing",
    controllers: &["reminders"],
    guests: &["invoices"],
};

/// The author's table: `bills` is the former name of `invoices`.
const TABLE: ManagerTable = ManagerTable {
    managers: &[STORE, BILLING],
    aliases: &[&[("bills", "invoices")]],
    locks: &[],
};

const FILE: &str = "\
apiVersion: controllermanager.config.k8s.io/v1
kind: LeaderMigrationConfiguration
leaderName: invoices-migration
controllerLeaders:
- name: invoices
  component: '*'
";

const NAMESPACE: &str = "kube-system";

/// Longer than any hand-over here on a busy machine; a bound, not a measurement.
const BOUND: Duration = Duration::from_secs(60);

/// The command line of either manager.
#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    leader: Flags,
}

/// The controllers that run now, each with the manager.
#[derive(Clone, Default)]
struct Board(Arc<Mutex<BTreeSet<(&'static str, &'static str)>>>);

/// A controller that runs, until dropped.
struct Entry {
    board: Board,
    key: (&'static str, &'static str),
}

impl Board {
    fn running(&self) -> MutexGuard<'_, BTreeSet<(&'static str, &'static str)>> {
        self.0.lock().unwrap()
    }

    fn enter(&self, manager: &'static str, controller: &'static str) -> Entry {
        let mut running = self.running();
        let twice = running.iter().any(|(_, name)| *name == controller);
        running.insert((manager, controller));
        drop(running);
        assert!(!twice, "{controller} runs in two managers");
        Entry {
            board: self.clone(),
            key: (manager, controller),
        }
    }

    /// The work of a manager under a lock. The work ends when the future is dropped.
    async fn work(self, manager: &'static str, controllers: Vec<&'static str>) -> Result<(), String> {
        let entries: Vec<_> = controllers
            .into_iter()
            .map(|controller| self.enter(manager, controller))
            .collect();
        pending::<()>().await;
        drop(entries);
        Ok(())
    }

    /// Waits until exactly these controllers run.
    async fn shows(&self, expected: &[(&'static str, &'static str)]) {
        eventually("the controllers", BOUND, async || {
            let running: Vec<_> = self.running().iter().copied().collect();
            if running == expected {
                Ok(())
            } else {
                Err(format!("{running:?} run"))
            }
        })
        .await
        .unwrap();
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.board.running().remove(&self.key);
    }
}

/// The `main` of a manager, after the flags are parsed.
async fn run(
    manager: Manager,
    flags: Flags,
    client: Client,
    board: Board,
    shutdown: CancellationToken,
) -> Result<(), RunError<String>> {
    let locks = Locks::assign(&flags, &manager, &TABLE)?.on_disagreement(OnDisagreement::StopMigrated);
    let work = move |controllers, _permit| board.clone().work(manager.component, controllers);
    locks.run(&client, |_metrics| {}, shutdown, work).await
}

/// The flags of a manager that takes part in the migration.
fn flags(file: &Path) -> Flags {
    let file = format!("--leader-migration-config={}", file.display());
    let namespace = format!("--leader-elect-resource-namespace={NAMESPACE}");
    let words = ["manager", "--enable-leader-migration", &file, &namespace];
    CommandLine::parse_from(words).leader
}

/// Creates a released Lease, so that no candidate has to wait as for a deleted Lease.
async fn release(client: &Client, lock: &str) {
    let leases: Api<Lease> = Api::namespaced(client.clone(), NAMESPACE);
    let lease = json!({"metadata": {"name": lock}, "spec": {"holderIdentity": ""}});
    let lease = serde_json::from_value(lease).unwrap();
    leases.create(&PostParams::default(), &lease).await.unwrap();
}

#[tokio::test]
async fn a_controller_moves_when_its_manager_ends() {
    let plane = ControlPlane::start("hand-over").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.yaml");
    fs::write(&file, FILE).unwrap();
    for lock in ["store", "billing", "invoices-migration"] {
        release(&plane.admin(), lock).await;
    }
    let board = Board::default();
    let (store_ends, billing_ends) = (CancellationToken::new(), CancellationToken::new());
    let mut processes = JoinSet::new();
    let mut start = |manager: Manager, ends: &CancellationToken| {
        processes.spawn(run(
            manager,
            flags(&file),
            plane.admin(),
            board.clone(),
            ends.clone(),
        ));
    };

    start(STORE, &store_ends);
    board.shows(&[("store", "invoices"), ("store", "orders")]).await;
    start(BILLING, &billing_ends);
    board
        .shows(&[
            ("billing", "reminders"),
            ("store", "invoices"),
            ("store", "orders"),
        ])
        .await;
    store_ends.cancel();
    board
        .shows(&[("billing", "invoices"), ("billing", "reminders")])
        .await;
    billing_ends.cancel();
    while let Some(process) = processes.join_next().await {
        process.unwrap().unwrap();
    }
    board.shows(&[]).await;
}
