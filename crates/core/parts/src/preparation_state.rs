//! The keys for the destination of a preparation, in an InternalSecret of their own beside the Shoot.
//!
//! The source issues the keys while the grant is valid. The destination reads this object alone:
//! garden-controller-manager grants `get` of the object by name, and deletes the object after the end of the
//! grant. The object is immutable, and the name has epoch and expiry of the grant. So no seed reads keys
//! under a different grant.

use std::{sync::Arc, time::Duration};

use api::gardencore::{InternalSecret, InternalSecretFields, Shoot, shoot::MigrationPreparation};
use kube::{Api, Resource, ResourceExt, api::PostParams};
use placement::{Names, grant_id, names::recorded_technical_id, preparation_state_name};
use runtime::{
    Error, Result,
    client::{Cluster, Garden, Seed},
    error::Explain,
};

use crate::{
    FIELD_MANAGER, Settings, configuration_problem,
    etcd::prepared_clients,
    facts::tenant,
    preparation::PreparationFacts,
    residency::{Residency, prepared_in},
    secrets::prepared::{ShareData, deploy_share, issue_for_destination, share_keys},
    task::{NONE, PartTask},
};

/// Type of the InternalSecret.
const TYPE: &str = "gardener.cloud/shoot-preparation";
/// Requeue interval while a right or the object is missing. Both follow the grant within seconds.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// The keys for the destination of a preparation.
#[derive(Debug)]
pub struct PreparationState;

impl PreparationState {
    /// [`Self::deploy`], as a task.
    pub const DEPLOY: PartTask<PreparationFacts> =
        PartTask::new("Deploying Secrets of the preparation", NONE, |input| {
            Box::pin(Self::deploy(input))
        });

    /// Validity of a list of serial numbers at the gate. After the end of a grant the gate refuses the
    /// destination within this time, also without a gardenlet in the source.
    pub const LISTED_FOR: Duration = prepared_clients::LISTED_FOR;

    /// Data keys of the object.
    pub fn data_keys() -> impl Iterator<Item = String> {
        share_keys()
    }

    /// Issues the keys for the destination of this grant, in the seed of the source. An existing object
    /// stays: each grant has an object of its own. The gate in front of etcd confirms the serial number
    /// before the keys leave the seed, so no keys leave for a gate that does not know the rule. The caller
    /// repeats this within [`Self::LISTED_FOR`].
    pub async fn publish(p: &PreparationFacts) -> Result<()> {
        let names = Names::for_shoot(&p.shoot, &p.project.name_any(), &p.seed_object)
            .map_err(|error| configuration_problem(error.to_string()))?;
        let (residency, granted) = (&p.residency, &p.granted);
        let namespace = residency.read_namespace().await?;
        if namespace.is_none_or(|namespace| prepared_in(&namespace).is_some()) {
            return Err(Error::transient(format!(
                "namespace {} has no control plane of the shoot yet",
                residency.namespace
            )));
        }
        let share = issue_for_destination(residency, &names, granted).await?;
        prepared_clients::list(residency, granted.epoch, Some(granted)).await?;
        create(&p.garden, &p.shoot, granted, share).await
    }

    /// Lets the gate in front of etcd refuse all destinations, in the seed of the source. `epoch`: the
    /// ownership epoch of the grant that has ended.
    pub async fn withdraw(seed: Seed, settings: Arc<Settings>, shoot: &Shoot, epoch: i64) -> Result<()> {
        let namespace = recorded_technical_id(shoot)
            .map(str::to_owned)
            .ok_or_else(|| Error::transient("status.technicalID of the shoot is not recorded"))?;
        let residency = Residency {
            seed,
            settings,
            namespace,
            tenant: tenant(shoot),
        };
        prepared_clients::list(&residency, epoch, None).await
    }

    /// Whether the destination can read the keys.
    ///
    /// # Errors
    /// [`Error::NotReady`]: the source has made no keys, or the seed has no right to read the keys yet.
    pub async fn check(p: &PreparationFacts) -> Result<()> {
        Self::read(p).await.map(drop)
    }

    /// "Deploying Secrets of the preparation", in the destination.
    pub async fn deploy(p: &PreparationFacts) -> Result<()> {
        let share = Self::read(p).await?;
        deploy_share(&p.residency, &share, &grant_id(&p.granted)).await
    }

