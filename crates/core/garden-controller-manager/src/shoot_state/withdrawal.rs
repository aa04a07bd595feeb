//! A seed has rights only while its namespace `seed-<name>` exists and gives access.
//!
//! An operator withdraws the access of a seed to all shoots, for example after a theft of the gardenlet's
//! certificate, by label [`SEED_ACCESS`] of the namespace. Then garden-controller-manager ends all grants of
//! the seed, and creates no grant. An operator deletes the bindings of the chart's roles
//! (docs/operate/runbooks.md). Policy `namespace-deletion-withdrawn` keeps a namespace with the label, so the
//! withdrawal outlives the Seed. The namespace of a removed Seed is gone, so the name of a removed Seed gets
//! no right, also while a Shoot or a BackupEntry has that name.

use api::constants::{SEED_ACCESS, SEED_ACCESS_WITHDRAWN, SEED_REGISTRATION, SEED_REGISTRATION_REFUSED};
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

/// Whether the seed may have rights. `namespaces`: all namespaces of the garden.
pub(super) fn has_access(namespaces: &Store<NamespaceMeta>, seed: &str) -> bool {
    let namespace = namespaces.get(&ObjectRef::new(&seed_namespace(seed)));
    namespace.is_some_and(|namespace| gives_access(&namespace))
}

/// Whether the namespace of a seed gives access. A namespace that refuses the registration of the seed is of
/// a removed Seed.
pub(super) fn gives_access(namespace: &NamespaceMeta) -> bool {
    let refusals = [
        (SEED_ACCESS, SEED_ACCESS_WITHDRAWN),
        (SEED_REGISTRATION, SEED_REGISTRATION_REFUSED),
    ];
    let has =
        |(label, value): (&str, &str)| namespace.labels().get(label).is_some_and(|found| found == value);
    namespace.metadata.deletion_timestamp.is_none() && !refusals.into_iter().any(has)
}

/// Ends the grants of `seed` in all namespaces. The namespace of the seed wakes no reconciliation of other
/// namespaces when the access ends.
pub(super) async fn end_everywhere(garden: &Garden, granted: &Store<RoleMeta>, seed: &str) -> Result<()> {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use kube::runtime::{reflector, watcher::Event};
    use serde_json::{Value, json};

    use super::*;

    fn namespace(labels: &Value) -> NamespaceMeta {
        serde_json::from_value(json!({"metadata": {"name": "seed-a", "labels": labels}})).unwrap()
    }

    /// Else the grants of a stolen certificate would come back with the end of the namespace.
    #[test]
    fn a_seed_without_a_namespace_has_no_access() {
        let (store, mut writer) = reflector::store();
        assert!(!has_access(&store, "a"), "a removed Seed");
        writer.apply_watcher_event(&Event::Apply(namespace(&json!({}))));
        assert!(has_access(&store, "a"));
        assert!(!has_access(&store, "b"));
    }

    #[test]
    fn a_namespace_with_a_refusal_or_in_deletion_gives_no_access() {
        assert!(gives_access(&namespace(&json!({"gardener.cloud/role": "seed"}))));
        assert!(gives_access(&namespace(&json!({(SEED_ACCESS): "granted"}))));
        assert!(!gives_access(&namespace(&json!({(SEED_ACCESS): "withdrawn"}))));
        assert!(!gives_access(&namespace(
            &json!({(SEED_REGISTRATION): "refused"})
        )));
        let mut ending = namespace(&json!({}));
        ending.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        assert!(!gives_access(&ending));
    }
}
