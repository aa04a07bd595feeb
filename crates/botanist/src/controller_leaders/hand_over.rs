//! Node IPAM goes its way, one step after the other, each only when the last one is carried out.

use std::{future::pending, time::Duration};

use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Pod},
};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, ObjectMeta},
    core::ApiResource,
};
use runtime::{Cluster, Result, Shoot, apply, wait, wait::Look};
use serde::Deserialize;

use super::{
    node_ipam::{CONFIG, FILE, LOCK, NAMESPACE, check, current_stage, migration},
    rights,
    stage::{Holder, Stage},
};
use crate::{
    Botanist, FIELD_MANAGER,
    secrets::config::{CLOUD_CONTROLLER_MANAGER, KUBE_CONTROLLER_MANAGER},
};

/// Longer than all that is awaited beside it.
const WATCHED_FOR: Duration = Duration::from_secs(3600);

impl Botanist {
    /// "Deploying rights of the cloud controller manager in the Shoot": before it starts, or it would be refused.
    pub async fn deploy_cloud_controller_manager_rights(&self) -> Result<()> {
        rights::deploy(&self.shoot_client().await?).await
    }

    /// "Handing over controllers between managers": goes the way to where the Shoot wants them, one step after the other, each
    /// only when the last one is carried out. Then it takes away what only the way needed. An edit of the Shoot that turns it
    /// round is obeyed at once.
    pub async fn hand_over_controllers(&self) -> Result<()> {
        let mut wanted = Stage::wanted(&self.shoot.spec.kubernetes.controller_leaders);
        // Not as it was when the flow began: whoever tries this again has gone some of the way.
        let mut stage = current_stage(&self.seed, &self.namespace, &self.shoot.name_any(), wanted).await?;
        let shoot = self.shoot_client().await?;
        if stage != wanted {
            rights::share(&shoot).await?;
        } else if !rights::are_shared(&shoot).await? {
            return Ok(());
        }
        let mut edited = Box::pin(self.wanted_otherwise(wanted));
        loop {
            let next = stage.towards(wanted);
            tokio::select! {
                other = &mut edited => {
                    tracing::info!(at = ?stage, to = ?other, "node IPAM turns round");
                    wanted = other;
                    edited = Box::pin(self.wanted_otherwise(wanted));
                    continue;
                }
                settled = Box::pin(self.wait_until_settled(stage, next, &shoot)) => settled?,
            }
            let Some(next) = next else {
                break;
            };
            tracing::info!(from = ?stage, to = ?next, "node IPAM goes one step");
            if next.home() == stage.home() {
                self.control_plane_at(next).deploy().await?;
            } else {
                self.deploy_kube_controller_manager_at(next).await?;
            }
            stage = next;
        }
        apply::delete(&self.seed.namespaced::<ConfigMap>(&self.namespace), CONFIG).await?;
        apply::delete(&shoot.namespaced::<Lease>(NAMESPACE), LOCK).await?;
        // Last, as they tell that the others may be there; and they go with the shoot, also to another seed.
        rights::unshare(&shoot).await
    }

    /// Waits until the Shoot wants node IPAM at the other end of the way. Only a help: a garden that does not answer, and an edit
    /// that cannot be carried out, are the next flow's business.
    async fn wanted_otherwise(&self, wanted: Stage) -> Stage {
        // Not as a Shoot: of all that is in one a few lines are of interest, for as long as this is awaited.
        let kind = ApiResource::erase::<api::gardencore::Shoot>(&());
        let shoots: Api<DynamicObject> =
            Api::namespaced_with(self.garden.client().clone(), &self.shoot_namespace(), &kind);
        let (name, mut edited) = (self.shoot.name_any(), wanted);
        let seen = wait::until(&shoots, &name, WATCHED_FOR, |shoot| {
            edited = shoot.map_or(wanted, |shoot| Stage::wanted(&leaders(shoot)));
            if edited != wanted && check(edited, &self.names).is_ok() {
                Look::Done
            } else {
                Look::Wait("the Shoot has not been edited".into())
            }
        });
        if seen.await.is_err() {
            return pending().await;
        }
        edited
    }

    /// Waits until the managers do what they were told and the lock is where it should be, as far as the next step needs it.
    async fn wait_until_settled(&self, stage: Stage, next: Option<Stage>, shoot: &Shoot) -> Result<()> {
        let awaits = stage.awaits(next);
        if awaits.home {
            self.wait_until_kube_controller_manager_ready().await?;
            self.wait_until_leads(KUBE_CONTROLLER_MANAGER, shoot).await?;
        }
        if awaits.guest {
            self.control_plane_at(stage).wait_until_ready().await?;
            self.wait_until_leads(CLOUD_CONTROLLER_MANAGER, shoot).await?;
        }
        let Some(manager) = awaits.holder else {
            return Ok(());
        };
        let leases: Api<Lease> = shoot.namespaced(NAMESPACE);
        wait::until(&leases, LOCK, self.settings.timeouts.controllers, |lease| {
            look_held(lease, manager)
        })
        .await
        .map(|_| ())
    }

