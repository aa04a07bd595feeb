//! Moves node IPAM between managers step by step. Each step starts only after the managers have carried out
//! the previous step.

use std::{future::pending, time::Duration};

use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Pod},
};
use kube::{Api, ResourceExt, api::DynamicObject, core::ApiResource};
use runtime::{
    Result,
    client::{
        Cluster, Shoot, apply,
        wait::{self, WaitState},
    },
};
use serde::Deserialize;

use super::{
    node_ipam::{CONFIG, LOCK, NAMESPACE, check, current_stage},
    rights,
    stage::{Holder, Stage},
};
use crate::{
    Facts, Residency,
    controllers::kube_controller_manager::KubeControllerManager,
    extensions::control_plane::ControlPlane,
    secrets::config::{CLOUD_CONTROLLER_MANAGER, KUBE_CONTROLLER_MANAGER},
    task::{CLOUD, NONE, PartTask},
    verbs::Deploy,
};

/// Upper bound of the watch on the Shoot: longer than every wait that runs beside the watch.
const WATCHED_FOR: Duration = Duration::from_secs(3600);

/// The controllers that move between managers.
#[derive(Debug)]
pub struct ControllerLeaders;

impl ControllerLeaders {
    /// [`Self::deploy_rights`], as a task.
    pub const DEPLOY_RIGHTS: PartTask<Residency> = PartTask::new(
        "Deploying rights of the cloud controller manager in Shoot",
        NONE,
        |input| Box::pin(Self::deploy_rights(input)),
    );
    /// [`Self::hand_over`], as a task.
    pub const HAND_OVER: PartTask<Facts> =
        PartTask::new("Handing over controllers between managers", CLOUD, |input| {
            Box::pin(Self::hand_over(input))
        });

    /// "Deploying rights of the cloud controller manager in the Shoot": before the cloud-controller-manager
    /// starts, because the shoot's API would refuse its first requests.
    pub async fn deploy_rights(residency: &Residency) -> Result<()> {
        rights::deploy_cloud_controller_manager_rights(&residency.shoot_client().await?).await
    }

    /// "Handing over controllers between managers": moves node IPAM step by step to the manager that the
    /// Shoot asks for. Each step starts only after the managers have carried out the previous step. At the
    /// end, this task deletes the objects that only the migration needed. An edit of the Shoot that reverses
    /// the direction takes effect at once.
    pub async fn hand_over(f: &Facts) -> Result<()> {
        let mut wanted = Stage::wanted(&f.shoot.spec.kubernetes.controller_leaders);
        // Read from the cluster, not from the start of the flow: an earlier attempt may have made some of the
        // steps.
        let mut stage = current_stage(
            &f.residency.seed,
            &f.residency.namespace,
            &f.shoot.name_any(),
            wanted,
        )
        .await?;
        let shoot = f.residency.shoot_client().await?;
        if stage != wanted {
            rights::share(&shoot).await?;
        } else if !rights::are_shared(&shoot).await? {
            return Ok(());
        }
        let mut edited = Box::pin(wanted_otherwise(f, wanted));
        loop {
            let next = stage.towards(wanted);
            tokio::select! {
                other = &mut edited => {
                    tracing::info!(at = ?stage, to = ?other, "node IPAM turns round");
                    wanted = other;
                    edited = Box::pin(wanted_otherwise(f, wanted));
                    continue;
                }
                done = Box::pin(settled(f, stage, next, &shoot)) => done?,
            }
            let Some(next) = next else {
                break;
            };
            tracing::info!(from = ?stage, to = ?next, "node IPAM goes one step");
            if next.home() == stage.home() {
                ControlPlane::deploy_at(f, next).await?;
            } else {
                KubeControllerManager::deploy_at(f, next).await?;
            }
            stage = next;
        }
        apply::delete(
            &f.residency.seed.namespaced::<ConfigMap>(&f.residency.namespace),
            CONFIG,
        )
        .await?;
        apply::delete(&shoot.namespaced::<Lease>(NAMESPACE), LOCK).await?;
        // The rights go last: `are_shared` takes the Role as the sign that the ConfigMap and the Lease may
        // still exist. The Role and RoleBinding live in the shoot, so they also move to a different seed.
        rights::unshare(&shoot).await
    }
}

