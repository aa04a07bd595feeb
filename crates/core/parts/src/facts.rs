//! Facts of a shoot for all parts: read and checked once, before a flow begins. No task of a flow changes the
//! facts. The findings of the tasks are in [`crate::MoveFindings`].

use std::{sync::Arc, time::Duration};

use api::{
    gardencore::{
        CloudProfile, ControllerRegistration, Project, SecretBinding, Seed as SeedObject, Shoot,
        shoot::CloudProfileKind,
    },
    meta::LastOperationType,
    security::CredentialsBinding,
};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt, api::ListParams};
use ownership::Terms;
use placement::{Extensions, Isolation, Names, Operation, names, registered};
use runtime::{
    Error, Result,
    client::{Cluster, Garden, Seed},
    error::Explain,
};

use crate::{
    Settings, configuration_problem,
    controllers::controller_leaders::{self, Stage, current_stage},
    extensions::shared_close_deadline::SharedCloseDeadline,
    nodes::check_room,
    ownership::{opened_epoch, owner_claim, owner_terms},
    residency::{Residency, Tenant},
    shoot_state::ShootStateCache,
};

/// Requeue interval while the version is open; an edit of the Shoot triggers earlier.
const WAIT_FOR_VERSION: Duration = Duration::from_secs(60);

/// Requeue interval while garden-controller-manager has not granted the right to a Secret yet. The right
/// follows a write of `status.seedName` or of a binding within a second.
const WAIT_FOR_RIGHT: Duration = Duration::from_secs(1);

/// The facts of a shoot on a seed, with the seed's part in `residency`. The facts stay constant while a flow
/// runs, except [`Facts::close_deadline`].
#[derive(Clone, Debug)]
pub struct Facts {
    /// The garden.
    pub garden: Garden,
    /// The shoot in the seed of this gardenlet.
    pub residency: Residency,
    /// The shoot as it was when the flow started, except for phases of ownership that the seed does not show
    /// ([`crate::OpenedEpoch`]).
    pub shoot: Arc<Shoot>,
    /// Project of the shoot.
    pub project: Project,
    /// Cloud profile of the shoot.
    pub cloud_profile: CloudProfile,
    /// Extensions of the shoot, with the phase of each extension.
    pub extensions: Extensions,
    /// Isolation of the shoot's zones.
    pub isolation: Isolation,
    /// Latest time to close the network of the isolated zone. Follows the Shoot while a flow runs; no task of
    /// a flow sets the time.
    pub close_deadline: SharedCloseDeadline,
    /// The Seed of this gardenlet, in the garden.
    pub seed_object: SeedObject,
    /// Operation of the flow.
    pub operation: Operation,
    /// Names that are derived from the shoot.
    pub names: Names,
    /// Version of Kubernetes, in full and without `v`.
    pub kubernetes_version: String,
    /// Stage of node IPAM at the start of the flow: all steps of a flow must use the same stage.
    pub stage: Stage,
    /// Intervals and bounds of owner checks, and the length of the fence.
    pub owner_check: Terms,
    /// Cache of the verified ShootState: the verification of a large ShootState is expensive.
    pub shoot_state_cache: ShootStateCache,
}

