//! The shared `main` of every manager: runs a process, and runs controllers under the manager's locks.

use std::{future::Future, process::ExitCode};

use leader_migration::Locks;
use permit::Permit;
use runtime::{client::Connection, process::Process};

/// The reason why the election sends requests without a permit.
const ELECTION: &str = "the election decides who has a permit";

/// Adds the controllers under these locks to `process`. When a lock is won, `work` is called once with the
/// names of the controllers under the lock and with the lock's permit. `work` must not detach tasks, because
/// detached tasks would outlive the lock. `/healthz` reports a lock that should have been renewed, `/metrics`
/// has the metrics of the locks, and `/readyz` reports a lock that cannot be read.
///
/// `elections` leads to the cluster with the Leases. The connection must be separate from the connections of
/// the work, so that work with slow requests never delays a renewal.
pub fn start_controllers<W, F>(locks: Locks, process: &mut Process, elections: &Connection, work: W)
where
    W: Fn(Vec<&'static str>, Permit) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), String>> + Send + 'static,
{
    let (health, metrics) = (process.health.clone(), process.metrics.clone());
    let readiness = process.readiness.clone();
    let election = readiness.awaiting("the election of a leader has not begun");
    let (client, shutdown) = (
        elections.client(&Permit::sole(ELECTION)),
        process.shutdown.clone(),
    );
    process.fallible_part("controllers", async move {
        let register = |locks: &lease::Metrics| {
            let (overdue, unread) = (locks.clone(), locks.clone());
            health.add(move || overdue.overdue());
            readiness.add(move || unread.unread());
            metrics.register(|all| locks.register(all));
            drop(election);
        };
        locks
            .run(&client, register, shutdown, work)
            .await
            .map_err(|error| error.to_string())
    });
}

/// Runs a process until the end of the process; `start` adds the parts of the process.
pub fn run<F>(name: &'static str, start: impl FnOnce(Process) -> F) -> ExitCode
where
    F: Future<Output = Result<Process, String>>,
{
    let process = Process::new(name);
    runtime::process::run(async move {
        let process = start(process).await?;
        process.run().await.map_err(|error| error.to_string())
    })
}
