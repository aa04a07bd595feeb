//! Watches Shoots with schedules, and requeues each Shoot at its next time.

use std::{sync::Arc, time::Duration};

use api::gardencore::{Shoot, shoot::HibernationSchedule};
use jiff::Timestamp;
use kube::{Api, ResourceExt};
use runtime::{
    Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler, runner},
};
use serde_json::json;

use super::{decision::decide, schedule::Schedule};
use crate::{Context, MANAGER};

/// Pause before the next check after a write conflict; the concurrent change usually triggers an earlier
/// check.
const CONFLICT_REQUEUE: Duration = Duration::from_secs(1);

struct ShootHibernation {
    context: Context,
}

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    let controller = context.shoots.controller(|shoot| {
        let status = shoot.status.as_ref();
        let last = status.and_then(|status| status.last_hibernation_trigger_time.as_ref());
        runner::fingerprint((shoot.uid(), shoot.metadata.generation, last.map(|time| time.0)))
    });
    context
        .run(controller, |context| ShootHibernation { context })
        .await;
}

fn schedules(shoot: &Shoot) -> &[HibernationSchedule] {
    let hibernation = shoot.spec.hibernation.as_ref();
    hibernation.map_or(&[], |hibernation| &hibernation.schedules)
}

/// The last time that took effect, or the creation of the Shoot.
fn last(shoot: &Shoot) -> Timestamp {
    let status = shoot.status.as_ref();
    let triggered = status.and_then(|status| status.last_hibernation_trigger_time.as_ref());
    let made = shoot.metadata.creation_timestamp.as_ref();
    triggered.or(made).map_or(Timestamp::MIN, |time| time.0)
}

impl Reconciler<Shoot> for ShootHibernation {
    const NAME: &'static str = "shoot-hibernation";

    fn is_responsible(&self, shoot: &Shoot) -> bool {
        !schedules(shoot).is_empty() && shoot.metadata.deletion_timestamp.is_none()
    }

    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        let (now, read) = (clock::now(), self.read(&shoot).await);
        let decision = decide(&read, last(&shoot), now);
        if let Some(sleep) = decision.sleep
            && !self.act(&shoot, sleep).await?
        {
            return Ok(Next::After(CONFLICT_REQUEUE));
        }
        // No watch event arrives when a time comes.
        let rest = decision
            .next
            .and_then(|next| Duration::try_from(next.duration_since(now)).ok());
        Ok(rest.map_or(Next::Change, Next::After))
    }

    async fn cleanup(&self, _: Arc<Shoot>) -> Result<Next> {
        Ok(Next::Change)
    }
}

impl ShootHibernation {
    async fn read(&self, shoot: &Shoot) -> Vec<Schedule> {
        let mut read = Vec::new();
        for schedule in schedules(shoot) {
            match Schedule::read(schedule) {
                Ok(schedule) => read.push(schedule),
                Err(why) => {
                    let note = format!("A schedule of spec.hibernation is not kept: {why}.");
                    self.context
                        .events
                        .warning(shoot, "HibernationScheduleInvalid", &note)
                        .await;
                }
            }
        }
        read
    }

    /// Conditional on the read version of the Shoot: a concurrent edit of a user has precedence, and triggers
    /// this controller again. The spec is written first: after a crash between the two writes the time is not
    /// recorded yet, and takes effect again.
    async fn act(&self, shoot: &Shoot, sleep: bool) -> Result<bool> {
        let shoots: Api<Shoot> = self
            .context
            .garden
            .namespaced(&shoot.namespace().unwrap_or_default());
        let enabled = shoot
            .spec
            .hibernation
            .as_ref()
            .and_then(|hibernation| hibernation.enabled);
        if enabled.unwrap_or_default() != sleep {
            let body = json!({"spec": {"hibernation": {"enabled": sleep}}});
            if MANAGER.try_merge_of(&shoots, shoot, &body).await?.is_none() {
                return Ok(false);
            }
            let note = if sleep {
                "spec.hibernation.enabled is true now: the time of a schedule has come"
            } else {
                "spec.hibernation.enabled is false now: the time of a schedule has come"
            };
            self.context
                .events
                .normal(shoot, "HibernationTriggered", note)
                .await;
        }
        let status = json!({"lastHibernationTriggerTime": clock::now_k8s()});
        MANAGER
            .merge_status(&shoots, &shoot.name_any(), &status)
            .await
            .map(|_| true)
    }
}
