//! The controllers of each manager, and the former names of controllers.
//!
//! A leader migration configuration names controllers and managers as text. Each name is compared with this
//! table. So an unknown name causes a warning instead of silently switching a controller off (RK-34). Each
//! process checks a file against *all* managers, including other processes, and no process depends on another
//! process. So the table is here, beneath all processes, and a test of each manager proves that the entry
//! matches the real controllers. A manager with the name of a known manager but with different controllers,
//! such as each cloud's manager, passes an entry of its own. The names of kube-controller-manager and
//! cloud-controller-manager are the names of Kubernetes 1.34.

/// The controllers that a controller manager can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manager {
    /// Name of the manager: the value of `component` in a configuration, and the default name of the main
    /// lock.
    pub component: &'static str,
    /// Controllers that the manager runs by default. A controller is in this list of exactly one manager, the
    /// controller's *home*.
    pub controllers: &'static [&'static str],
    /// Controllers with another home that this manager can run when a configuration hands the controllers
    /// over.
    pub guests: &'static [&'static str],
}

impl Manager {
    /// All controllers that the manager can run: home controllers and guests.
    pub fn all(&self) -> impl Iterator<Item = &'static str> {
        self.controllers.iter().chain(self.guests).copied()
    }

    /// Whether the manager can run this controller, by a present or a former name.
    #[must_use]
    pub fn can_run(&self, controller: &str) -> bool {
        let name = canonical(controller);
        self.all().any(|known| known == name)
    }

    /// Whether the manager runs this controller by default. The manager's own list decides, because the
    /// manager need not be in the table of known managers.
    #[must_use]
    pub fn is_home_of(&self, controller: &str) -> bool {
        let name = canonical(controller);
        self.controllers.iter().any(|own| canonical(own) == name)
    }
}

/// The agent of a seed.
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

/// Kubernetes' own manager. The guests are the cloud controllers, which the manager ran until these moved out
/// of tree (RK-20, RK-21).
pub const KUBE_CONTROLLER_MANAGER: Manager = Manager {
    component: "kube-controller-manager",
    controllers: &[
        "bootstrap-signer-controller",
        "certificatesigningrequest-approving-controller",
        "certificatesigningrequest-cleaner-controller",
        "certificatesigningrequest-signing-controller",
        "clusterrole-aggregation-controller",
        "cronjob-controller",
        "daemonset-controller",
        "deployment-controller",
        "device-taint-eviction-controller",
        "disruption-controller",
        "endpoints-controller",
        "endpointslice-controller",
        "endpointslice-mirroring-controller",
        "ephemeral-volume-controller",
        "garbage-collector-controller",
        "horizontal-pod-autoscaler-controller",
        "job-controller",
        "kube-apiserver-serving-clustertrustbundle-publisher-controller",
        "legacy-serviceaccount-token-cleaner-controller",
        "namespace-controller",
        "node-ipam-controller",
        "node-lifecycle-controller",
        "persistentvolume-attach-detach-controller",
        "persistentvolume-binder-controller",
        "persistentvolume-expander-controller",
        "persistentvolume-protection-controller",
        "persistentvolumeclaim-protection-controller",
        "pod-garbage-collector-controller",
        "podcertificaterequest-cleaner-controller",
        "replicaset-controller",
        "replicationcontroller-controller",
        "resourceclaim-controller",
        "resourcequota-controller",
        "root-ca-certificate-publisher-controller",
        "selinux-warning-controller",
        "service-cidr-controller",
        "serviceaccount-controller",
        "serviceaccount-token-controller",
        "statefulset-controller",
        "storage-version-migrator-controller",
        "storageversion-garbage-collector-controller",
        "taint-eviction-controller",
        "token-cleaner-controller",
        "ttl-after-finished-controller",
        "ttl-controller",
        "validatingadmissionpolicy-status-controller",
        "volumeattributesclass-protection-controller",
    ],
    guests: &[
        "cloud-node-lifecycle-controller",
        "node-route-controller",
        "service-lb-controller",
    ],
};

/// The controllers that a cloud provider runs out of tree. Node IPAM may move here as well, a special case in
/// the Kubernetes documentation.
pub const CLOUD_CONTROLLER_MANAGER: Manager = Manager {
    component: "cloud-controller-manager",
    controllers: &[
        "cloud-node-controller",
        "cloud-node-lifecycle-controller",
        "node-route-controller",
        "service-lb-controller",
    ],
    guests: &["node-ipam-controller"],
};

/// Every manager that an entry of a configuration is compared with (RK-34).
pub const KNOWN_MANAGERS: &[Manager] = &[
    GARDENLET,
    GARDEN_CONTROLLER_MANAGER,
    PROVIDER_LOCAL,
    ETCD_DRUID,
    MACHINE_CONTROLLER_MANAGER,
    KUBE_CONTROLLER_MANAGER,
    CLOUD_CONTROLLER_MANAGER,
];