impl Facts {
    /// Reads the inputs of the parts, and reports errors in the inputs before any change (I8).
    pub async fn new(
        garden: Garden,
        seed: Seed,
        settings: Arc<Settings>,
        seed_name: &str,
        shoot: Arc<Shoot>,
        operation: Operation,
    ) -> Result<Self> {
        let project = project_of(&garden, &shoot).await?;
        let cloud_profile = cloud_profile_of(&garden, &shoot).await?;
        let registrations = registrations(&garden).await?;
        let extensions = Extensions::for_shoot(&shoot, &registrations);
        let isolation = Isolation::for_shoot(&shoot, operation, &registrations);
        let seed_object = garden
            .cluster_wide::<SeedObject>()
            .get_opt(seed_name)
            .await
            .context(format_args!("could not read Seed {seed_name}"))?
            .ok_or_else(|| configuration_problem(format!("there is no Seed {seed_name} in the garden")))?;
        let names = Names::for_shoot(&shoot, &project.name_any(), &seed_object)
            .map_err(|error| configuration_problem(error.to_string()))?;
        let residency = Residency {
            seed,
            settings,
            namespace: names.technical_id.clone(),
            tenant: tenant(&shoot),
        };
        let home = residency.read_namespace().await?;
        let shoot = opened_epoch::rely_on(&residency, home.as_ref(), shoot, operation).await?;
        let owner_check = if operation.deploys() {
            owner_terms::read_terms(&garden, residency.settings.owner_check, &seed_object, &shoot).await?
        } else {
            residency.settings.owner_check
        };
        let wanted = Stage::wanted(&shoot.spec.kubernetes.controller_leaders);
        let stage = current_stage(&residency.seed, &names.technical_id, &shoot.name_any(), wanted).await?;
        let facts = Self {
            stage,
            owner_check,
            close_deadline: SharedCloseDeadline::recorded(&shoot),
            shoot_state_cache: ShootStateCache::default(),
            kubernetes_version: kubernetes_version(&shoot, &cloud_profile)?,
            garden,
            residency,
            shoot,
            project,
            cloud_profile,
            extensions,
            isolation,
            seed_object,
            operation,
            names,
        };
        if operation.deploys() {
            controller_leaders::check(wanted, &facts.names)?;
            owner_claim::check(&facts.seed_object, &facts.names)?;
            facts.cloud_credentials().await?;
            if let Some(why) = facts.extensions.refusal() {
                return Err(configuration_problem(why));
            }
        }
        // A transient error: the shoot is created as soon as the operator has registered the extension.
        if operation == Operation::Create
            && let Some(why) = registered::missing_for(&facts.shoot, &registrations)
        {
            return Err(Error::transient(why));
        }
        // Only create and reconcile: the seed with the only copy of a shoot must be able to continue.
        if matches!(operation, Operation::Create | Operation::Reconcile) {
            check_room(&facts.shoot.spec.provider.workers, &facts.names.pods)?;
        }
        Ok(facts)
    }

    /// Whether the shoot is hibernated at the end of the flow. A move or deletion does not hibernate, and
    /// wakes the shoot only as far as necessary.
    #[must_use]
    pub fn is_to_sleep(&self) -> bool {
        self.operation.deploys() && placement::is_to_sleep(&self.shoot)
    }

    /// Whether parts of the shoot may be hibernated: hibernation is configured, or in progress in either
    /// direction.
    #[must_use]
    pub fn may_sleep(&self) -> bool {
        self.shoot.spec.hibernation.is_some() || placement::is_asleep(&self.shoot)
    }

    /// Namespace of the Shoot in the garden.
    pub(crate) fn shoot_namespace(&self) -> String {
        self.shoot.namespace().unwrap_or_default()
    }

    /// Credentials for the provider, from the binding. `None` for a shoot without a binding (such a shoot has
    /// no workers).
    pub(crate) async fn cloud_credentials(&self) -> Result<Option<Secret>> {
        let namespace = self.shoot_namespace();
        let spec = &self.shoot.spec;
        let (secret_namespace, secret_name) = if let Some(name) = &spec.credentials_binding_name {
            let binding = self.binding::<CredentialsBinding>(&namespace, name).await?;
            let reference = &binding.spec.credentials_ref;
            if reference.kind.as_deref() != Some("Secret") {
                return Err(configuration_problem(format!(
                    "CredentialsBinding {name} refers to a {}: only Secrets can be used",
                    reference.kind.as_deref().unwrap_or("thing without a kind")
                )));
            }
            (reference.namespace.clone(), reference.name.clone())
        } else if let Some(name) = &spec.secret_binding_name {
            let binding = self.binding::<SecretBinding>(&namespace, name).await?;
            (binding.spec.secret_ref.namespace, binding.spec.secret_ref.name)
        } else {
            return Ok(None);
        };
        let (namespace, name) = (
            secret_namespace.unwrap_or(namespace),
            secret_name.unwrap_or_default(),
        );
        self.garden_secret(&namespace, &name).await.map(Some)
    }

    /// A Secret of the garden that the Shoot or the Seed names.
    pub(crate) async fn garden_secret(&self, namespace: &str, name: &str) -> Result<Secret> {
        let api: Api<Secret> = self.garden.namespaced(namespace);
        let found = match api.get_opt(name).await {
            Err(kube::Error::Api(status)) if status.is_forbidden() => {
                return Err(no_right_yet(namespace, name));
            }
            other => other.context(format_args!("could not read Secret {namespace}/{name}"))?,
        };
        found.ok_or_else(|| {
            configuration_problem(format!(
                "there is no Secret {namespace}/{name} in the garden: create it"
            ))
        })
    }

    async fn binding<K>(&self, namespace: &str, name: &str) -> Result<K>
    where
        K: runtime::client::apply::Object + kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
    {
        let kind = K::kind(&());
        let found = self
            .garden
            .namespaced::<K>(namespace)
            .get_opt(name)
            .await
            .context(format_args!("could not read {kind} {namespace}/{name}"))?;
        usable_binding(found, namespace, name)
    }
}