/// Waits until the Shoot asks for node IPAM at the opposite end. This watch only saves time: when the garden
/// does not answer, or the edit cannot be carried out, the next flow handles the edit.
async fn wanted_otherwise(f: &Facts, wanted: Stage) -> Stage {
    // Untyped: the watch needs only a few lines of the Shoot, and holds the object for as long as the watch
    // lasts.
    let kind = ApiResource::erase::<api::gardencore::Shoot>(&());
    let shoots: Api<DynamicObject> =
        Api::namespaced_with(f.garden.client().clone(), &f.shoot_namespace(), &kind);
    let (name, mut edited) = (f.shoot.name_any(), wanted);
    let seen = wait::until(&shoots, &name, WATCHED_FOR, |shoot| {
        edited = shoot.map_or(wanted, |shoot| Stage::wanted(&leaders(shoot)));
        if edited != wanted && check(edited, &f.names).is_ok() {
            WaitState::Done
        } else {
            WaitState::Wait("the Shoot has not been edited".into())
        }
    });
    if seen.await.is_err() {
        return pending().await;
    }
    edited
}

/// Waits until the managers run with their present configuration and the right manager holds the migration
/// lock, as far as the next step needs this.
async fn settled(f: &Facts, stage: Stage, next: Option<Stage>, shoot: &Shoot) -> Result<()> {
    let awaits = stage.awaits(next);
    if awaits.home {
        KubeControllerManager::ready(f).await?;
        leads(&f.residency, KUBE_CONTROLLER_MANAGER, shoot).await?;
    }
    if awaits.guest {
        ControlPlane::ready(f).await?;
        leads(&f.residency, CLOUD_CONTROLLER_MANAGER, shoot).await?;
    }
    let Some(manager) = awaits.holder else {
        return Ok(());
    };
    let leases: Api<Lease> = shoot.namespaced(NAMESPACE);
    wait::until(
        &leases,
        LOCK,
        f.residency.settings.timeouts.controllers,
        |lease| look_held(lease, manager),
    )
    .await
    .map(|_| ())
}

/// Waits until a living pod of this manager holds the manager's main lock. The lock has the name of the
/// manager.
///
/// A manager is ready before the manager leads. A predecessor that did not release the lock, or sits on a
/// node that does not answer, keeps the lock until the lease runs out. Until then the predecessor may act,
/// and the new manager does not ask for the migration lock.
async fn leads(residency: &Residency, manager: &str, shoot: &Shoot) -> Result<()> {
    let pods = residency.pods_of(manager).await?;
    let leases: Api<Lease> = shoot.namespaced(NAMESPACE);
    let timeout = residency.settings.timeouts.controllers;
    wait::until(&leases, manager, timeout, |lease| {
        let holder = holder(lease);
        let lives = |pod: &Pod| pod.metadata.deletion_timestamp.is_none();
        let is_led = |pod: &&Pod| holder.starts_with(&format!("{}_", pod.name_any()));
        match pods.iter().filter(|pod| lives(pod)).find(is_led) {
            Some(_) => WaitState::Done,
            None => waits_for(holder),
        }
    })
    .await
    .map(|_| ())
}

/// `spec.kubernetes.controllerLeaders` of a Shoot.
fn leaders(shoot: &DynamicObject) -> Vec<api::gardencore::shoot::ControllerLeader> {
    let found = shoot.data.pointer("/spec/kubernetes/controllerLeaders");
    found
        .and_then(|found| Vec::deserialize(found).ok())
        .unwrap_or_default()
}

/// Whether this manager holds the migration lock. The holder identity begins with the name of the holder's
/// pod.
fn look_held(lease: Option<&Lease>, manager: Holder) -> WaitState {
    let holder = holder(lease);
    let by_home = holder.starts_with(&format!("{KUBE_CONTROLLER_MANAGER}-"));
    if !holder.is_empty() && by_home == (manager == Holder::Home) {
        return WaitState::Done;
    }
    waits_for(holder)
}

fn holder(lease: Option<&Lease>) -> &str {
    lease
        .and_then(|lease| lease.spec.as_ref()?.holder_identity.as_deref())
        .unwrap_or_default()
}

fn waits_for(holder: &str) -> WaitState {
    WaitState::Wait(if holder.is_empty() {
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
        let done = |lease: Option<&Lease>, manager| matches!(look_held(lease, manager), WaitState::Done);
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
