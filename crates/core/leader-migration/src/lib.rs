//! Leader migration (KEP-2436): controllers move between managers without running twice in between.
//!
//! Two managers that share controllers each keep a separate *main* lock and share a single *migration* lock.
//! A [`LeaderMigrationConfiguration`] lists the controllers under the migration lock; the holder of that lock
//! runs these controllers. A manager requests the migration lock only while the manager holds its main lock.
//! So of several processes of a manager the same process holds both locks.
//!
//! | module | purpose |
//! |---|---|
//! | `config` | the controllers under the migration lock |
//! | `parse` | the file, read strictly; an invalid file runs a controller nowhere or twice (feature `yaml`) |
//! | `table` | the managers, former names of controllers, and main locks, passed in by the author |
//! | [`kubernetes`] | the entries of that table for Kubernetes' own managers |
//! | `assignment` | the pure decision: main, migrated or unowned |
//! | `plan`, `losses` | a manager's part in a migration, and controllers that the file takes away (RK-34) |
//! | `flags`, `duration`, `print` | the settings, and a command line for the settings (feature `clap`) |
//! | `both_locks` | the order of the two locks, and the end of the work under each lock |
//! | `locks` | a whole process: the controllers under each lock |
//! | `error` | errors with the remedy |
//!
//! No feature is on by default. An author without `yaml` builds a [`Migration`] from Rust. The feature
//! `metrics` adds `Metrics::register` of the crate `lease`.

mod assignment;
mod both_locks;
mod config;
#[cfg(feature = "clap")]
mod duration;
mod error;
mod flags;
pub mod kubernetes;
mod locks;
mod losses;
#[cfg(feature = "yaml")]
mod parse;
mod plan;
#[cfg(feature = "clap")]
mod print;
mod table;
#[cfg(test)]
#[cfg(all(feature = "clap", feature = "yaml"))]
mod tests;

pub use assignment::Assignment;
pub use both_locks::run_with_leader_migration;
pub use config::{ANY_COMPONENT, ControllerLeader, LeaderMigrationConfiguration, ResourceLock};
pub use error::{ConfigError, FeatureGateError, FlagsError, Problem, ProblemKind, RunError};
pub use flags::{Electors, FeatureGate, Flags};
pub use locks::Locks;
pub use plan::{Migration, OnDisagreement};
#[cfg(feature = "clap")]
pub use print::{answer_if_asked, print_if_asked};
pub use table::{Alias, Manager, ManagerTable};
