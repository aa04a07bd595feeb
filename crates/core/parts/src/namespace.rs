//! The shoot's namespace in the seed: bound to a Shoot from the creation, and deleted last (I6).

use api::{
    constants,
    gardencore::{Project, Seed as SeedObject, Shoot},
};
use k8s_openapi::api::core::v1;
use kube::{Api, ResourceExt, api::PostParams};
use placement::names;
use runtime::{
    Error, Result,
    client::{
        Cluster, apply,
        wait::{self, WaitState},
    },
    error::Explain,
};
use serde_json::json;

use crate::{
    FIELD_MANAGER, Facts, Residency, configuration_problem, from_json,
    residency::{NamespaceState, left_in, prepared_in},
    secrets::prepared::remove_share,
    task::{ExternalSystems, NONE, PartTask},
    verbs::{Destroy, Tasks},
};

/// The namespace.
#[derive(Debug)]
pub struct Namespace;

impl Namespace {
    /// [`Self::deploy`], as a task.
    pub const DEPLOY: PartTask<Facts> = PartTask::new("Deploying Shoot namespace in Seed", NONE, |input| {
        Box::pin(Self::deploy(input))
    });
    /// [`Self::check_is_active`], as a task.
    pub const CHECK_IS_ACTIVE: PartTask<Residency> =
        PartTask::new("Looking for the shoot's namespace in Seed", NONE, |input| {
            Box::pin(Self::check_is_active(input))
        });

    /// "Deploying Shoot namespace in Seed". The namespace is created with the uid of the Shoot: of two Shoots
    /// with the same technical id, only the first can create the namespace.
    pub async fn deploy(f: &Facts) -> Result<()> {
        let api = f.residency.seed.cluster_wide::<v1::Namespace>();
        let wanted = namespace(f)?;
        match f.residency.read_namespace().await? {
            Some(found) if found.metadata.deletion_timestamp.is_some() => Err(Error::transient(format!(
                "namespace {} is still being deleted from an earlier residency of the shoot on this seed",
                f.residency.namespace
            ))),
            Some(found) => {
                unmark(&f.residency, &found).await?;
                FIELD_MANAGER.apply(&api, &wanted).await.map(|_| ())
            }
            None => create(&api, &wanted).await,
        }
    }

    /// "Looking for the shoot's namespace in Seed". A shoot without a namespace has no data for a hand-over.
    pub async fn check_is_active(residency: &Residency) -> Result<()> {
        let state = match residency.namespace_state().await? {
            NamespaceState::Active => return Ok(()),
            NamespaceState::Missing => "is not there",
            NamespaceState::Terminating => "is being deleted",
        };
        Err(configuration_problem(format!(
            "namespace {} {state}, so that no final snapshot of the shoot can be taken: set spec.seedName back and let the \
             shoot be reconciled where it was",
            residency.namespace
        )))
    }

    /// "Marking the shoot's namespace as left". A marked namespace is cleaned up even when the Shoot is gone.
    pub async fn mark_as_left(residency: &Residency, epoch: i64) -> Result<()> {
        let Some(namespace) = residency.read_namespace().await? else {
            return Ok(());
        };
        let bound = namespace.annotations().get(constants::SHOOT_UID);
        if left_in(&namespace) == Some(epoch) && bound == Some(&residency.tenant.uid) {
            return Ok(());
        }
        // A namespace without the uid of its Shoot would be left behind when the Shoot is gone.
        let body = json!({"metadata": {"uid": namespace.uid(), "annotations": {
            (constants::LEFT_IN_EPOCH): epoch.to_string(), (constants::SHOOT_UID): residency.tenant.uid,
        }}});
        FIELD_MANAGER
            .merge(
                &residency.seed.cluster_wide::<v1::Namespace>(),
                &namespace.name_any(),
                &body,
            )
            .await
            .map(|_| ())
    }
}

