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

use super::{
    decision::{Decision, decide},
    schedule::Schedule,
};
use crate::{Context, MANAGER};

/// Pause before the next check after a write conflict; the concurrent change usually triggers an earlier
/// check.
const CONFLICT_REQUEUE: Duration = Duration::from_secs(1);

/// The largest number of schedules of a Shoot, as in policy `shoot-hibernation`.
const SCHEDULES: usize = 16;

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

/// The schedules, and a sentence about those that have no effect. A Shoot from before the bound of policy
/// `shoot-hibernation` may have any number.
fn read(schedules: &[HibernationSchedule]) -> (Vec<Schedule>, Option<String>) {
    let (mut read, mut invalid) = (Vec::new(), Vec::new());
    for schedule in schedules.iter().take(SCHEDULES) {
        match Schedule::read(schedule) {
            Ok(schedule) => read.push(schedule),
            Err(reason) => invalid.push(reason),
        }
    }
    let mut notes = Vec::new();
    if let Some(first) = invalid.first() {
        let count = invalid.len();
        notes.push(format!(
            "{count} schedules of spec.hibernation have no effect: {first}."
        ));
    }
    if schedules.len() > SCHEDULES {
        notes.push(format!(
            "spec.hibernation has {} schedules, and the first {SCHEDULES} have an effect: remove others.",
            schedules.len()
        ));
    }
    (read, (!notes.is_empty()).then(|| notes.join(" ")))
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
        let now = clock::now();
        let decision = self.decide(&shoot, now).await?;
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
    /// Reports invalid schedules in one Event. The search for times can take long, for expressions that a
    /// user writes, so a thread for blocking work does the search.
    async fn decide(&self, shoot: &Shoot, now: Timestamp) -> Result<Decision> {
        let (schedules, last) = (schedules(shoot).to_vec(), last(shoot));
        let searched = tokio::task::spawn_blocking(move || {
            let (read, invalid) = read(&schedules);
            (decide(&read, last, now), invalid)
        });
        let (decision, invalid) = searched.await.map_err(|error| {
            runtime::Error::bug("the search for times of schedules ended").caused_by(error)
        })?;
        if let Some(note) = invalid {
            self.context
                .events
                .warning(shoot, "HibernationScheduleInvalid", &note)
                .await;
        }
        Ok(decision)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn schedule(start: &str) -> HibernationSchedule {
        HibernationSchedule {
            start: Some(start.to_owned()),
            ..HibernationSchedule::default()
        }
    }

    #[test]
    fn schedules_above_the_bound_and_invalid_ones_are_told_in_one_sentence_each() {
        let (read_schedules, note) = read(&[
            schedule("0 20 * * *"),
            schedule("at night"),
            schedule("0 0 31 2 *"),
        ]);
        assert_eq!(read_schedules.len(), 1);
        let note = note.unwrap();
        assert!(
            note.contains("2 schedules") && note.contains("at night") && !note.contains("31 2"),
            "{note}"
        );
        let (read_schedules, note) = read(&vec![schedule("0 20 * * *"); SCHEDULES + 1]);
        assert_eq!(read_schedules.len(), SCHEDULES);
        assert!(note.unwrap().contains("17 schedules"));
        assert_eq!(read(&[schedule("0 20 * * *")]).1, None);
    }
}
