//! What of a shoot is in one seed: its namespace, and all that can be done there without asking the garden.
//!
//! A seed that the shoot has left cleans up by this alone, also when the Shoot is gone. Every use of the namespace begins
//! with the question whose it is: it is bound to the uid of one Shoot when it is made, and nothing is done in one that
//! belongs to another.

use std::sync::Arc;

use api::constants;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt};
use runtime::{Cluster, Result, Seed, apply, error::Context, wait, wait::Look};
use serde_json::json;

use crate::{FIELD_MANAGER, Settings, configuration_problem};

/// Whose namespace it is. Names and the uid as the status of the Shoot records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// `status.uid`.
    pub uid: String,
    /// Namespace of the Shoot in the garden.
    pub namespace: String,
    /// Name of the Shoot.
    pub name: String,
}

/// A shoot in this seed.
#[derive(Clone, Debug)]
pub struct Stay {
    /// The seed of this gardenlet.
    pub seed: Seed,
    /// What an operator set.
    pub settings: Arc<Settings>,
    /// The shoot's namespace in the seed.
    pub namespace: String,
    /// Whose it has to be.
    pub tenant: Tenant,
}

/// How the namespace stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceState {
    /// There is none.
    Missing,
    /// It can be used.
    Active,
    /// It is being deleted.
    Terminating,
}

impl Stay {
    /// The namespace, if it is there. One of another Shoot is an error: nothing of it may be touched.
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

    /// How the namespace stands. One of another Shoot is an error.
    pub async fn namespace_state(&self) -> Result<NamespaceState> {
        Ok(match self.read_namespace().await? {
            None => NamespaceState::Missing,
            Some(namespace) if namespace.metadata.deletion_timestamp.is_some() => NamespaceState::Terminating,
            Some(_) => NamespaceState::Active,
        })
    }

    /// "Looking for the shoot's namespace in Seed". A shoot whose namespace is gone has nothing that could be handed over.
    pub async fn check_namespace_is_active(&self) -> Result<()> {
        let state = match self.namespace_state().await? {
            NamespaceState::Active => return Ok(()),
            NamespaceState::Missing => "is not there",
            NamespaceState::Terminating => "is being deleted",
        };
        Err(configuration_problem(format!(
            "namespace {} {state}, so that no final snapshot of the shoot can be taken: set spec.seedName back and let the \
             shoot be reconciled where it was",
            self.namespace
        )))
    }

    /// "Marking the shoot's namespace as left". What is marked is cleaned up also when its Shoot is gone.
    pub async fn mark_as_left(&self, epoch: i64) -> Result<()> {
        let Some(namespace) = self.read_namespace().await? else {
            return Ok(());
        };
        if left_in(&namespace) == Some(epoch) {
            return Ok(());
        }
        let body = json!({"metadata": {
            "uid": namespace.uid(), "annotations": {(constants::LEFT_IN_EPOCH): epoch.to_string()},
        }});
        FIELD_MANAGER
            .merge(
                &self.seed.cluster_wide::<Namespace>(),
                &namespace.name_any(),
                &body,
            )
            .await
            .map(|_| ())
    }

    /// "Deleting shoot namespace in Seed". Deletes exactly the one that was looked at.
    pub async fn delete_namespace(&self) -> Result<()> {
        match self.read_namespace().await? {
            Some(namespace) => {
                apply::delete_exactly(&self.seed.cluster_wide::<Namespace>(), &namespace).await
            }
            None => Ok(()),
        }
    }

    /// Waits until the namespace is gone.
    pub async fn wait_until_namespace_deleted(&self) -> Result<()> {
        let api = self.seed.cluster_wide::<Namespace>();
        let timeout = self.settings.timeouts.namespace;
        wait::until(
            &api,
            &self.namespace,
            timeout,
            |object: Option<&Namespace>| match object {
                None => Look::Done,
                Some(object) => Look::Wait(what_remains(object)),
            },
        )
        .await
        .map(|_| ())
    }
}

/// The epoch in which the shoot has left the namespace, if it has.
#[must_use]
pub fn left_in(namespace: &Namespace) -> Option<i64> {
    namespace
        .annotations()
        .get(constants::LEFT_IN_EPOCH)?
        .parse()
        .ok()
}

/// Refuses a namespace that belongs to another Shoot. One without a uid is adopted only where its labels name the Shoot.
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

/// What the namespace controller says that stands in the way.
fn what_remains(namespace: &Namespace) -> String {
    let conditions = namespace
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    let remains: Vec<_> = conditions
        .iter()
        .filter(|condition| condition.status == "True")
        .filter_map(|condition| condition.message.as_deref())
        .collect();
    if remains.is_empty() {
        "it is being deleted".into()
    } else {
        remains.join("; ")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
        // One that was made before namespaces were bound.
        assert!(check(&namespace(None, "web"), &tenant).is_ok());
        assert!(check(&namespace(None, "other"), &tenant).is_err());
        assert!(check(&Namespace::default(), &tenant).is_err());
    }
}