    async fn read(p: &PreparationFacts) -> Result<ShareData> {
        let name = preparation_state_name(&p.shoot.name_any(), &p.granted);
        let objects: Api<InternalSecret> = p.garden.namespaced(&p.shoot.namespace().unwrap_or_default());
        let found = match objects.get_opt(&name).await {
            Err(kube::Error::Api(status)) if status.is_forbidden() => {
                return Err(Error::not_ready(
                    TRY_AGAIN,
                    format!(
                        "garden-controller-manager has not given this seed the right to InternalSecret {name} yet"
                    ),
                ));
            }
            found => found.context(format_args!("could not read InternalSecret {name}"))?,
        };
        let object = found.ok_or_else(|| {
            Error::not_ready(
                TRY_AGAIN,
                format!(
                    "the gardenlet of seed {} has not made InternalSecret {name} yet: the source makes the keys for a preparation \
                     only with --enable-preparation, and while etcd serves behind a gate for HTTP/2 (backupRestore.gateProtocol of \
                     etcd-druid)",
                    p.granted.source
                ),
            )
        })?;
        if !is_of_shoot(&object, &p.granted.uid) {
            return Err(configuration_problem(format!(
                "InternalSecret {name} has no keys for a preparation of the shoot with the uid {}: delete the object, and the \
                 gardenlet of seed {} makes the object again",
                p.granted.uid, p.granted.source
            )));
        }
        Ok(object.spec.data)
    }
}

/// Whether the object has keys for a preparation of the Shoot with this uid.
fn is_of_shoot(object: &InternalSecret, uid: &str) -> bool {
    let is_typed = object.spec.type_.as_deref() == Some(TYPE) && object.spec.immutable == Some(true);
    let mut owners = object.owner_references().iter();
    is_typed && owners.any(|owner| owner.kind == "Shoot" && owner.uid == uid)
}

/// The object of a grant. The Shoot owns the object.
fn object_of(shoot: &Shoot, granted: &MigrationPreparation, share: ShareData) -> InternalSecret {
    let fields = InternalSecretFields {
        immutable: Some(true),
        data: share,
        type_: Some(TYPE.to_owned()),
        ..InternalSecretFields::default()
    };
    let mut object = InternalSecret::new(&preparation_state_name(&shoot.name_any(), granted), fields);
    object.metadata.owner_references = shoot.owner_ref(&()).map(|owner| vec![owner]);
    object
}

async fn create(
    garden: &Garden,
    shoot: &Shoot,
    granted: &MigrationPreparation,
    share: ShareData,
) -> Result<()> {
    let object = object_of(shoot, granted, share);
    let name = object.name_any();
    let objects: Api<InternalSecret> = garden.namespaced(&shoot.namespace().unwrap_or_default());
    let params = PostParams {
        field_manager: Some(FIELD_MANAGER.0.to_owned()),
        ..PostParams::default()
    };
    match objects.create(&params, &object).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        other => other
            .map(drop)
            .context(format_args!("could not make InternalSecret {name}")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use k8s_openapi::ByteString;
    use serde_json::json;

    use super::*;

    /// The destination takes no object of an earlier Shoot of the same name, and no chunk of a ShootState.
    #[test]
    fn an_object_with_keys_is_of_one_shoot() {
        let shoot: Shoot = crate::from_json(json!({
            "metadata": {"name": "web", "namespace": "garden-dev", "uid": "u"},
            "spec": {"region": "r", "provider": {"type": "t"}, "kubernetes": {}},
        }))
        .unwrap();
        let granted: MigrationPreparation = crate::from_json(json!({
            "uid": "u", "source": "a", "destination": "b", "epoch": 3, "expiry": "2026-01-01T00:00:00Z",
        }))
        .unwrap();
        let share: ShareData = [("static-token_static_tokens.csv".to_owned(), ByteString(vec![1]))].into();
        let object = object_of(&shoot, &granted, share.clone());
        assert_eq!(object.name_any(), "web.preparation-3-1767225600");
        assert_eq!(object.spec.data, share);
        assert!(is_of_shoot(&object, "u"));
        assert!(!is_of_shoot(&object, "v"));
        for change in [
            |object: &mut InternalSecret| object.spec.type_ = Some("gardener.cloud/shoot-state".to_owned()),
            |object: &mut InternalSecret| object.spec.immutable = None,
            |object: &mut InternalSecret| object.metadata.owner_references = None,
        ] {
            let mut planted = object.clone();
            change(&mut planted);
            assert!(!is_of_shoot(&planted, "u"), "{:?}", planted.metadata);
        }
    }
}
