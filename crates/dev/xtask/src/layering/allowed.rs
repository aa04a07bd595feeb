//! The allowed dependencies between crates.

/// The allowed dependencies of each crate, outside of tests. A name that ends with `*` stands for all crates
/// with that prefix.
pub(super) const ALLOWED: &[(&str, &[&str])] = &[
    ("api", &[]),
    ("flow", &[]),
    // The types of the answers of etcd-backup-restore, for the server and all readers.
    ("sidecar-protocol", &[]),
    // Safety rules that tests alone switch off.
    ("mutation", &[]),
    ("ownership", &["permit"]),
    // These three crates are for every author of managers: without the types and the runtime of the suite.
    ("permit", &[]),
    ("lease", &["permit"]),
    ("leader-migration", &["lease", "permit"]),
    ("permit-object-store", &["permit"]),
    ("runtime", &["permit", "api"]),
    // The table of the suite's managers. The common `main` of managers starts a process of `runtime`.
    ("manager", &["runtime", "leader-migration", "lease", "permit"]),
    ("placement", &["ownership", "api"]),
    // For processes that act for a shoot.
    (
        "owner-checks",
        &[
            "sidecar-protocol",
            "runtime",
            "permit",
            "ownership",
            "placement",
            "api",
        ],
    ),
    (
        "parts",
        &[
            "owner-checks",
            "sidecar-protocol",
            "mutation",
            "runtime",
            "permit",
            "ownership",
            "placement",
            "api",
        ],
    ),
    (
        "extension",
        &[
            "owner-checks",
            "mutation",
            "runtime",
            "permit",
            "ownership",
            "placement",
            "api",
        ],
    ),
    ("backup-controllers", &["runtime", "permit", "placement", "api"]),
    // Can run the gardenlet's backup controllers as guests.
    (
        "provider-local",
        &[
            "extension",
            "backup-controllers",
            "owner-checks",
            "mutation",
            "cloud-local",
            "runtime",
            "leader-migration",
            "manager",
            "permit",
            "permit-object-store",
            "ownership",
            "api",
        ],
    ),
    (
        "provider-aws",
        &[
            "extension",
            "owner-checks",
            "cloud-aws",
            "runtime",
            "leader-migration",
            "manager",
            "permit",
            "ownership",
            "api",
        ],
    ),
    (
        "provider-aws-fixture",
        &[
            "testkit",
            "aws-fixture",
            "provider-aws",
            "cloud-aws",
            "extension",
            "runtime",
            "api",
        ],
    ),
    (
        "provider-*",
        &[
            "extension",
            "runtime",
            "leader-migration",
            "manager",
            "permit",
            "ownership",
            "api",
        ],
    ),
    (
        "gardenlet",
        &[
            "backup-controllers",
            "parts",
            "owner-checks",
            "flow",
            "placement",
            "runtime",
            "leader-migration",
            "manager",
            "permit",
            "ownership",
            "api",
        ],
    ),
    (
        "garden-controller-manager",
        &[
            "runtime",
            "placement",
            "leader-migration",
            "manager",
            "permit",
            "ownership",
            "api",
        ],
    ),
    (
        "etcd-druid",
        &[
            "sidecar-protocol",
            "runtime",
            "leader-migration",
            "manager",
            "permit",
            "ownership",
            "api",
        ],
    ),
    (
        "resource-manager",
        &[
            "owner-checks",
            "runtime",
            "leader-migration",
            "manager",
            "permit",
            "ownership",
            "api",
        ],
    ),
    // The controllers of machines and the surrounding process, for the manager of each cloud.
    (
        "machine-controllers",
        &[
            "owner-checks",
            "runtime",
            "leader-migration",
            "manager",
            "permit",
            "ownership",
            "api",
        ],
    ),
    (
        "machine-controller-manager-local",
        &[
            "machine-controllers",
            "cloud-local",
            "runtime",
            "manager",
            "permit",
            "api",
        ],
    ),
    (
        "machine-controller-manager-aws",
        &[
            "machine-controllers",
            "cloud-aws",
            "runtime",
            "manager",
            "permit",
            "api",
        ],
    ),
    // The calls of EC2, for crates that create resources in EC2.
    ("cloud-aws", &["runtime", "permit", "permit-object-store", "api"]),
    // The local cloud, for crates that write and for crates that only read.
    ("cloud-local", &["mutation", "runtime", "permit", "api"]),
    (
        "cloud-controller-manager-local",
        &[
            "owner-checks",
            "cloud-local",
            "runtime",
            "leader-migration",
            "manager",
            "permit",
            "api",
        ],
    ),
    // Starts a foreign program, and has no controllers.
    (
        "cloud-controller-manager-aws",
        &["owner-checks", "runtime", "manager", "permit"],
    ),
    // On each host of the local cloud: reports only the state of the host's kernel, so no lock is needed.
    ("cloud-local-agent", &["cloud-local", "runtime", "permit"]),
    // On a machine of a shoot: only reads Nodes, so no lock is needed.
    ("network-local", &["runtime", "permit"]),
    // The server is in the seed, the agent in the shoot; neither uses an API server.
    ("tunnel", &["runtime"]),
    (
        "etcd-backup-restore",
        &[
            "sidecar-protocol",
            "mutation",
            "ownership",
            "permit",
            "permit-object-store",
        ],
    ),
    // The plugin of kubectl: a command of a person, without a lock.
    ("kubectl-repot", &["runtime", "permit", "placement", "api"]),
    // Development only: used only by tests.
    ("testkit", &[]),
    ("flow-drill", &["flow"]),
    ("stalled-server", &[]),
    ("lease-server", &["permit"]),
    ("garden-fixture", &["testkit", "api"]),
    (
        "parts-fixture",
        &["testkit", "parts", "ownership", "runtime", "api"],
    ),
    ("local-cloud-fixture", &["cloud-local", "runtime"]),
    ("aws-fixture", &["testkit", "cloud-aws", "permit", "runtime"]),
    (
        "extension-contract",
        &[
            "extension",
            "owner-checks",
            "ownership",
            "permit",
            "runtime",
            "api",
        ],
    ),
    ("xtask", &["api", "parts", "gardenlet", "runtime"]),
    ("repot-tests", &["*"]),
    ("repot-drill", &["*"]),
    ("repot-operations", &["*"]),
];
