//! The residency of a shoot in a seed: the shoot's namespace, and all operations there that do not read the
//! garden.
//!
//! A seed that the shoot has left cleans up with this data alone, also when the Shoot is gone. Every use of
//! the namespace begins with a check of the owner. The namespace is bound to the uid of a Shoot at creation,
//! and a namespace of a different Shoot is never touched.

use std::sync::Arc;

use api::constants;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt};
use runtime::{
    Result,
    client::{Cluster, Seed},
    error::Explain,
};

use crate::{Settings, configuration_problem};

/// The Shoot that owns the namespace: names, and the uid from the status of the Shoot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// `status.uid`.
    pub uid: String,
    /// Namespace of the Shoot in the garden.
    pub namespace: String,
    /// Name of the Shoot.
    pub name: String,
}

/// The residency of a shoot in this seed.
#[derive(Clone, Debug)]
pub struct Residency {
    /// The seed of this gardenlet.
    pub seed: Seed,
    /// Settings of the operator.
    pub settings: Arc<Settings>,
    /// The shoot's namespace in the seed.
    pub namespace: String,
    /// The required owner of the namespace.
    pub tenant: Tenant,
}

/// State of the namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceState {
    /// The namespace does not exist.
    Missing,
    /// The namespace is usable.
    Active,
    /// The namespace is being deleted.
    Terminating,
}

impl Residency {
    /// The namespace, if the namespace exists. A namespace of a different Shoot is an error: no object in
    /// that namespace may be touched.
    pub async fn read_namespace(&self) -> Result<Option<Namespace>> {
        let api: Api<Namespace> = self.seed.cluster_wide();
        let found = api
            .get_opt(&self.namespace)
            .await
            .context("could not read the shoot's namespace")?;
        if let Some(namespace) = &found {
            check(namespace, &self.tenant)?;
        }
        Ok(found)
    }

    /// State of the namespace. A namespace of a different Shoot is an error.
    pub async fn namespace_state(&self) -> Result<NamespaceState> {
        Ok(match self.read_namespace().await? {
            None => NamespaceState::Missing,
            Some(namespace) if namespace.metadata.deletion_timestamp.is_some() => NamespaceState::Terminating,
            Some(_) => NamespaceState::Active,
        })
    }
}

/// The epoch in which the shoot has left the namespace, if the shoot has left.
#[must_use]
pub fn left_in(namespace: &Namespace) -> Option<i64> {
    namespace
        .annotations()
        .get(constants::LEFT_IN_EPOCH)?
        .parse()
        .ok()
}

/// The epoch of the grant under which the seed has created the namespace, if no flow of an owner has begun
/// in the namespace.
#[must_use]
pub fn prepared_in(namespace: &impl ResourceExt) -> Option<i64> {
    namespace
        .annotations()
        .get(constants::PREPARED_IN_EPOCH)?
        .parse()
        .ok()
}

/// Refuses a namespace that belongs to a different Shoot. A namespace without a uid is adopted only where the
/// labels name the Shoot.
pub(crate) fn check(namespace: &Namespace, tenant: &Tenant) -> Result<()> {
    let name = namespace.name_any();
    let bound = namespace.annotations().get(constants::SHOOT_UID);
    let refused = match bound {
        Some(uid) if *uid == tenant.uid => return Ok(()),
        Some(uid) => format!("belongs to the shoot with the uid {uid}"),
        None => {
            let label = |key: &str| namespace.labels().get(key).map(String::as_str);
            let named = label(constants::SHOOT_NAME) == Some(&tenant.name)
                && label(constants::SHOOT_NAMESPACE) == Some(&tenant.namespace);
            if named {
                return Ok(());
            }
            format!(
                "is bound to no shoot, and its labels {} and {} do not name this one",
                constants::SHOOT_NAMESPACE,
                constants::SHOOT_NAME
            )
        }
    };
    Err(configuration_problem(format!(
        "namespace {name} of this seed {refused}: nothing there is touched for Shoot {}/{} (uid {}). Two shoots cannot have \
         one technical id: delete this Shoot and make it under another name",
        tenant.namespace, tenant.name, tenant.uid
    )))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn namespace(uid: Option<&str>, shoot: &str) -> Namespace {
        crate::from_json(json!({"metadata": {"name": "shoot--dev--web",
            "annotations": uid.map(|uid| json!({(constants::SHOOT_UID): uid})),
            "labels": {(constants::SHOOT_NAMESPACE): "garden-dev", (constants::SHOOT_NAME): shoot}}}))
        .unwrap()
    }

    #[test]
    fn a_namespace_of_another_shoot_is_not_touched() {
        let tenant = Tenant {
            uid: "u1".into(),
            namespace: "garden-dev".into(),
            name: "web".into(),
        };
        assert!(check(&namespace(Some("u1"), "web"), &tenant).is_ok());
        let stolen = check(&namespace(Some("u2"), "web"), &tenant)
            .unwrap_err()
            .to_string();
        assert!(
            stolen.contains("belongs to the shoot with the uid u2"),
            "{stolen}"
        );
        // A namespace that is older than the binding by uid.
        assert!(check(&namespace(None, "web"), &tenant).is_ok());
        assert!(check(&namespace(None, "other"), &tenant).is_err());
        assert!(check(&Namespace::default(), &tenant).is_err());
    }
}
