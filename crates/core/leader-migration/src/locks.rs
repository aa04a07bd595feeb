//! A manager's controllers, each under a lock: the common part of every `main` after the flags are parsed.

use std::{
    fmt,
    future::Future,
    sync::{Mutex, PoisonError},
};

use kube::Client;
use permit::Permit;
use tokio_util::sync::CancellationToken;

use super::{
    assignment::{Assignment, assign_in_manager},
    both_locks::run_with_leader_migration,
    error::{ConfigError, RunError},
    flags::{Electors, Flags},
    plan::{Migration, OnDisagreement},
    table::{Manager, ManagerTable},
};
use lease::Metrics;

/// The locks of a manager, and the assignment of the controllers to the locks.
#[derive(Clone, Debug)]
pub struct Locks {
    flags: Flags,
    manager: Manager,
    migration: Option<Migration>,
    on_disagreement: OnDisagreement,
    /// Every controller of the manager; `None` where the process's own flags switch the controller off.
    controllers: Vec<(&'static str, Option<Assignment>)>,
}

impl Locks {
    /// Assigns each controller of `manager` to a lock. Controllers that another manager runs are left out.
    /// `manager` lists the home controllers and the guests, also for a manager that is not in `table`. The
    /// names in a configuration are compared with `table`.
    ///
    /// # Errors
    /// Flags or a configuration with which the process must not start (RK-17, RK-18, RK-19).
    pub fn assign(flags: &Flags, manager: &Manager, table: &ManagerTable) -> Result<Self, ConfigError> {
        Self::assign_each(flags, manager, table, |name, migration| {
            let config = migration.map(|migration| &migration.config);
            Some(assign_in_manager(name, manager, table, config))
        })
    }

    /// The same for a process with flags that choose the controllers: the remaining controllers are switched
    /// off. Without leader migration all chosen controllers run under the main lock, guests too: the
    /// administrator who chooses a guest has switched the guest off in its home (RK-23).
    ///
    /// # Errors
    /// As [`Locks::assign`].
    pub fn assign_chosen(
        flags: &Flags,
        manager: &Manager,
        table: &ManagerTable,
        is_chosen: impl Fn(&str) -> bool,
    ) -> Result<Self, ConfigError> {
        Self::assign_each(flags, manager, table, |name, migration| {
            let lock = migration.map_or(Assignment::Main, |migration| migration.assignment(name));
            is_chosen(name).then_some(lock)
        })
    }

    fn assign_each(
        flags: &Flags,
        manager: &Manager,
        table: &ManagerTable,
        lock: impl Fn(&'static str, Option<&Migration>) -> Option<Assignment>,
    ) -> Result<Self, ConfigError> {
        flags.timing()?;
        let migration = flags.migration(manager, table)?;
        let under = |name| (name, lock(name, migration.as_ref()));
        Ok(Self {
            controllers: manager.all().map(under).collect(),
            flags: flags.clone(),
            manager: *manager,
            migration,
            on_disagreement: OnDisagreement::default(),
        })
    }

    /// With this reaction to a holder of the migration lock with a different list of controllers.
    #[must_use]
    pub fn on_disagreement(self, on_disagreement: OnDisagreement) -> Self {
        Self {
            on_disagreement,
            ..self
        }
    }

    /// The controllers that the configuration takes away, one line each (RK-34).
    fn warnings(&self) -> Vec<String> {
        let Some(migration) = &self.migration else {
            return Vec::new();
        };
        let mut warnings = migration.warnings();
        let off = self.controllers.iter().filter(|(_, lock)| lock.is_none());
        warnings.extend(off.filter_map(|(name, _)| migration.switched_off(name)));
        if self.under(Assignment::Migrated).is_empty() {
            warnings.push(migration.no_part());
        }
        warnings
    }

    /// Whether this process runs the controller, under either lock.
    #[must_use]
    pub fn runs(&self, controller: &str) -> bool {
        let runs = [Assignment::Main, Assignment::Migrated].map(Some);
        self.controllers
            .iter()
            .any(|(name, lock)| *name == controller && runs.contains(lock))
    }

    fn under(&self, lock: Assignment) -> Vec<&'static str> {
        let of_lock = self.controllers.iter().filter(|(_, of)| *of == Some(lock));
        of_lock.map(|(name, _)| *name).collect()
    }

    /// Logs the warnings of the configuration and runs the controllers until `shutdown`. When a lock is won,
    /// `work` is called once with the names of the controllers under the lock. `work` must not detach tasks
    /// (these would outlive the lock), and should fence the clients ([`Permit::layer`]). Without leader
    /// election, `work` is called at once and without a lock. `client` is for the cluster with the Leases.
    /// `register` receives the metrics of the locks, for the registry of the process.
    ///
    /// # Errors
    /// A lock was lost, or controllers could not be started: the process must exit (RK-33).
    pub async fn run<W, F, E>(
        self,
        client: &Client,
        register: impl FnOnce(&Metrics),
        shutdown: CancellationToken,
        work: W,
    ) -> Result<(), RunError<E>>
    where
        W: Fn(Vec<&'static str>, Permit) -> F,
        F: Future<Output = Result<(), E>>,
    {
        for warning in self.warnings() {
            tracing::warn!("{warning}");
        }
        let metrics = Metrics::default();
        register(&metrics);
        let (in_main, in_migrated) = (self.under(Assignment::Main), self.under(Assignment::Migrated));
        let migration = self
            .migration
            .as_ref()
            .map(|migration| (migration, migration.terms(&in_main, self.on_disagreement)));
        let electors = self.flags.electors(client, &self.manager, migration, &metrics)?;
        let Some(Electors { main, migration }) = electors else {
            return work(
                in_main,
                Permit::sole("leader election is off: there is no other process of this manager"),
            )
            .await
            .map_err(RunError::Controllers);
        };
        // A process without work under the migration lock must leave the lock to a process with such work
        // (RK-05).
        let migration = migration.filter(|_| !in_migrated.is_empty());
        let failure = Mutex::new(None);
        let (work, failed, ended) = (&work, &failure, &shutdown);
        let under = |controllers: Vec<&'static str>| {
            move |permit: Permit| async move {
                if controllers.is_empty() {
                    // The main lock may be held only for the migration lock; the empty work must last as long
                    // as the work of the migration lock.
                    ended.cancelled().await;
                } else if let Err(why) = work(controllers, permit).await {
                    failed
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .get_or_insert(why);
                }
            }
        };
        let (main_work, migrated_work) = (under(in_main), under(in_migrated));
        let token = shutdown.clone();
        run_with_leader_migration(&main, migration.as_ref(), token, main_work, migrated_work).await?;
        let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        failure.map_or(Ok(()), |why| Err(RunError::Controllers(why)))
    }
}

impl fmt::Display for Locks {
    /// The output of `--print-leader-migration`: a line `NAME main|migrated|unowned|disabled` for each
    /// controller of the manager, by the present names. Then, if there are warnings, lines that begin with
    /// `warning: `.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, lock) in &self.controllers {
            match lock {
                Some(lock) => writeln!(f, "{name} {lock}")?,
                None => writeln!(f, "{name} disabled")?,
            }
        }
        self.warnings()
            .iter()
            .try_for_each(|warning| writeln!(f, "warning: {warning}"))
    }
}
