//! Which manager has which controllers, and the names that a controller had before.
//!
//! A leader migration configuration names controllers and managers by text. What stands in this table is what
//! a name is held against, so that a word that matches nothing is told instead of silently switching a
//! controller off (RK-34). Each process holds a file against *all* managers, its neighbours too, and no
//! process knows another: so the table is here, below all of them, and each manager proves in a test of its
//! own that its entry is what it runs. Who takes part under the name of a known manager with other
//! controllers, as each cloud's own does, brings its own entry. The names of kube-controller-manager and
//! cloud-controller-manager are those of Kubernetes 1.34.

/// What one controller manager can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manager {
    /// Its name: the value of `component` in a configuration, and the default name of its main lock.
    pub component: &'static str,
    /// Controllers that it runs when nothing else is said. A controller is in this list of one manager only:
    /// that is its *home*.
    pub controllers: &'static [&'static str],
    /// Controllers whose home is another manager, but which this one can run when a configuration hands them
    /// over.
    pub guests: &'static [&'static str],
}

impl Manager {
    /// All controllers that it can run: its own and its guests.
    pub fn all(&self) -> impl Iterator<Item = &'static str> {
        self.controllers.iter().chain(self.guests).copied()
    }

    /// Whether it can run this controller, by its present or a former name.
    #[must_use]
    pub fn can_run(&self, controller: &str) -> bool {
        let name = canonical(controller);
        self.all().any(|known| known == name)
    }

    /// Whether it runs this controller when nothing else is said. What this manager says of itself counts, as
    /// it need not be in the table of those that are known.
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

/// The controllers of the garden. Its `seed` controller (as its metrics call it) is `seed-lifecycle` here,
/// because a name in a configuration must mean one thing, and the gardenlet has a `seed` too.
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

/// The provider for tests and demonstrations. Its `backupbucket` and `backupentry` act on extension objects;
/// the gardenlet's `backup-bucket` and `backup-entry`, which it can run as guests, act on the garden.
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

/// The machines of one shoot, whatever its cloud is: each cloud has a process of its own under this name.
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

/// What keeps the objects of ManagedResources.
pub const RESOURCE_MANAGER: Manager = Manager {
    component: "resource-manager",
    controllers: &["managed-resource"],
    guests: &[],
};

/// Kubernetes' own. Its guests are the cloud controllers, which it ran itself until they moved out of tree
/// (RK-20, RK-21).
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

/// What a cloud provider runs out of tree. Node IPAM may move to it as well, which Kubernetes documents as a
/// special case.
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

/// Every manager that an entry of a configuration is held against (RK-34).
pub const KNOWN_MANAGERS: &[Manager] = &[
    GARDENLET,
    GARDEN_CONTROLLER_MANAGER,
    PROVIDER_LOCAL,
    ETCD_DRUID,
    MACHINE_CONTROLLER_MANAGER,
    KUBE_CONTROLLER_MANAGER,
    CLOUD_CONTROLLER_MANAGER,
];

/// Former names and what they are called now. Kubernetes renamed its controllers in 1.28; the KEP, the
/// examples in its comments, and the default of Kubernetes itself (`route-controller`, `service-controller`)
/// each use other old names.
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

/// The present name of a controller. A name that is not known is its own present name.
#[must_use]
pub fn canonical(controller: &str) -> &str {
    FORMER_NAMES
        .iter()
        .find(|(former, _)| *former == controller)
        .map_or(controller, |(_, now)| now)
}

/// The manager that runs this controller when nothing else is said; none for a name that is not known.
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
