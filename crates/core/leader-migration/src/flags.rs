//! The flags of leader election and leader migration, the same in every manager (RK-15 to RK-19).

use std::{str::FromStr, time::Duration};

use kube::Client;

#[cfg(feature = "clap")]
use super::duration;
use super::{
    config::LeaderMigrationConfiguration,
    error::{ConfigError, FeatureGateError, FlagsError},
    plan::Migration,
    table::{KnownNames, Manager, ManagerTable},
};
use lease::{Elector, Lock, LockTerms, Metrics, Timing, identity};

/// The feature gate of leader migration (RK-19).
const GATE: &str = "ControllerManagerLeaderMigration";

/// Name of the built-in configuration in messages.
const DEFAULT_ORIGIN: &str = "default configuration";

/// The settings of leader election and leader migration. With the feature `clap`, flattened into the flags
/// of a manager.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[cfg_attr(feature = "clap", command(next_help_heading = "Leader election"))]
// The group's name must differ from the group name of a manager's own flags.
#[cfg_attr(feature = "clap", group(id = "leader election"))]
pub struct Flags {
    /// Work only while the main lock is held. With `false`, a second process of this manager must never run.
    #[cfg_attr(feature = "clap", arg(
        long, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true",
        action = clap::ArgAction::Set
    ))]
    pub leader_elect: bool,

    /// Time without a renewal after which a candidate may take a lock. Longer than the renew deadline.
    #[cfg_attr(feature = "clap", arg(long, default_value = "15s", value_parser = duration::parse))]
    pub leader_elect_lease_duration: Duration,

    /// Time for which the holder of a lock tries to renew the lock before the holder stops working.
    #[cfg_attr(feature = "clap", arg(long, default_value = "10s", value_parser = duration::parse))]
    pub leader_elect_renew_deadline: Duration,

    /// Time between two attempts to get or to renew a lock.
    #[cfg_attr(feature = "clap", arg(long, default_value = "2s", value_parser = duration::parse))]
    pub leader_elect_retry_period: Duration,

    /// Name of the main lock. Default: the name of the manager.
    #[cfg_attr(feature = "clap", arg(long))]
    pub leader_elect_resource_name: Option<String>,

    /// Namespace of the main lock and of the migration lock. Managers that share a migration lock need the
    /// same namespace.
    #[cfg_attr(feature = "clap", arg(long, default_value = "garden"))]
    pub leader_elect_resource_namespace: String,

    /// Run the controllers of the configuration under the migration lock instead of the main lock.
    #[cfg_attr(feature = "clap", arg(
        long, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true",
        action = clap::ArgAction::Set
    ))]
    pub enable_leader_migration: bool,

    /// File with a LeaderMigrationConfiguration. The file replaces the whole default configuration (the cloud
    /// controllers).
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "FILE", default_value = "", hide_default_value = true)
    )]
    pub leader_migration_config: String,

    /// Print the lock of each controller of this manager, with warnings, and exit.
    #[cfg_attr(feature = "clap", arg(long))]
    pub print_leader_migration: bool,

    /// ControllerManagerLeaderMigration=true|false: whether leader migration may be enabled at all. Default:
    /// true.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME=BOOL", value_delimiter = ','))]
    pub feature_gates: Vec<FeatureGate>,
}

/// The locks of a process.
pub struct Electors {
    /// For the main lock.
    pub main: Elector,
    /// For the migration lock; `None` where no controller is migrated.
    pub migration: Option<Elector>,
}

/// A feature gate, and whether the gate is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureGate {
    /// Name of the gate.
    pub name: &'static str,
    /// Whether the feature may be used.
    pub on: bool,
}

impl Default for Flags {
    /// The defaults of the command line.
    fn default() -> Self {
        let timing = Timing::default();
        Self {
            leader_elect: true,
            leader_elect_lease_duration: timing.lease_duration,
            leader_elect_renew_deadline: timing.renew_deadline,
            leader_elect_retry_period: timing.retry_period,
            leader_elect_resource_name: None,
            leader_elect_resource_namespace: "garden".to_owned(),
            enable_leader_migration: false,
            leader_migration_config: String::new(),
            print_leader_migration: false,
            feature_gates: Vec::new(),
        }
    }
}

impl Flags {
    /// Name of the main lock.
    #[must_use]
    pub fn main_lock(&self, manager: &Manager) -> &str {
        self.leader_elect_resource_name
            .as_deref()
            .unwrap_or(manager.component)
    }

    /// The durations of the locks.
    ///
    /// # Errors
    /// Durations that do not make a safe lock.
    pub fn timing(&self) -> Result<Timing, ConfigError> {
        let (lease, renew, retry) = (
            self.leader_elect_lease_duration,
            self.leader_elect_renew_deadline,
            self.leader_elect_retry_period,
        );
        Timing::new(lease, renew, retry).map_err(|why| FlagsError::UnsafeTiming(why).into())
    }