    /// Waits until a living pod of this manager has its main lock, which is called like the manager.
    ///
    /// A manager is ready before it leads: where its predecessor gives no lock back, or sits on a node that does not answer, it waits
    /// until that has run out. Until then the predecessor may act, and the new one does not ask for the migration lock.
    async fn wait_until_leads(&self, manager: &str, shoot: &Shoot) -> Result<()> {
        let pods = self.pods_of(manager).await?;
        let leases: Api<Lease> = shoot.namespaced(NAMESPACE);
        let timeout = self.settings.timeouts.controllers;
        wait::until(&leases, manager, timeout, |lease| {
            let holder = holder(lease);
            let lives = |pod: &Pod| pod.metadata.deletion_timestamp.is_none();
            let is_led = |pod: &&Pod| holder.starts_with(&format!("{}_", pod.name_any()));
            match pods.iter().filter(|pod| lives(pod)).find(is_led) {
                Some(_) => Look::Done,
                None => waits_for(holder),
            }
        })
        .await
        .map(|_| ())
    }

    /// Writes the kube-controller-manager's file.
    pub(crate) async fn deploy_migration_config(&self) -> Result<()> {
        let config = ConfigMap {
            metadata: ObjectMeta {
                name: Some(CONFIG.into()),
                namespace: Some(self.namespace.clone()),
                ..ObjectMeta::default()
            },
            data: Some([(FILE.to_owned(), migration().file())].into()),
            ..ConfigMap::default()
        };
        let api: Api<ConfigMap> = self.seed.namespaced(&self.namespace);
        FIELD_MANAGER.apply(&api, &config).await.map(|_| ())
    }
}

/// `spec.kubernetes.controllerLeaders` of a Shoot.
fn leaders(shoot: &DynamicObject) -> Vec<api::gardencore::shoot::ControllerLeader> {
    let found = shoot.data.pointer("/spec/kubernetes/controllerLeaders");
    found
        .and_then(|found| Vec::deserialize(found).ok())
        .unwrap_or_default()
}

/// Whether this manager holds the lock. A holder is called like its pod.
fn look_held(lease: Option<&Lease>, manager: Holder) -> Look {
    let holder = holder(lease);
    let by_home = holder.starts_with(&format!("{KUBE_CONTROLLER_MANAGER}-"));
    if !holder.is_empty() && by_home == (manager == Holder::Home) {
        return Look::Done;
    }
    waits_for(holder)
}

fn holder(lease: Option<&Lease>) -> &str {
    lease
        .and_then(|lease| lease.spec.as_ref()?.holder_identity.as_deref())
        .unwrap_or_default()
}

fn waits_for(holder: &str) -> Look {
    Look::Wait(if holder.is_empty() {
        "nobody holds it".into()
    } else {
        format!("it is held by {holder}")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;
    use crate::from_json;

    #[test]
    fn what_a_shoot_wants_is_read_from_it_without_the_rest() {
        let shoot = |kubernetes: Value| -> (api::gardencore::Shoot, DynamicObject) {
            let shoot = json!({
                "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
                "spec": {"kubernetes": kubernetes, "provider": {"type": "local"}, "region": "local"},
            });
            (from_json(shoot.clone()).unwrap(), from_json(shoot).unwrap())
        };
        let away = json!([{"name": "node-ipam-controller", "component": "cloud-controller-manager"}]);
        for kubernetes in [json!({}), json!({"controllerLeaders": away})] {
            let (typed, untyped) = shoot(kubernetes);
            assert_eq!(leaders(&untyped), typed.spec.kubernetes.controller_leaders);
        }
    }

    #[test]
    fn the_lock_is_where_it_should_be_only_with_the_right_manager() {
        let held = |holder: &str| -> Lease {
            from_json(json!({"metadata": {"name": LOCK}, "spec": {"holderIdentity": holder}})).unwrap()
        };
        let done = |lease: Option<&Lease>, manager| matches!(look_held(lease, manager), Look::Done);
        let (home, guest) = (
            held("kube-controller-manager-5d-x_1"),
            held("cloud-controller-manager-7c-y_2"),
        );
        assert!(done(Some(&home), Holder::Home) && !done(Some(&home), Holder::Guest));
        assert!(done(Some(&guest), Holder::Guest) && !done(Some(&guest), Holder::Home));
        for manager in [Holder::Home, Holder::Guest] {
            assert!(!done(Some(&held("")), manager) && !done(None, manager));
        }
    }
}
