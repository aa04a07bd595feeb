//! An operator withdraws the access of a seed to all shoots, for example after a theft of the gardenlet's
//! certificate, by label [`SEED_ACCESS`] of namespace `seed-<name>`. Then garden-controller-manager ends all
//! grants of the seed, and creates no grant. An operator deletes the bindings of the chart's roles
//! (docs/operate/runbooks.md).

use api::constants::{SEED_ACCESS, SEED_ACCESS_WITHDRAWN};
use k8s_openapi::api::rbac::v1::{ClusterRole, RoleBinding};
use kube::{
    Api, ResourceExt,
    core::PartialObjectMeta,
    runtime::reflector::{ObjectRef, Store},
};
use placement::credentials::seed_namespace;
use runtime::{
    Result,
    client::{Cluster, Garden, apply},
};

use super::grants::{NamespaceMeta, binding_name, role_name, seed_and_namespace};

/// The metadata of a ClusterRole.
pub(super) type RoleMeta = PartialObjectMeta<ClusterRole>;

/// Whether an operator has withdrawn the access of the seed. `namespaces`: all namespaces of the garden.
pub(super) fn is_withdrawn(namespaces: &Store<NamespaceMeta>, seed: &str) -> bool {
    let namespace = namespaces.get(&ObjectRef::new(&seed_namespace(seed)));
    namespace.is_some_and(|namespace| has_label(&namespace))
}

/// Ends the grants of `seed` in all namespaces, if the access is withdrawn. `namespace` has the credentials
/// of `seed`. The label of this namespace wakes no reconciliation of other namespaces.
pub(super) async fn end_elsewhere(
    garden: &Garden,
    granted: &Store<RoleMeta>,
    seed: Option<&str>,
    namespace: &NamespaceMeta,
) -> Result<()> {
    let Some(seed) = seed.filter(|_| has_label(namespace)) else {
        return Ok(());
    };
    let roles: Api<ClusterRole> = garden.cluster_wide();
    let mut ended = Ok(());
    for role in granted.state() {
        let role = role.name_any();
        let Some((_, namespace)) = seed_and_namespace(&role).filter(|(of, _)| *of == seed) else {
            continue;
        };
        let bindings: Api<RoleBinding> = garden.namespaced(namespace);
        ended = ended.and(end(&bindings, &roles, seed, namespace).await);
    }
    ended
}

/// Removes the rights of a seed without a reason for rights in the namespace. Each of the two deletions ends
/// the rights, so the second is attempted after a failure of the first.
pub(super) async fn end(
    bindings: &Api<RoleBinding>,
    roles: &Api<ClusterRole>,
    seed: &str,
    namespace: &str,
) -> Result<()> {
    let unbound = apply::delete(bindings, &binding_name(seed)).await;
    let removed = apply::delete(roles, &role_name(seed, namespace)).await;
    unbound.and(removed)
}

fn has_label(namespace: &NamespaceMeta) -> bool {
    let access = namespace.labels().get(SEED_ACCESS);
    access.is_some_and(|access| access == SEED_ACCESS_WITHDRAWN)
}
