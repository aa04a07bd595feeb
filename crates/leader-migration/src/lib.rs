//! Leader migration (KEP-2436): controllers move from one manager to another without running twice in
//! between.
//!
//! Two managers that share controllers each keep their own *main* lock and have one *migration* lock in
//! common. A [`LeaderMigrationConfiguration`] says which controllers run under the migration lock; whoever
//! holds it runs them. A manager asks for the migration lock only while it holds its main lock, so that of
//! several processes of one manager it is the same one that holds both.
//!
//! | module | what it is for |
//! |---|---|
//! | `config`, `parse` | the file, read strictly: whatever would let a controller run nowhere or twice is an error |
//! | `names` | the controllers of every known manager, and their former names |
//! | `assignment` | the pure decision: main, migrated or unowned |
//! | `plan`, `losses` | a manager's part in it, and what the configuration takes away (RK-34) |
//! | `flags`, `print` | the command line |
//! | `run` | both locks, in order |
//! | `locks`, `manager` | all of it for one process: which controllers run when, and the one `main` |

mod assignment;
mod config;
mod error;
mod flags;
mod locks;
mod losses;
pub mod manager;
mod names;
mod parse;
mod plan;
mod print;
mod run;
#[cfg(test)]
mod tests;

pub use assignment::{Assignment, assignment};
pub use config::{ANY_COMPONENT, ControllerLeader, LeaderMigrationConfiguration, ResourceLock};
pub use error::{ConfigError, Problem};
pub use flags::{Electors, FeatureGate, Flags};
pub use locks::Locks;
pub use names::{
    CLOUD_CONTROLLER_MANAGER, ETCD_DRUID, GARDEN_CONTROLLER_MANAGER, GARDENLET, KNOWN_MANAGERS,
    KUBE_CONTROLLER_MANAGER, MACHINE_CONTROLLER_MANAGER, Manager, PROVIDER_LOCAL, RESOURCE_MANAGER,
    canonical,
};
pub use plan::Migration;
pub use print::{answer_if_asked, print_if_asked};
pub use run::run_with_leader_migration;
