//! Machines of a shoot in the local cloud: the controllers of `machine-controllers` with a driver over `cloud-local`.
//!
//! One process a shoot, in the shoot's namespace: it reads and writes machine objects there, Nodes in the shoot, and instances
//! in the account that the machine classes name. All three go by the permit of its lock.

pub mod driver;

use runtime::apply::FieldManager;

/// Writes machine objects, Nodes and instances.
pub const MANAGER: FieldManager = FieldManager("machine-controller-manager-local");

#[cfg(test)]
mod tests {
    use leader_migration::MACHINE_CONTROLLER_MANAGER;

    /// A name without a controller would be a controller that nobody runs (RK-34).
    #[test]
    fn what_can_be_migrated_is_what_runs() {
        assert_eq!(machine_controllers::NAMES, MACHINE_CONTROLLER_MANAGER.controllers);
    }
}
