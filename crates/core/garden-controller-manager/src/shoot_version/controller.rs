//! Watches Shoots with an incomplete version, and the CloudProfiles that they name.

use std::sync::Arc;

use api::gardencore::{CloudProfile, Shoot};
use kube::{
    Api, ResourceExt,
    runtime::{reflector::ObjectRef, watcher},
};
use runtime::{
    Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler},
    error::Explain as _,
};
use serde_json::json;

use super::choice::newest;
use crate::{Context, MANAGER};

struct ShootVersion {
    context: Context,
}

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    let profiles: Api<CloudProfile> = context.garden.cluster_wide();
    let controller = context.shoots.controller(|_| None);
    let store = controller.store();
    let controller = controller.watches(profiles, watcher::Config::default(), move |profile| {
        let name = profile.name_any();
        let waits =
            |shoot: &Arc<Shoot>| is_open(shoot) && shoot.spec.cloud_profile_name() == Some(name.as_str());
        let shoots = store.state();
        let waiting = shoots.iter().filter(|shoot| waits(shoot));
        waiting
            .map(|shoot| ObjectRef::from_obj(shoot.as_ref()))
            .collect::<Vec<_>>()
    });
    context.run(controller, |context| ShootVersion { context }).await;
}

/// Whether there is a version to choose.
fn is_open(shoot: &Shoot) -> bool {
    shoot.metadata.deletion_timestamp.is_none() && shoot.spec.kubernetes.version_in_full().is_none()
}

fn wanted(shoot: &Shoot) -> &str {
    shoot.spec.kubernetes.version.as_deref().unwrap_or_default()
}

impl Reconciler<Shoot> for ShootVersion {
    const NAME: &'static str = "shoot-version";

    fn is_responsible(&self, shoot: &Shoot) -> bool {
        is_open(shoot)
    }

    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        let garden = &self.context.garden;
        let name = shoot.spec.cloud_profile_name().unwrap_or_default();
        let profiles: Api<CloudProfile> = garden.cluster_wide();
        let profile = profiles
            .get_opt(name)
            .await
            .context(format_args!("could not read CloudProfile {name}"))?;
        // Without a profile the gardenlet reports the error; a new or changed profile triggers this
        // controller.
        let chosen = profile
            .as_ref()
            .and_then(|profile| newest(profile, wanted(&shoot), clock::now()));
        let Some(version) = chosen else {
            return Ok(Next::Change);
        };
        // Conditional on the read version of the Shoot: a user's concurrent edit has precedence, and triggers
        // this controller again.
        let body = json!({"spec": {"kubernetes": {"version": version}}});
        let shoots: Api<Shoot> = garden.namespaced(&shoot.namespace().unwrap_or_default());
        let written = MANAGER.try_merge_of(&shoots, shoot.as_ref(), &body).await?;
        if written.is_none() {
            return Ok(Next::Change);
        }
        let note =
            format!("spec.kubernetes.version is {version} now: the newest that CloudProfile {name} offers");
        self.context
            .events
            .normal(shoot.as_ref(), "VersionChosen", &note)
            .await;
        Ok(Next::Change)
    }

    async fn cleanup(&self, _: Arc<Shoot>) -> Result<Next> {
        Ok(Next::Change)
    }
}
