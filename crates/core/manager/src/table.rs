//! The controllers of each manager of the suite.
//!
//! Each process compares a configuration with *all* managers, so an unknown name causes a warning instead of
//! silently switching a controller off (RK-34). No process depends on a different process. So the table is
//! beneath all processes, and a test of each manager proves that the entry matches the real controllers. A
//! manager with the name of a known manager but with different controllers, such as the manager of a cloud,
//! passes an entry of that manager.

use leader_migration::{
    Manager, ManagerTable,
    kubernetes::{self, CLOUD_CONTROLLER_MANAGER, KUBE_CONTROLLER_MANAGER},
};

/// The agent of a seed. The metrics call the controller `shoot-care` `care`.
pub const GARDENLET: Manager = Manager {
    component: "gardenlet",
    controllers: &[
        "shoot",
        "shoot-care",
        "shoot-state-sync",
        "seed",
        "seed-lease",
        "backup-bucket",
        "backup-entry",
        "controller-installation",
    ],
    guests: &[],
};

/// The controllers of the garden. The metrics call a controller `seed`; the name here is `seed-lifecycle`,
/// because a name in a configuration must be unique, and the gardenlet has a `seed` too.
pub const GARDEN_CONTROLLER_MANAGER: Manager = Manager {
    component: "garden-controller-manager",
    controllers: &[
        "backup-entry-placement",
        "controller-registration",
        "project",
        "seed-lifecycle",
        "shoot-hibernation",
        "shoot-kubeconfig",
        "shoot-migration",
        "shoot-placement",
        "shoot-preparation",
        "shoot-state",
        "shoot-takeover",
        "shoot-version",
        "shoot-zone-expiry",
    ],
    guests: &[],
};

/// The provider for tests and demonstrations. `backupbucket` and `backupentry` act on extension objects. The
/// gardenlet's `backup-bucket` and `backup-entry` act on the garden, and this provider can run both as
/// guests.
pub const PROVIDER_LOCAL: Manager = Manager {
    component: "provider-local",
    controllers: &[
        "infrastructure",
        "controlplane",
        "network",
        "operatingsystemconfig",
        "worker",
        "subnetisolation",
        "dnsrecord",
        "backupbucket",
        "backupentry",
    ],
    guests: &["backup-bucket", "backup-entry"],
};

/// The provider for Amazon Web Services. Controllers of provider-local with the same names are separate
/// controllers, for objects of a different type.
pub const PROVIDER_AWS: Manager = Manager {
    component: "provider-aws",
    controllers: &["infrastructure", "controlplane", "worker", "subnetisolation"],
    guests: &[],
};

/// The controllers of etcd in a seed.
pub const ETCD_DRUID: Manager = Manager {
    component: "etcd-druid",
    controllers: &["etcd"],
    guests: &[],
};

/// The machines of a single shoot on any cloud: each cloud has a separate process under this name.
pub const MACHINE_CONTROLLER_MANAGER: Manager = Manager {
    component: "machine-controller-manager",
    controllers: &[
        "machine",
        "machine-class",
        "machine-deployment",
        "machine-safety",
        "machine-set",
    ],
    guests: &[],
};

/// The manager that applies the objects of ManagedResources.
pub const RESOURCE_MANAGER: Manager = Manager {
    component: "resource-manager",
    controllers: &["managed-resource"],
    guests: &[],
};

/// Every manager that an entry of a configuration is compared with (RK-34), and every main lock.
pub const SUITE: ManagerTable = ManagerTable {
    managers: &[
        GARDENLET,
        GARDEN_CONTROLLER_MANAGER,
        PROVIDER_LOCAL,
        PROVIDER_AWS,
        ETCD_DRUID,
        MACHINE_CONTROLLER_MANAGER,
        RESOURCE_MANAGER,
        KUBE_CONTROLLER_MANAGER,
        CLOUD_CONTROLLER_MANAGER,
    ],
    aliases: &[kubernetes::ALIASES, &[("care", "shoot-care")]],
    locks: &[
        kubernetes::KUBE_SCHEDULER_LOCK,
        // The main lock differs from the component, because all cloud controller managers have the same
        // component.
        ("cloud-controller-manager-local", "cloud-controller-manager-local"),
    ],
};