/// A binding in deletion counts as missing, as in garden-controller-manager: a finalizer must not keep the
/// credentials in use after an operator has deleted the binding.
fn usable_binding<K>(found: Option<K>, namespace: &str, name: &str) -> Result<K>
where
    K: kube::Resource<DynamicType = ()>,
{
    let kind = K::kind(&());
    let Some(binding) = found else {
        return Err(configuration_problem(format!(
            "there is no {kind} {namespace}/{name}, which the Shoot names: create it"
        )));
    };
    if binding.meta().deletion_timestamp.is_some() {
        return Err(configuration_problem(format!(
            "{kind} {namespace}/{name}, which the Shoot names, is being deleted and counts as missing: remove the \
             finalizers of the binding, and create the binding again"
        )));
    }
    Ok(binding)
}

/// The wait for the right to a Secret. Rights name the Secret, so the answer for a missing Secret without a
/// right is the same.
pub(crate) fn no_right_yet(namespace: &str, name: &str) -> Error {
    Error::not_ready(
        WAIT_FOR_RIGHT,
        format!(
            "garden-controller-manager has not given this seed the right to Secret {namespace}/{name} of the garden yet. If it stays \
             so: the seed reads the Secrets of its own shoots in namespaces of projects, and its own credentials in namespace \
             seed-<name>. A binding that is older than the namespace of the Secret gives no right: create the binding again"
        ),
    )
}

/// The tenant of the Shoot's namespace in a seed.
#[must_use]
pub fn tenant(shoot: &Shoot) -> Tenant {
    Tenant {
        uid: names::uid(shoot),
        namespace: shoot.namespace().unwrap_or_default(),
        name: shoot.name_any(),
    }
}

pub(crate) async fn project_of(garden: &Garden, shoot: &Shoot) -> Result<Project> {
    let namespace = shoot.namespace().unwrap_or_default();
    let all = garden
        .cluster_wide::<Project>()
        .list(&ListParams::default().fields(&format!("spec.namespace={namespace}")))
        .await
        .context("could not list Projects")?;
    all.items.into_iter().next().ok_or_else(|| {
        configuration_problem(format!(
            "namespace {namespace} belongs to no Project: create one with this spec.namespace"
        ))
    })
}

async fn cloud_profile_of(garden: &Garden, shoot: &Shoot) -> Result<CloudProfile> {
    let kind = shoot
        .spec
        .cloud_profile
        .as_ref()
        .map(|profile| profile.kind)
        .unwrap_or_default();
    if kind != CloudProfileKind::CloudProfile {
        return Err(configuration_problem(
            "spec.cloudProfile.kind must be CloudProfile: no other kind is served",
        ));
    }
    let name = shoot.spec.cloud_profile_name().unwrap_or_default();
    garden
        .cluster_wide::<CloudProfile>()
        .get_opt(name)
        .await
        .context(format_args!("could not read CloudProfile {name}"))?
        .ok_or_else(|| {
            configuration_problem(format!(
                "there is no CloudProfile {name:?}, which the Shoot names: create it"
            ))
        })
}

async fn registrations(garden: &Garden) -> Result<Vec<ControllerRegistration>> {
    let registrations = garden
        .cluster_wide::<ControllerRegistration>()
        .list(&ListParams::default())
        .await
        .context("could not list ControllerRegistrations")?;
    Ok(registrations.items)
}

