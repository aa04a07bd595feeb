//! Watches Shoots that have a time for a zone, and wakes for each when that comes.

use std::{sync::Arc, time::Duration};

use api::{
    constants::{SHOOT_ISOLATED_ZONE, SHOOT_ISOLATED_ZONE_EXPIRES},
    gardencore::Shoot,
};
use kube::{Api, ResourceExt};
use runtime::{
    Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler, runner},
};
use serde_json::{Value, json};

use super::decision::{Decision, decide};
use crate::{Context, MANAGER};

/// Pause before the next check after a write conflict; the concurrent change usually triggers an earlier
/// check.
const CONFLICT_REQUEUE: Duration = Duration::from_secs(1);
/// Longest requeue interval. Shorter than the maximum of a timer, and short enough to follow a correction of
/// the clock.
const LONGEST: Duration = Duration::from_secs(60 * 60);

struct ShootZoneExpiry {
    context: Context,
}

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    let controller = context.shoots.controller(|shoot| {
        let said = [SHOOT_ISOLATED_ZONE, SHOOT_ISOLATED_ZONE_EXPIRES].map(|key| shoot.annotations().get(key));
        runner::fingerprint((shoot.uid(), said))
    });
    context
        .run(controller, |context| ShootZoneExpiry { context })
        .await;
}

impl Reconciler<Shoot> for ShootZoneExpiry {
    const NAME: &'static str = "shoot-zone-expiry";

    fn is_responsible(&self, shoot: &Shoot) -> bool {
        shoot.annotations().contains_key(SHOOT_ISOLATED_ZONE_EXPIRES)
            && shoot.metadata.deletion_timestamp.is_none()
    }

    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        match decide(&shoot, clock::now()) {
            Decision::Nothing => Ok(Next::Change),
            // No watch event arrives when the time comes.
            Decision::Wait(rest) => Ok(Next::After(rest.min(LONGEST))),
            Decision::Unreadable { text } => {
                let note = format!(
                    "Annotation {SHOOT_ISOLATED_ZONE_EXPIRES} has {text:?}, which is no time: write one like 2026-01-31T18:00:00Z. The zone \
                     stays cut off."
                );
                self.context
                    .events
                    .warning(shoot.as_ref(), "ZoneIsolationExpiryInvalid", &note)
                    .await;
                Ok(Next::Change)
            }
            Decision::TakeBack { zone, expired } => {
                let note = format!(
                    "Zone {zone} is taken back: its time ({SHOOT_ISOLATED_ZONE_EXPIRES}) came at {expired}. Set both annotations again to cut \
                     it off for longer."
                );
                let both = [SHOOT_ISOLATED_ZONE, SHOOT_ISOLATED_ZONE_EXPIRES];
                self.take_away(&shoot, &both, "ZoneIsolationExpired", &note).await
            }
            Decision::Forget => {
                let note = format!(
                    "{SHOOT_ISOLATED_ZONE_EXPIRES} is taken away: no zone is cut off that could have it."
                );
                let one = [SHOOT_ISOLATED_ZONE_EXPIRES];
                self.take_away(&shoot, &one, "ZoneIsolationExpiryForgotten", &note)
                    .await
            }
        }
    }

    async fn cleanup(&self, _: Arc<Shoot>) -> Result<Next> {
        Ok(Next::Change)
    }
}

impl ShootZoneExpiry {
    /// Conditional on the read version of the Shoot: a user's concurrent extension of the time has
    /// precedence, and triggers this controller again.
    async fn take_away(&self, shoot: &Shoot, keys: &[&str], reason: &str, note: &str) -> Result<Next> {
        let shoots: Api<Shoot> = self
            .context
            .garden
            .namespaced(&shoot.namespace().unwrap_or_default());
        let gone: Value = keys.iter().map(|key| ((*key).to_owned(), Value::Null)).collect();
        let body = json!({"metadata": {"annotations": gone}});
        if MANAGER.try_merge_of(&shoots, shoot, &body).await?.is_none() {
            return Ok(Next::After(CONFLICT_REQUEUE));
        }
        self.context.events.normal(shoot, reason, note).await;
        Ok(Next::Change)
    }
}
