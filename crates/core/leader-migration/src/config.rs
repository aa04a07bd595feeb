//! `LeaderMigrationConfiguration`: the controllers under a shared lock, and the manager of each (RK-10,
//! RK-11).

use super::table::KnownNames;

/// The component that stands for every manager that takes part (RK-11).
pub const ANY_COMPONENT: &str = "*";

/// A migration lock and the controllers under that lock. Read from a file and never sent to an API server
/// (RK-12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderMigrationConfiguration {
    /// Name of the Lease. Managers that share controllers need the same name (RK-25), in the same namespace.
    pub leader_name: String,
    /// The kind of the lock's object.
    pub resource_lock: ResourceLock,
    /// The controllers under the lock, each once.
    pub controller_leaders: Vec<ControllerLeader>,
}

/// The kind of a lock's object. Kubernetes has removed `endpoints`, the second value in the KEP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResourceLock {
    /// A `coordination.k8s.io/v1` Lease (RK-30).
    #[default]
    Leases,
}

/// A controller under the migration lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerLeader {
    /// The controller as written in the file: a present or a former name.
    pub name: String,
    /// The manager that may run the controller, or [`ANY_COMPONENT`].
    pub component: String,
    /// Line in the file, counted from 1; `None` where there is no file.
    pub line: Option<usize>,
}

impl LeaderMigrationConfiguration {
    /// The configuration that applies when migration is on and no file is named (RK-13, RK-16): the cloud
    /// controllers, in any manager.
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

    /// The entry of a controller, by any present or former name on either side.
    pub(crate) fn entry(&self, controller: &str, names: &KnownNames) -> Option<&ControllerLeader> {
        let name = names.present_name(controller);
        self.controller_leaders
            .iter()
            .find(|entry| names.present_name(&entry.name) == name)
    }
}

impl ControllerLeader {
    /// Whether this manager may run the controller.
    #[must_use]
    pub fn is_for(&self, component: &str) -> bool {
        self.component == ANY_COMPONENT || self.component == component
    }
}
