//! `LeaderMigrationConfiguration`: which controllers run under a shared lock, and in which manager (RK-10,
//! RK-11).

use super::names;

/// The component that stands for every manager that takes part (RK-11).
pub const ANY_COMPONENT: &str = "*";

/// A migration lock and the controllers that run under it. It is read from a file and never sent to an API
/// server (RK-12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderMigrationConfiguration {
    /// Name of the Lease. Managers that share controllers must have the same one (RK-25), in the same
    /// namespace.
    pub leader_name: String,
    /// What kind of object the lock is.
    pub resource_lock: ResourceLock,
    /// The controllers under the lock, each once.
    pub controller_leaders: Vec<ControllerLeader>,
}

/// What kind of object a lock is. `endpoints`, which the KEP allows too, has been taken out of Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResourceLock {
    /// A `coordination.k8s.io/v1` Lease (RK-30).
    #[default]
    Leases,
}

/// One controller under the migration lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerLeader {
    /// The controller, as it was written: its present or a former name.
    pub name: String,
    /// The manager that may run it, or [`ANY_COMPONENT`].
    pub component: String,
    /// Line in the file, counted from 1; none where there is no file.
    pub line: Option<usize>,
}

impl LeaderMigrationConfiguration {
    /// What counts when migration is on and no file is given (RK-13, RK-16): the cloud controllers, in either
    /// manager.
    #[must_use]
    pub fn default_for_cloud_provider() -> Self {
        Self {
            leader_name: "cloud-provider-extraction-migration".to_owned(),
            resource_lock: ResourceLock::Leases,
            controller_leaders: ["route", "service", "cloud-node-lifecycle"]
                .map(|name| ControllerLeader {
                    name: name.to_owned(),
                    component: ANY_COMPONENT.to_owned(),
                    line: None,
                })
                .into(),
        }
    }

    /// The entry of a controller, whichever of its names either side uses.
    #[must_use]
    pub fn entry(&self, controller: &str) -> Option<&ControllerLeader> {
        let name = names::canonical(controller);
        self.controller_leaders
            .iter()
            .find(|entry| names::canonical(&entry.name) == name)
    }
}

impl ControllerLeader {
    /// Whether this manager may run the controller.
    #[must_use]
    pub fn is_for(&self, component: &str) -> bool {
        self.component == ANY_COMPONENT || self.component == component
    }
}
