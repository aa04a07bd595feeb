//! The one `main` of every manager: answer what is asked of the table, run a process, and run controllers
//! under its locks.

use std::{future::Future, process::ExitCode};

use permit::Permit;
use runtime::{Connection, Process};

use super::Locks;

/// Why the election may talk without a permit.
const ELECTION: &str = "the election decides who has a permit";

impl Locks {
    /// Adds to `process` what runs the controllers under these locks. `work` is called once for each lock,
    /// when that is held, with the names of the controllers under it and the right that follows from the
    /// lock; it must not detach anything (invariant 4). `/healthz` tells of a lock that should have been
    /// renewed, `/metrics` has the numbers of the locks, and `/readyz` tells of a lock that cannot be read.
    ///
    /// `elections` leads to the cluster where the Leases are. It must be a connection of its own, so that
    /// work which waits for answers never delays a renewal.
    pub fn start<W, F>(self, process: &mut Process, elections: &Connection, work: W)
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
            self.run(&client, register, shutdown, work).await
        });
    }
}

/// Runs a process to its end; `start` gives it its parts.
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