/// The full version from the Shoot. garden-controller-manager completes a partial version once. A version
/// that is no longer offered is valid for an existing shoot, and invalid for a new shoot.
fn kubernetes_version(shoot: &Shoot, profile: &CloudProfile) -> Result<String> {
    let wanted = shoot.spec.kubernetes.version.as_deref().unwrap_or_default();
    let wanted = wanted.trim_start_matches('v');
    let versions = profile.spec.kubernetes.versions.iter();
    let offered: Vec<&str> = versions.map(|v| v.version.trim_start_matches('v')).collect();
    let last = shoot
        .status
        .as_ref()
        .and_then(|status| status.last_operation.as_ref());
    let is_new = last.is_none_or(|last| last.type_ == LastOperationType::Create);
    let in_full = shoot.spec.kubernetes.version_in_full();
    if let Some(version) = in_full
        && (offered.contains(&version) || !is_new)
    {
        return Ok(version.to_owned());
    }
    let begins = |version: &&str| wanted.is_empty() || version.starts_with(&format!("{wanted}."));
    if in_full.is_none() && offered.iter().any(begins) {
        return Err(Error::not_ready(
            WAIT_FOR_VERSION,
            format!(
                "garden-controller-manager has not completed spec.kubernetes.version {wanted:?} yet. If it stays so, name one \
                 of those that CloudProfile {} offers: {}",
                profile.name_any(),
                offered.join(", ")
            ),
        ));
    }
    Err(configuration_problem(format!(
        "CloudProfile {} does not offer Kubernetes {wanted:?}: it offers {}",
        profile.name_any(),
        offered.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use api::gardencore::CloudProfileSpec;
    use serde_json::json;

    use super::*;

    fn profile(versions: &[&str]) -> CloudProfile {
        let versions: Vec<_> = versions
            .iter()
            .map(|version| json!({"version": version}))
            .collect();
        let spec: CloudProfileSpec = serde_json::from_value(
            json!({"type": "local", "regions": [], "kubernetes": {"versions": versions}}),
        )
        .unwrap();
        CloudProfile::new("local", spec)
    }

    fn shoot(version: &str, last: Option<&str>) -> Shoot {
        let status = last.map(|type_| {
            json!({"lastOperation": {"type": type_, "state": "Succeeded", "progress": 100, "description": "",
                "lastUpdateTime": "2026-01-01T00:00:00Z"}})
        });
        serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"kubernetes": {"version": version}, "provider": {"type": "local"}, "region": "local"},
            "status": status.unwrap_or(json!({})),
        }))
        .unwrap()
    }

    /// The right comes a moment after the hand-over.
    #[test]
    fn a_secret_without_the_right_is_waited_for() {
        let waits = no_right_yet("garden-dev", "cloud");
        assert!(matches!(waits, Error::NotReady { .. }), "{waits}");
        assert!(
            waits.to_string().contains("the right to Secret garden-dev/cloud"),
            "{waits}"
        );
    }

    /// Else a finalizer keeps the credentials of a binding that an operator has deleted.
    #[test]
    fn a_binding_in_deletion_counts_as_missing() {
        let binding = |deleted: Option<&str>| -> SecretBinding {
            let metadata = json!({"name": "cloud", "namespace": "garden-dev", "deletionTimestamp": deleted});
            serde_json::from_value(json!({"metadata": metadata, "secretRef": {"name": "cloud"}})).unwrap()
        };
        let judge = |found| usable_binding::<SecretBinding>(found, "garden-dev", "cloud");
        assert!(judge(Some(binding(None))).is_ok());
        for (found, words) in [
            (None, "there is no SecretBinding garden-dev/cloud"),
            (
                Some(binding(Some("2026-01-01T00:00:00Z"))),
                "SecretBinding garden-dev/cloud, which the Shoot names, is being deleted",
            ),
        ] {
            let refusal = judge(found).unwrap_err().to_string();
            assert!(refusal.contains(words), "{refusal}");
        }
    }

    #[test]
    fn a_version_is_offered_or_refused() {
        let profile = profile(&["1.34.4", "1.34.10", "1.33.1"]);
        assert_eq!(
            kubernetes_version(&shoot("1.34.4", None), &profile).unwrap(),
            "1.34.4"
        );
        let refused = |version| kubernetes_version(&shoot(version, None), &profile).unwrap_err();
        assert_eq!(
            refused("1.30.0").to_string(),
            "CloudProfile local does not offer Kubernetes \"1.30.0\": it offers 1.34.4, 1.34.10, 1.33.1"
        );
        assert!(refused("1.30").to_string().contains("does not offer"));
    }

    /// Otherwise a new version in the profile would be an upgrade that the user did not request.
    #[test]
    fn no_version_is_chosen_here() {
        let profile = profile(&["1.34.4", "1.34.10"]);
        for version in ["", "1.34"] {
            for last in [None, Some("Reconcile")] {
                let mut open = shoot(version, last);
                open.spec.kubernetes.version = Some(version.to_owned()).filter(|version| !version.is_empty());
                let waits = kubernetes_version(&open, &profile);
                assert!(matches!(waits, Err(Error::NotReady { .. })), "{version} {last:?}");
            }
        }
    }

    #[test]
    fn a_shoot_that_exists_keeps_its_version() {
        let profile = profile(&["1.34.4"]);
        assert_eq!(
            kubernetes_version(&shoot("1.30.0", Some("Reconcile")), &profile).unwrap(),
            "1.30.0"
        );
        assert!(kubernetes_version(&shoot("1.30.0", Some("Create")), &profile).is_err());
    }
}
