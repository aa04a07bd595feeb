//! The allowed dependencies between crates.

/// The allowed dependencies of each crate, outside of tests. A name that ends with `*` stands for all crates
/// with that prefix.
pub(super) const ALLOWED: &[(&str, &[&str])] = &[
    ("api", &[]),
    ("flow", &[]),
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
    (
        "suite-managers",
        &["runtime", "leader-migration", "lease", "permit"],
    ),
    ("placement", &["ownership", "api"]),
    // For processes that act for a shoot.
    (
        "owner-checks",
        &["runtime", "permit", "ownership", "placement", "api"],
    ),
    (
        "parts",
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
            "suite-managers",
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
            "suite-managers",
            "permit",
            "ownership",
            "api",
        ],
    ),
    (
        "provider-*",
        &[
            "extension",
            "runtime",
            "leader-migration",
            "suite-managers",
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
            "suite-managers",
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
            "suite-managers",
            "permit",
            "ownership",
            "api",
        ],
    ),
    (
        "etcd-druid",
        &[
            "runtime",
            "leader-migration",
            "suite-managers",
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
            "suite-managers",
            "permit",
            "ownership",
            "api",
        ],
    ),
    // The controllers of machines and the surrounding process, for the manager of each cloud.
    ("machine-controllers", &["runtime", "permit", "ownership", "api"]),
    (
        "machine-controller-manager",
        &[
            "machine-controllers",
            "owner-checks",
            "runtime",
            "leader-migration",
            "suite-managers",
        ],
    ),
    (
        "machine-controller-manager-local",
        &[
            "machine-controller-manager",
            "machine-controllers",
            "cloud-local",
            "runtime",
            "suite-managers",
            "permit",
            "api",
        ],
    ),
    (
        "machine-controller-manager-aws",
        &[
            "machine-controller-manager",
            "machine-controllers",
            "cloud-aws",
            "runtime",
            "suite-managers",
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
            "suite-managers",
            "permit",
            "api",
        ],
    ),
    // Starts a foreign program, and has no controllers.
    (
        "cloud-controller-manager-aws",
        &["owner-checks", "runtime", "suite-managers", "permit"],
    ),
    // On each host of the local cloud: reports only the state of the host's kernel, so no lock is needed.
    ("cloud-local-agent", &["cloud-local", "runtime", "permit"]),
    // On a machine of a shoot: only reads Nodes, so no lock is needed.
    ("network-local", &["runtime", "permit"]),
    // The server is in the seed, the agent in the shoot; neither uses an API server.
    ("tunnel", &["runtime"]),
    (
        "etcd-backup-restore",
        &["mutation", "ownership", "permit", "permit-object-store"],
    ),
    ("kubectl-repot", &["runtime", "permit", "api"]),
    // Development only: used only by tests.
    ("testkit", &[]),
    (
        "xtask",
        &["api", "parts", "flow", "gardenlet", "placement", "runtime"],
    ),
    ("repot-tests", &["*"]),
    ("repot-drill", &["*"]),
    ("repot-operations", &["*"]),
];
