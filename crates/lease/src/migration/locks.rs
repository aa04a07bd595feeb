//! A manager's controllers, each under its lock: what every `main` of the suite does after it has read its flags.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use kube::Client;
use tokio_util::sync::CancellationToken;

use super::{
    assignment::{Assignment, assignment},
    error::ConfigError,
    flags::{Electors, Flags},
    names::Manager,
    plan::Migration,
    run::run_with_leader_migration,
};
use crate::{Held, Metrics};

/// The locks of a manager, and which of its controllers run under which.
#[derive(Clone, Debug)]
pub struct Locks {
    flags: Flags,
    manager: Manager,
    migration: Option<Migration>,
    main: Vec<&'static str>,
    migrated: Vec<&'static str>,
}

impl Locks {
    /// Puts each of `controllers`, which are those that this process could run, under its lock. Those that another manager
    /// runs are left out.
    ///
    /// # Errors
    /// Flags or a configuration with which the process must not start (RK-17, RK-18, RK-19).
    pub fn assign(
        flags: &Flags,
        manager: &Manager,
        controllers: &[&'static str],
    ) -> Result<Self, ConfigError> {
        flags.timing()?;
        let migration = flags.migration(manager)?;
        let config = migration.as_ref().map(|migration| &migration.config);
        let under = |lock: Assignment| -> Vec<&'static str> {
            controllers
                .iter()
                .copied()
                .filter(|name| assignment(name, manager.component, config) == lock)
                .collect()
        };
        Ok(Self {
            main: under(Assignment::Main),
            migrated: under(Assignment::Migrated),
            flags: flags.clone(),
            manager: *manager,
            migration,
        })
    }

    /// What the configuration takes away, one line each, for the log (RK-34).
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.migration
            .as_ref()
            .map(Migration::warnings)
            .unwrap_or_default()
    }

    /// Runs the controllers until `shutdown`. `work` is called once for each lock, when that is held, with the names of the
    /// controllers under it; it must not detach anything (invariant 4), and should fence its clients ([`Held::fence`]). Without
    /// leader election it is called at once and without a lock. `client` is of the cluster where the Leases are.
    ///
    /// # Errors
    /// A lock was lost, or controllers could not be started: the process must exit (RK-33).
    pub async fn run<W, F>(
        self,
        client: &Client,
        metrics: &Metrics,
        shutdown: CancellationToken,
        work: W,
    ) -> Result<(), String>
    where
        W: Fn(Vec<&'static str>, Option<Held>) -> F,
        F: Future<Output = Result<(), String>>,
    {
        let electors = self
            .flags
            .electors(client, &self.manager, self.migration.as_ref(), metrics)
            .map_err(|error| error.to_string())?;
        let Some(Electors { main, migration }) = electors else {
            return work(self.main, None).await;
        };
        // Who runs nothing under the migration lock must not keep it from who does (RK-05).
        let migration = migration.filter(|_| !self.migrated.is_empty());
        let failure = Mutex::new(None);
        let (work, failed, ended) = (&work, &failure, &shutdown);
        let under = |controllers: Vec<&'static str>| {
            move |held: Held| async move {
                if controllers.is_empty() {
                    // A lock may be held for others' sake; its work is to last as long as that of the other lock.
                    ended.cancelled().await;
                } else if let Err(why) = work(controllers, Some(held)).await {
                    failed
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .get_or_insert(why);
                }
            }
        };
        let (main_work, migrated_work) = (under(self.main), under(self.migrated));
        let token = shutdown.clone();
        run_with_leader_migration(&main, migration.as_ref(), token, main_work, migrated_work)
            .await
            .map_err(|lost| lost.to_string())?;
        let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(()), Err)
    }
}
