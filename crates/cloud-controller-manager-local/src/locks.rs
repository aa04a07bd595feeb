//! Which controller runs under which lock (KEP-2436).
//!
//! Without leader migration all run under the main lock, node IPAM too where `--allocate-node-cidrs` says so (RK-23): then no
//! other manager may run it. With leader migration the configuration decides, and node IPAM, whose home is the
//! kube-controller-manager, runs here only if the configuration names it.
//!
//! In a configuration this process is called `cloud-controller-manager`, as that of any cloud: so one file serves every
//! manager of a shoot, whatever its cloud is. Its main lock has its own name.

use std::{collections::BTreeSet, fmt, future::Future};

use lease::{
    Elector, Held, Lock, Metrics,
    migration::{Assignment, Flags, Manager, Migration, run_with_leader_migration},
};

use crate::{
    MANAGER,
    controllers::{Context, Name},
};

/// This process as a configuration of leader migration sees it.
const AS_MANAGER: Manager = Manager {
    component: "cloud-controller-manager",
    controllers: &[
        "cloud-node-controller",
        "cloud-node-lifecycle-controller",
        "service-lb-controller",
    ],
    guests: &["node-ipam-controller"],
};

/// The locks and what runs under each.
pub struct Locks {
    flags: Flags,
    timing: lease::Timing,
    migration: Option<Migration>,
    main: BTreeSet<Name>,
    migrated: BTreeSet<Name>,
    /// Left to another manager by the configuration.
    unowned: BTreeSet<Name>,
}

impl Locks {
    /// Puts each of these controllers under its lock.
    ///
    /// # Errors
    /// Flags or a configuration with which the process must not start (RK-17, RK-18).
    pub fn assign(flags: &Flags, controllers: &BTreeSet<Name>) -> Result<Self, String> {
        let mut flags = flags.clone();
        // Not the name of the component, which all cloud controller managers share.
        flags
            .leader_elect_resource_name
            .get_or_insert_with(|| MANAGER.0.to_owned());
        let migration = flags.migration(&AS_MANAGER).map_err(|e| e.to_string())?;
        let under = |assignment: Assignment| {
            let of = |name: &Name| match &migration {
                Some(migration) => migration.assignment(name.as_str()),
                None => Assignment::Main,
            };
            controllers
                .iter()
                .copied()
                .filter(|name| of(name) == assignment)
                .collect()
        };
        Ok(Self {
            timing: flags.timing().map_err(|e| e.to_string())?,
            main: under(Assignment::Main),
            migrated: under(Assignment::Migrated),
            unowned: under(Assignment::Unowned),
            migration,
            flags,
        })
    }

    /// Tells in the log what the configuration takes away (RK-34).
    pub fn warn(&self) {
        for warning in self.warnings() {
            tracing::warn!("{warning}");
        }
    }

    fn warnings(&self) -> Vec<String> {
        self.migration
            .as_ref()
            .map(Migration::warnings)
            .unwrap_or_default()
    }

    /// Runs the controllers, each under its lock, until shutdown.
    ///
    /// # Errors
    /// A lock was lost: the process must end (RK-33). Controllers that could not be started.
    pub async fn run<W, F>(self, context: Context, work: W) -> Result<(), String>
    where
        W: Fn(BTreeSet<Name>, Context, Option<Held>) -> F,
        F: Future<Output = Result<(), String>>,
    {
        let work = &work;
        if !self.flags.leader_elect {
            return work(self.main, context, None).await;
        }
        let metrics = Metrics::default();
        context.metrics.register(|registry| metrics.register(registry));
        let identity = lease::identity();
        let elector = |name: &str| {
            let namespace = &self.flags.leader_elect_resource_namespace;
            let lock = Lock::new(context.shoot.clone(), namespace, name, &identity);
            Elector::new(lock, self.timing, metrics.clone())
        };
        let main = elector(self.flags.main_lock(&AS_MANAGER));
        // Who runs nothing under the lock must not keep it from who does (RK-05).
        let migration = self.migration.as_ref().filter(|_| !self.migrated.is_empty());
        let migration = migration.map(|migration| elector(&migration.config.leader_name));
        let failure = std::sync::Mutex::new(None);
        let under = |names: BTreeSet<Name>, context: Context| {
            let failure = &failure;
            move |held: Held| async move {
                if let Err(why) = work(names, context, Some(held)).await {
                    failure
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .get_or_insert(why);
                }
            }
        };
        let (main_work, migrated_work) = (
            under(self.main, context.clone()),
            under(self.migrated, context.clone()),
        );
        run_with_leader_migration(
            &main,
            migration.as_ref(),
            context.shutdown.clone(),
            main_work,
            migrated_work,
        )
        .await
        .map_err(|lost| lost.to_string())?;
        failure
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .map_or(Ok(()), Err)
    }
}

impl fmt::Display for Locks {
    /// One line a controller, then warnings, as `--print-leader-migration` prints them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in Name::ALL {
            let lock = [
                (&self.main, Assignment::Main),
                (&self.migrated, Assignment::Migrated),
                (&self.unowned, Assignment::Unowned),
            ]
            .into_iter()
            .find(|(names, _)| names.contains(&name));
            match lock {
                Some((_, assignment)) => writeln!(f, "{name} {assignment}")?,
                None => writeln!(f, "{name} disabled")?,
            }
        }
        self.warnings()
            .iter()
            .try_for_each(|warning| writeln!(f, "warning: {warning}"))
    }
}