/// Former names and present names. Kubernetes renamed the controllers in 1.28. The KEP, the examples in the
/// KEP's comments, and the default of Kubernetes itself (`route-controller`, `service-controller`) each use
/// different old names.
const FORMER_NAMES: &[(&str, &str)] = &[
    ("attachdetach", "persistentvolume-attach-detach-controller"),
    ("bootstrapsigner", "bootstrap-signer-controller"),
    ("care", "shoot-care"),
    ("cloud-node", "cloud-node-controller"),
    ("cloud-node-lifecycle", "cloud-node-lifecycle-controller"),
    (
        "cloud-nodelifecycle-controller",
        "cloud-node-lifecycle-controller",
    ),
    ("clusterrole-aggregation", "clusterrole-aggregation-controller"),
    ("cronjob", "cronjob-controller"),
    ("csrapproving", "certificatesigningrequest-approving-controller"),
    ("csrcleaner", "certificatesigningrequest-cleaner-controller"),
    ("csrsigning", "certificatesigningrequest-signing-controller"),
    ("daemonset", "daemonset-controller"),
    ("deployment", "deployment-controller"),
    ("disruption", "disruption-controller"),
    ("endpoint", "endpoints-controller"),
    ("endpointslice", "endpointslice-controller"),
    ("endpointslicemirroring", "endpointslice-mirroring-controller"),
    ("ephemeral-volume", "ephemeral-volume-controller"),
    ("garbagecollector", "garbage-collector-controller"),
    ("horizontalpodautoscaling", "horizontal-pod-autoscaler-controller"),
    ("job", "job-controller"),
    (
        "legacy-service-account-token-cleaner",
        "legacy-serviceaccount-token-cleaner-controller",
    ),
    ("namespace", "namespace-controller"),
    ("nodeipam", "node-ipam-controller"),
    ("nodelifecycle", "node-lifecycle-controller"),
    ("persistentvolume-binder", "persistentvolume-binder-controller"),
    (
        "persistentvolume-expander",
        "persistentvolume-expander-controller",
    ),
    ("podgc", "pod-garbage-collector-controller"),
    ("pv-protection", "persistentvolume-protection-controller"),
    ("pvc-protection", "persistentvolumeclaim-protection-controller"),
    ("replicaset", "replicaset-controller"),
    ("replicationcontroller", "replicationcontroller-controller"),
    ("resource-claim-controller", "resourceclaim-controller"),
    ("resourcequota", "resourcequota-controller"),
    (
        "root-ca-cert-publisher",
        "root-ca-certificate-publisher-controller",
    ),
    ("route", "node-route-controller"),
    ("route-controller", "node-route-controller"),
    ("service", "service-lb-controller"),
    ("service-controller", "service-lb-controller"),
    ("serviceaccount", "serviceaccount-controller"),
    ("serviceaccount-token", "serviceaccount-token-controller"),
    ("statefulset", "statefulset-controller"),
    (
        "storage-version-gc",
        "storageversion-garbage-collector-controller",
    ),
    ("svm", "storage-version-migrator-controller"),
    ("tokencleaner", "token-cleaner-controller"),
    ("ttl", "ttl-controller"),
    ("ttl-after-finished", "ttl-after-finished-controller"),
];

/// The present name of a controller. An unknown name is returned unchanged.
#[must_use]
pub fn canonical(controller: &str) -> &str {
    FORMER_NAMES
        .iter()
        .find(|(former, _)| *former == controller)
        .map_or(controller, |(_, now)| now)
}

/// The manager that runs this controller by default; `None` for an unknown name.
#[must_use]
pub fn home(controller: &str) -> Option<&'static Manager> {
    let name = canonical(controller);
    KNOWN_MANAGERS
        .iter()
        .find(|manager| manager.controllers.contains(&name))
}

/// The known manager of this name.
#[must_use]
pub fn known(component: &str) -> Option<&'static Manager> {
    KNOWN_MANAGERS
        .iter()
        .find(|manager| manager.component == component)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_controller_has_one_home() {
        let mut seen = BTreeSet::new();
        for manager in KNOWN_MANAGERS {
            for controller in manager.controllers {
                assert!(seen.insert(controller), "{controller} has two homes");
            }
        }
    }

    #[test]
    fn a_guest_has_its_home_elsewhere() {
        for manager in KNOWN_MANAGERS {
            for guest in manager.guests {
                let home = home(guest).map(|home| home.component);
                assert!(home.is_some_and(|home| home != manager.component), "{guest}");
            }
        }
    }

    #[test]
    fn former_names_lead_to_known_controllers_and_hide_none() {
        let mut seen = BTreeSet::new();
        for (former, now) in FORMER_NAMES {
            assert!(seen.insert(former), "{former} stands twice");
            assert_eq!(canonical(now), *now, "{former} leads to a former name");
            assert!(home(now).is_some(), "{former} leads to {now}, which nobody has");
            assert!(
                KNOWN_MANAGERS
                    .iter()
                    .all(|m| !m.all().any(|name| name == *former)),
                "{former} is also a present name"
            );
        }
    }

    #[test]
    fn managers_have_names_of_their_own() {
        let names: BTreeSet<_> = KNOWN_MANAGERS.iter().map(|m| m.component).collect();
        assert_eq!(names.len(), KNOWN_MANAGERS.len());
    }

    #[test]
    fn old_and_new_names_are_understood() {
        for (old, new) in [
            ("route", "node-route-controller"),
            ("route-controller", "node-route-controller"),
            ("service", "service-lb-controller"),
            ("service-controller", "service-lb-controller"),
            ("cloud-node-lifecycle", "cloud-node-lifecycle-controller"),
            (
                "cloud-nodelifecycle-controller",
                "cloud-node-lifecycle-controller",
            ),
            ("nodeipam", "node-ipam-controller"),
            ("node-ipam-controller", "node-ipam-controller"),
            ("nobody-knows-this", "nobody-knows-this"),
        ] {
            assert_eq!(canonical(old), new);
        }
    }
}