impl Destroy for Namespace {
    const TASKS: Tasks = [
        "Deleting shoot namespace in Seed",
        "Waiting until shoot namespace in Seed has been deleted",
    ];
    const TOUCHES: ExternalSystems = NONE;

    /// Deletes exactly the namespace that was read.
    async fn destroy(residency: &Residency) -> Result<()> {
        match residency.read_namespace().await? {
            Some(namespace) => {
                apply::delete_exactly(&residency.seed.cluster_wide::<v1::Namespace>(), &namespace).await
            }
            None => Ok(()),
        }
    }

    async fn gone(residency: &Residency) -> Result<()> {
        let api = residency.seed.cluster_wide::<v1::Namespace>();
        let timeout = residency.settings.timeouts.namespace;
        let look = |object: Option<&v1::Namespace>| match object {
            None => WaitState::Done,
            Some(object) => WaitState::Wait(what_remains(object)),
        };
        wait::until(&api, &residency.namespace, timeout, look)
            .await
            .map(|_| ())
    }
}

/// Creates the namespace, and fails if the namespace exists.
pub(crate) async fn create(api: &Api<v1::Namespace>, wanted: &v1::Namespace) -> Result<()> {
    let params = PostParams {
        field_manager: Some(FIELD_MANAGER.0.to_owned()),
        ..PostParams::default()
    };
    let created = api.create(&params, wanted).await;
    created.context("could not make the shoot's namespace").map(drop)
}

/// Removes the Secrets and the mark of a preparation, and the mark of an earlier residency. A marked
/// namespace without a Shoot in the garden, or without a grant, would be removed, with the control plane that
/// runs in the namespace by now.
async fn unmark(residency: &Residency, found: &v1::Namespace) -> Result<()> {
    let marks = [constants::LEFT_IN_EPOCH, constants::PREPARED_IN_EPOCH];
    if !marks.iter().any(|mark| found.annotations().contains_key(*mark)) {
        return Ok(());
    }
    // While the namespace has the mark, no key in the namespace is a key of an owner.
    if prepared_in(found).is_some() {
        remove_share(residency).await?;
    }
    let body = json!({"metadata": {"annotations": {
        (constants::LEFT_IN_EPOCH): null, (constants::PREPARED_IN_EPOCH): null,
    }}});
    let api = residency.seed.cluster_wide::<v1::Namespace>();
    match FIELD_MANAGER.try_merge_of(&api, found, &body).await? {
        Some(_) => Ok(()),
        None => Err(Error::transient(format!(
            "namespace {} was changed at the same moment",
            residency.namespace
        ))),
    }
}

fn namespace(f: &Facts) -> Result<v1::Namespace> {
    of_shoot(&f.shoot, &f.project, &f.seed_object, &f.residency.namespace)
}

/// The namespace of this name for the Shoot.
pub(crate) fn of_shoot(
    shoot: &Shoot,
    project: &Project,
    seed_object: &SeedObject,
    name: &str,
) -> Result<v1::Namespace> {
    let mut labels = json!({
        (constants::ROLE): "shoot",
        (constants::PROJECT_NAME): project.name_any(),
        (constants::SHOOT_PROVIDER): shoot.spec.provider.type_,
        (constants::SEED_PROVIDER): seed_object.spec.provider.type_,
        (constants::SHOOT_NAMESPACE): shoot.namespace().unwrap_or_default(),
        (constants::SHOOT_NAME): shoot.name_any(),
        (constants::seed_name_label(&seed_object.name_any())): "true",
        // Every pod of a control plane complies; the API server refuses a pod that does not.
        "pod-security.kubernetes.io/enforce": "restricted",
    });
    if let Some(backup) = &seed_object.spec.backup {
        labels[constants::BACKUP_PROVIDER] = json!(backup.provider);
    }
    from_json(json!({
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {(constants::SHOOT_UID): names::uid(shoot)},
        },
    }))
}

/// The obstacles that the namespace controller reports.
fn what_remains(namespace: &v1::Namespace) -> String {
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
