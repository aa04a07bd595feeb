//! Creates missing Secrets. Existing Secrets cannot be read, and stay unchanged.

use std::{sync::Arc, time::Duration};

use api::{
    constants::{PROJECT_NAME, ROLE, SHOOT_NAME},
    gardencore::Shoot,
    meta::LastOperationType,
};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::{Api, Resource, ResourceExt, api::PostParams};
use placement::{Journey, journey};
use runtime::{
    Error, Result,
    client::Cluster,
    controller::{Next, Reconciler, runner},
    error::Explain as _,
};
use serde_json::json;

use crate::{Context, MANAGER};

/// Requeue interval that detects a deleted Secret. Secrets are not watched, because a watch would read all
/// Secrets.
const RESYNC_PERIOD: Duration = Duration::from_secs(300);
/// Requeue interval of a new Shoot, whose gardenlet waits for the Secret: the Secret of an earlier Shoot of
/// the same name may be about to be deleted.
const AWAITED_SECRET_REQUEUE: Duration = Duration::from_secs(5);
/// Requeue interval of a Shoot whose gardenlet restores the shoot. The gardenlet deletes a Secret that an
/// earlier host made immutable, and waits for the next Secret. Shorter than [`RESYNC_PERIOD`]; long enough
/// for a takeover of all shoots of a seed.
const RESTORED_SHOOT_REQUEUE: Duration = Duration::from_secs(30);

struct ShootKubeconfig {
    context: Context,
}

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    let controller = context.shoots.controller(wakes);
    context
        .run(controller, |context| ShootKubeconfig { context })
        .await;
}

/// Triggers for a new Shoot, at the begin and end of a restore, and for a Shoot with an operation annotation.
fn wakes(shoot: &Shoot) -> Option<u64> {
    runner::fingerprint((
        shoot.uid(),
        shoot.metadata.deletion_timestamp.is_some(),
        is_restored(shoot),
        shoot.annotations().get(api::constants::OPERATION),
    ))
}

impl Reconciler<Shoot> for ShootKubeconfig {
    const NAME: &'static str = "shoot-kubeconfig";

    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        let namespace = shoot.namespace().unwrap_or_default();
        let namespaces: Api<Namespace> = self.context.garden.cluster_wide();
        let project = namespaces
            .get_opt(&namespace)
            .await
            .context(format_args!("could not read namespace {namespace}"))?
            .and_then(|found| found.labels().get(PROJECT_NAME).cloned());
        let Some(project) = project else {
            return Ok(Next::After(RESYNC_PERIOD));
        };
        let secrets: Api<Secret> = self.context.garden.namespaced(&namespace);
        let params = PostParams {
            field_manager: Some(MANAGER.0.to_owned()),
            ..PostParams::default()
        };
        match secrets.create(&params, &secret(&shoot, &project)?).await {
            Ok(_) => Ok(Next::After(RESYNC_PERIOD)),
            // The Secret exists: no conflict that a retry could fix.
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(Next::After(pause(&shoot))),
            Err(error) => Err(error).context("could not make the Secret for the Shoot's kubeconfig"),
        }
    }

    /// The owner reference deletes the Secret with the Shoot.
    async fn cleanup(&self, _: Arc<Shoot>) -> Result<Next> {
        Ok(Next::Change)
    }
}

fn pause(shoot: &Shoot) -> Duration {
    let last = shoot.status.as_ref().and_then(|s| s.last_operation.as_ref());
    if last.is_none_or(|last| last.type_ == LastOperationType::Create) {
        AWAITED_SECRET_REQUEUE
    } else if is_restored(shoot) {
        RESTORED_SHOOT_REQUEUE
    } else {
        RESYNC_PERIOD
    }
}

/// Whether the seed has to restore the shoot, and has not finished.
fn is_restored(shoot: &Shoot) -> bool {
    matches!(journey(shoot), Journey::Arriving | Journey::Restoring)
}

/// The Secret with the labels by which users find it. Gardenlets cannot change these labels.
fn secret(shoot: &Shoot, project: &str) -> Result<Secret> {
    let name = shoot.name_any();
    serde_json::from_value(json!({
        "metadata": {
            "name": format!("{name}.kubeconfig"),
            "labels": {(ROLE): "kubeconfig", (PROJECT_NAME): project, (SHOOT_NAME): name},
            "ownerReferences": [shoot.controller_owner_ref(&())],
        },
        "type": "Opaque",
    }))
    .map_err(|error| Error::bug("a Secret that was built here is none").caused_by(error))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// The gardenlet of the next host deletes an immutable Secret, and waits for the next Secret.
    #[test]
    fn the_secret_of_a_restored_shoot_is_made_anew_soon() {
        let shoot = |type_: &str, state: &str| -> Shoot {
            let last = json!({"type": type_, "state": state, "progress": 1, "description": "",
                "lastUpdateTime": "2026-01-01T00:00:00Z"});
            let spec = json!({"kubernetes": {}, "provider": {"type": "local"}, "region": "local"});
            let status = json!({"seedName": "a", "lastOperation": last});
            serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": spec, "status": status}))
                .unwrap()
        };
        let held = shoot("Reconcile", "Succeeded");
        assert_eq!(pause(&held), RESYNC_PERIOD);
        for (type_, state) in [
            ("Migrate", "Succeeded"),
            ("Migrate", "Aborted"),
            ("Restore", "Error"),
        ] {
            let restored = shoot(type_, state);
            assert_eq!(pause(&restored), RESTORED_SHOOT_REQUEUE, "{type_} {state}");
            assert_ne!(wakes(&restored), wakes(&held), "{type_} {state}");
        }
        assert_eq!(pause(&shoot("Restore", "Succeeded")), RESYNC_PERIOD);
        assert_eq!(pause(&shoot("Create", "Processing")), AWAITED_SECRET_REQUEUE);
    }
}
