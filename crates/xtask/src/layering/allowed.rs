//! Which crate may use which.

/// Who may use whom, outside of tests. A name that ends with `*` stands for all crates that begin so.
pub(super) const ALLOWED: &[(&str, &[&str])] = &[
    ("api", &[]),
    ("flow", &[]),
    // Safety rules that tests alone switch off.
    ("mutation", &[]),
    ("ownership", &["permit"]),
    ("permit", &[]),
    ("lease", &["permit"]),
    // Its one `main` for managers starts a process of `runtime`.
    ("leader-migration", &["runtime", "lease", "permit"]),
    ("runtime", &["permit", "api"]),
    ("placement", &["ownership", "api"]),
    // For whoever acts for a shoot.
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
    // It can run the gardenlet's controllers of backups as guests.
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
            "permit",
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
            "permit",
            "ownership",
            "api",
        ],
    ),
    (
        "etcd-druid",
        &["runtime", "leader-migration", "permit", "ownership", "api"],
    ),
    (
        "resource-manager",
        &[
            "owner-checks",
            "runtime",
            "leader-migration",
            "permit",
            "ownership",
            "api",
        ],
    ),
    // The controllers of machines and the process around them, for the manager of each cloud.
    ("machine-controllers", &["runtime", "permit", "ownership", "api"]),
    (
        "machine-controller-manager",
        &[
            "machine-controllers",
            "owner-checks",
            "runtime",
            "leader-migration",
        ],
    ),
    (
        "machine-controller-manager-local",
        &[
            "machine-controller-manager",
            "machine-controllers",
            "cloud-local",
            "runtime",
            "leader-migration",
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
            "leader-migration",
            "permit",
            "api",
        ],
    ),
    // The calls of EC2, for those who make things there.
    ("cloud-aws", &["runtime", "permit", "api"]),
    // The local cloud, for those who make things in it and for those who look at it.
    ("cloud-local", &["mutation", "runtime", "permit", "api"]),
    (
        "cloud-controller-manager-local",
        &[
            "owner-checks",
            "cloud-local",
            "runtime",
            "leader-migration",
            "permit",
            "api",
        ],
    ),
    // Starts a program that is not of the suite: it has no controllers of its own.
    (
        "cloud-controller-manager-aws",
        &["owner-checks", "runtime", "leader-migration", "permit"],
    ),
    // On each host of the local cloud: it says only what its own kernel does, so it needs no lock.
    ("cloud-local-agent", &["cloud-local", "runtime", "permit"]),
    // On a machine of a shoot: it only reads Nodes, so it needs no lock.
    ("network-local", &["runtime", "permit"]),
    // One side is in the seed, the other in the shoot; neither asks an API.
    ("tunnel", &["runtime"]),
    ("etcd-backup-restore", &["mutation", "ownership", "permit"]),
    ("kubectl-repot", &["runtime", "permit", "api"]),
    // Development only: nobody uses these outside of tests.
    ("testkit", &[]),
    (
        "xtask",
        &["api", "parts", "flow", "gardenlet", "placement", "runtime"],
    ),
    ("repot-tests", &["*"]),
    ("repot-drill", &["*"]),
    ("repot-operations", &["*"]),
];
