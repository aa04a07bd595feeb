//! Steps with which a control plane begins on a seed, awake or asleep.

use flow::{Graph, TaskId};
use parts::{CloudProviderSecret, ClusterIdentity, Facts, Namespace, Secrets};
use runtime::Error;

/// What the other steps stand on.
#[derive(Clone, Copy)]
pub(super) struct Base {
    /// The shoot's namespace.
    pub namespace: TaskId,
    /// By which its controllers tell what is theirs.
    pub identity: TaskId,
    /// The account at the provider.
    pub credentials: TaskId,
    /// The shoot's own authorities, keys and certificates.
    pub secrets: TaskId,
}

/// Adds them.
pub(super) fn lay<'a>(g: &mut Graph<'a, Error>, f: &'a Facts) -> Base {
    let namespace = g.step("Deploying Shoot namespace in Seed", [], || Namespace::deploy(f));
    Base {
        namespace,
        identity: g.step("Ensuring Shoot cluster identity", namespace, || {
            ClusterIdentity::ensure(f)
        }),
        credentials: g.step("Deploying cloud provider account secret", namespace, || {
            CloudProviderSecret::deploy(f)
        }),
        secrets: g.step("Initializing secrets management", namespace, || {
            Secrets::deploy(f)
        }),
    }
}
