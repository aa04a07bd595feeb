//! The shoot's namespace in the seed. It is the last thing that goes from a source seed (I6).

use api::constants;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt};
use runtime::{Cluster, Error, Result, apply, error::Context, wait};
use serde_json::json;

use crate::{Botanist, FIELD_MANAGER, from_json, names};

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

impl Botanist {
    /// "Deploying Shoot namespace in Seed".
    pub async fn deploy_namespace(&self) -> Result<()> {
        let api = self.seed.cluster_wide::<Namespace>();
        if self.namespace_state().await? == NamespaceState::Terminating {
            return Err(Error::transient(format!(
                "namespace {} is still being deleted from an earlier stay of the shoot on this seed",
                self.namespace
            )));
        }
        FIELD_MANAGER.apply(&api, &namespace(self)?).await.map(|_| ())
    }

    /// "Deleting shoot namespace in Seed".
    pub async fn delete_namespace(&self) -> Result<()> {
        apply::delete(&self.seed.cluster_wide::<Namespace>(), &self.namespace).await
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
                None => wait::Look::Done,
                Some(object) => wait::Look::Wait(what_remains(object)),
            },
        )
        .await
        .map(|_| ())
    }

    /// How the namespace stands.
    pub async fn namespace_state(&self) -> Result<NamespaceState> {
        let api: Api<Namespace> = self.seed.cluster_wide();
        let found = api
            .get_opt(&self.namespace)
            .await
            .context("could not read the shoot's namespace")?;
        Ok(match found {
            None => NamespaceState::Missing,
            Some(namespace) if namespace.metadata.deletion_timestamp.is_some() => NamespaceState::Terminating,
            Some(_) => NamespaceState::Active,
        })
    }
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

fn namespace(botanist: &Botanist) -> Result<Namespace> {
    let shoot = &botanist.shoot;
    let mut labels = json!({
        (constants::ROLE): "shoot",
        (constants::PROJECT_NAME): botanist.project.name_any(),
        (constants::SHOOT_PROVIDER): shoot.spec.provider.type_,
        (constants::SEED_PROVIDER): botanist.seed_object.spec.provider.type_,
        (constants::SHOOT_NAMESPACE): botanist.shoot_namespace(),
        (constants::SHOOT_NAME): shoot.name_any(),
        (constants::seed_name_label(&botanist.seed_object.name_any())): "true",
        // Every pod of a control plane keeps to it; one that does not is refused.
        "pod-security.kubernetes.io/enforce": "restricted",
    });
    if let Some(backup) = &botanist.seed_object.spec.backup {
        labels[constants::BACKUP_PROVIDER] = json!(backup.provider);
    }
    from_json(json!({
        "metadata": {
            "name": botanist.namespace,
            "labels": labels,
            "annotations": {(constants::SHOOT_UID): names::uid(shoot)},
        },
    }))
}
