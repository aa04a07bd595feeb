//! The managers of Kubernetes 1.34: a table for authors of managers that share controllers with these.

use super::table::{Alias, Manager, ManagerTable};

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

/// Former names and present names. Kubernetes renamed the controllers in 1.28. The KEP, the examples in the
/// KEP's comments, and the default of Kubernetes itself (`route-controller`, `service-controller`) each use
/// different old names.
pub const ALIASES: &[Alias] = &[
    ("attachdetach", "persistentvolume-attach-detach-controller"),
    ("bootstrapsigner", "bootstrap-signer-controller"),
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

/// The managers of Kubernetes alone. An author with further managers builds a table with these entries.
pub const TABLE: ManagerTable = ManagerTable {
    managers: &[KUBE_CONTROLLER_MANAGER, CLOUD_CONTROLLER_MANAGER],
    aliases: &[ALIASES],
    locks: &[KUBE_SCHEDULER_LOCK],
};

/// The main lock of the kube-scheduler, a process without controllers.
pub const KUBE_SCHEDULER_LOCK: (&str, &str) = ("kube-scheduler", "kube-scheduler");
