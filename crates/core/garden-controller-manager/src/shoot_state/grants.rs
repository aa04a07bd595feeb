//! The ClusterRole and the RoleBinding of a seed for one namespace: pure decisions.

use std::collections::BTreeSet;

use api::constants::seed_user;
use k8s_openapi::api::{
    core::v1::Namespace,
    rbac::v1::{ClusterRole, RoleBinding},
};
use kube::{ResourceExt, core::PartialObjectMeta};
use placement::credentials::kubeconfig_secret;
use runtime::{Error, Result};
use serde_json::{Value, json};

use super::bounded::NamedChunks;

/// Label of ClusterRoles and RoleBindings.
pub(super) const LABEL: (&str, &str) = ("gardener.cloud/role", "seed-rights");
/// Begin of the names of ClusterRoles (then `<seed>:<namespace>`) and RoleBindings (then `<seed>`).
pub(super) const PREFIX: &str = "gardener.cloud:seed:";
const RBAC: &str = "rbac.authorization.k8s.io";
const EVENTS: &str = "events.k8s.io";
const CORE: &str = "core.gardener.cloud";

/// A namespace without its content.
pub(super) type NamespaceMeta = PartialObjectMeta<Namespace>;

/// Objects of one namespace that one seed may read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rights {
    /// Names of Shoots, which are the names of their ShootStates and begin the names of their kubeconfigs.
    pub(super) shoots: BTreeSet<String>,
    /// InternalSecrets of these ShootStates.
    pub(super) chunks: NamedChunks,
    /// InternalSecrets with the keys for the preparations of the seed, one for each grant.
    pub(super) prepared: BTreeSet<String>,
    /// Secrets with credentials of a cloud, of a DNS provider or of a bucket.
    pub(super) secrets: BTreeSet<String>,
    /// Whether the seed reports Events in the namespace.
    pub(super) reports: bool,
    /// Whether the namespace holds the credentials of the seed itself: the seed reads each Secret there.
    pub(super) is_own: bool,
}

impl Rights {
    /// Whether the seed has no right in the namespace.
    pub(super) fn is_empty(&self) -> bool {
        let reads = [&self.shoots, &self.prepared, &self.secrets];
        reads.into_iter().all(BTreeSet::is_empty) && !self.reports && !self.is_own
    }

    /// Rules of the ClusterRole. A rule without names would be a right to all objects of a kind, so each
    /// rule for reads has names, except in the namespace of the seed itself.
    fn rules(&self) -> Vec<Value> {
        let mut rules = Vec::new();
        if self.reports {
            rules.push(json!({"apiGroups": [EVENTS], "resources": ["events"], "verbs": ["create", "patch"]}));
        }
        if !self.shoots.is_empty() {
            let kubeconfigs: BTreeSet<_> = self.shoots.iter().map(|shoot| kubeconfig_secret(shoot)).collect();
            rules.extend([
                json!({"apiGroups": [CORE], "resources": ["shootstates"], "resourceNames": self.shoots,
                    "verbs": ["get", "patch"]}),
                // RBAC cannot limit `create` by name. Policies refuse InternalSecrets of other shoots.
                json!({"apiGroups": [CORE], "resources": ["internalsecrets"], "verbs": ["create", "delete"]}),
                json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": kubeconfigs,
                    "verbs": ["get", "patch", "delete"]}),
            ]);
        }
        let chunks = &self.chunks.names;
        if !chunks.is_empty() {
            rules.push(
                json!({"apiGroups": [CORE], "resources": ["internalsecrets"], "resourceNames": chunks, "verbs": ["get"]}),
            );
        }
        let prepared = &self.prepared;
        if !prepared.is_empty() {
            rules.push(
                json!({"apiGroups": [CORE], "resources": ["internalsecrets"], "resourceNames": prepared, "verbs": ["get"]}),
            );
        }
        if !self.secrets.is_empty() {
            rules.push(
                json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": self.secrets, "verbs": ["get"]}),
            );
        }
        if self.is_own {
            rules.push(json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}));
        }
        rules
    }
}

/// The ClusterRole of a seed for a namespace.
pub(super) fn role(seed: &str, namespace: &NamespaceMeta, rights: &Rights) -> Value {
    let owner = json!({"apiVersion": "v1", "kind": "Namespace", "name": namespace.name_any(),
        "uid": namespace.uid().unwrap_or_default()});
    json!({
        "metadata": {"name": role_name(seed, &namespace.name_any()), "labels": {(LABEL.0): LABEL.1}, "ownerReferences": [owner]},
        "rules": rights.rules(),
    })
}

/// The RoleBinding of a seed in a namespace.
pub(super) fn binding(seed: &str, namespace: &str) -> Value {
    json!({
        "metadata": {"name": binding_name(seed), "labels": {(LABEL.0): LABEL.1}},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role_name(seed, namespace)},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": seed_user(seed)}],
    })
}

/// A ClusterRole or a RoleBinding of a seed.
pub(super) trait Grant {
    /// Whether no write of garden-controller-manager can make the object equal to `wanted`.
    fn is_unlike(&self, wanted: &Self) -> bool;
}

impl Grant for ClusterRole {
    fn is_unlike(&self, wanted: &Self) -> bool {
        self.aggregation_rule.is_some() || self.labels() != wanted.labels()
    }
}

impl Grant for RoleBinding {
    fn is_unlike(&self, wanted: &Self) -> bool {
        self.role_ref != wanted.role_ref || self.labels() != wanted.labels()
    }
}

/// Seed and namespace in the name of a ClusterRole.
pub(super) fn seed_and_namespace(role: &str) -> Option<(&str, &str)> {
    role.strip_prefix(PREFIX)?.split_once(':')
}

pub(super) fn role_name(seed: &str, namespace: &str) -> String {
    format!("{PREFIX}{seed}:{namespace}")
}

pub(super) fn binding_name(seed: &str) -> String {
    format!("{PREFIX}{seed}")
}

pub(super) fn decode<K: serde::de::DeserializeOwned>(object: Value) -> Result<K> {
    serde_json::from_value(object).map_err(|error| Error::bug("generated object is invalid").caused_by(error))
}

#[cfg(test)]
#[path = "grants_tests.rs"]
mod tests;