    /// The arguments of [`super::run_with_leader_migration`]: both locks in the same namespace and with the
    /// same identity, and no migration lock where the manager migrates no controller. The terms of the
    /// migration lock are those of [`Migration::terms`]. `None` with `--leader-elect=false`.
    ///
    /// # Errors
    /// As [`Flags::timing`].
    pub fn electors(
        &self,
        client: &Client,
        manager: &Manager,
        migration: Option<(&Migration, LockTerms)>,
        metrics: &Metrics,
    ) -> Result<Option<Electors>, ConfigError> {
        let timing = self.timing()?;
        if !self.leader_elect {
            return Ok(None);
        }
        let identity = identity();
        let namespace = self.leader_elect_resource_namespace.as_str();
        let lock = |name: &str| Lock::new(client.clone(), namespace, name, identity.as_str());
        let elector = |lock: Lock| Elector::new(lock, timing, metrics.clone());
        Ok(Some(Electors {
            main: elector(lock(self.main_lock(manager))),
            migration: migration
                .filter(|(migration, _)| migration.takes_lock())
                .map(|(migration, terms)| elector(lock(&migration.config.leader_name).on_terms(terms))),
        }))
    }

    /// The migration that these flags enable, or `None`. Reads the file, and compares the names in the file
    /// with `table`.
    ///
    /// # Errors
    /// Every combination that Kubernetes would silently ignore (RK-17, RK-19, no leader election), an
    /// unreadable or invalid file (RK-18), and a migration lock that is also the main lock (RK-03). The
    /// process must end.
    pub fn migration(
        &self,
        manager: &Manager,
        table: &ManagerTable,
    ) -> Result<Option<Migration>, ConfigError> {
        if !self.enable_leader_migration {
            return if self.leader_migration_config.is_empty() {
                Ok(None)
            } else {
                Err(FlagsError::FileWithoutMigration.into())
            };
        }
        if !self.gate() {
            return Err(FlagsError::GateIsOff.into());
        }
        if !self.leader_elect {
            return Err(FlagsError::NoLeaderElection.into());
        }
        let names = KnownNames::for_manager(table, manager);
        let (config, origin) = self.configuration(self.main_lock(manager), &names)?;
        Ok(Some(Migration {
            config,
            manager: *manager,
            table: *table,
            origin,
        }))
    }

    /// The configuration that applies, and its origin. A file replaces the whole default (RK-14, RK-16).
    fn configuration(
        &self,
        main_lock: &str,
        names: &KnownNames,
    ) -> Result<(LeaderMigrationConfiguration, String), ConfigError> {
        let path = self.leader_migration_config.as_str();
        if !path.is_empty() {
            let config = read_file(path, main_lock, names)?;
            return Ok((config, path.to_owned()));
        }
        let default = LeaderMigrationConfiguration::default_for_cloud_provider();
        if default.leader_name == main_lock {
            return Err(FlagsError::DefaultLockIsMainLock {
                lock: main_lock.to_owned(),
            }
            .into());
        }
        Ok((default, DEFAULT_ORIGIN.to_owned()))
    }

    /// Whether the feature gate is on; the last value of several counts.
    fn gate(&self) -> bool {
        self.feature_gates.last().is_none_or(|gate| gate.on)
    }
}

/// Reads the file of `--leader-migration-config`.
#[cfg(feature = "yaml")]
fn read_file(
    path: &str,
    main_lock: &str,
    names: &KnownNames,
) -> Result<LeaderMigrationConfiguration, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable {
        path: path.to_owned(),
        error,
    })?;
    LeaderMigrationConfiguration::parse_beside(main_lock, names, &text, path)
}

/// A build without the feature `yaml` cannot read the file, and must not ignore the file.
#[cfg(not(feature = "yaml"))]
fn read_file(path: &str, _: &str, _: &KnownNames) -> Result<LeaderMigrationConfiguration, ConfigError> {
    Err(FlagsError::BuiltWithoutYaml {
        path: path.to_owned(),
    }
    .into())
}

impl FromStr for FeatureGate {
    type Err = FeatureGateError;

    fn from_str(text: &str) -> Result<Self, FeatureGateError> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        if name != GATE {
            return Err(FeatureGateError::Unknown(name.to_owned()));
        }
        match value {
            "true" => Ok(Self { name: GATE, on: true }),
            "false" => Ok(Self {
                name: GATE,
                on: false,
            }),
            _ => Err(FeatureGateError::NoBoolean),
        }
    }
}
