//! The shoot's namespace in the seed: bound to one Shoot from its first moment, and the last thing that goes (I6).

use api::constants;
use k8s_openapi::api::core::v1::Namespace;
use kube::{ResourceExt, api::PostParams};
use placement::names;
use runtime::{Cluster, Error, Result, error::Context};
use serde_json::json;

use crate::{Botanist, FIELD_MANAGER, from_json};

impl Botanist {
    /// "Deploying Shoot namespace in Seed". It is created with the uid of its Shoot in it: of two Shoots with one technical
    /// id only one can be first.
    pub async fn deploy_namespace(&self) -> Result<()> {
        let api = self.seed.cluster_wide::<Namespace>();
        let wanted = namespace(self)?;
        match self.read_namespace().await? {
            Some(found) if found.metadata.deletion_timestamp.is_some() => Err(Error::transient(format!(
                "namespace {} is still being deleted from an earlier stay of the shoot on this seed",
                self.namespace
            ))),
            Some(_) => FIELD_MANAGER.apply(&api, &wanted).await.map(|_| ()),
            None => {
                let params = PostParams {
                    field_manager: Some(FIELD_MANAGER.0.to_owned()),
                    ..PostParams::default()
                };
                api.create(&params, &wanted)
                    .await
                    .context("could not make the shoot's namespace")
                    .map(|_| ())
            }
        }
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
