//! The controller managers of the suite: the table of controllers, former names and locks that a leader
//! migration is compared with, and the common `main` of all managers. The crate `leader-migration` is for
//! every author of managers; this crate is for the suite only.

mod process;
mod table;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use leader_migration::{ConfigError, Flags, Locks, Manager, OnDisagreement};

pub use process::{run, start_controllers};
pub use table::{
    ETCD_DRUID, GARDEN_CONTROLLER_MANAGER, GARDENLET, MACHINE_CONTROLLER_MANAGER, PROVIDER_AWS,
    PROVIDER_LOCAL, RESOURCE_MANAGER, SUITE,
};

/// Assigns each controller of a manager of the suite to a lock, see [`Locks::assign`]. A manager of the suite
/// waits for a holder of the migration lock with a different list, so that a rollout that adds an entry
/// completes ([`OnDisagreement::StopMigrated`]).
///
/// # Errors
/// As [`Locks::assign`].
pub fn assign(flags: &Flags, manager: &Manager) -> Result<Locks, ConfigError> {
    let locks = Locks::assign(flags, manager, &SUITE)?;
    Ok(locks.on_disagreement(OnDisagreement::StopMigrated))
}

/// The same for a process with flags that choose the controllers, see [`Locks::assign_chosen`].
///
/// # Errors
/// As [`Locks::assign_chosen`].
pub fn assign_chosen(
    flags: &Flags,
    manager: &Manager,
    is_chosen: impl Fn(&str) -> bool,
) -> Result<Locks, ConfigError> {
    let locks = Locks::assign_chosen(flags, manager, &SUITE, is_chosen)?;
    Ok(locks.on_disagreement(OnDisagreement::StopMigrated))
}

/// Prints the lock of each controller of the manager if the arguments have `--print-leader-migration`. `main`
/// returns the code, if any, before all further work.
#[must_use]
pub fn answer_if_asked(manager: &Manager) -> Option<ExitCode> {
    leader_migration::answer_if_asked(manager, &SUITE)
}
