//! Each change of the annotation ends what is under way, and a flow begins that undoes it (RZ-02). Who
//! changes it again and again would have one flow after the other, with the cloud calls of each. So a shoot
//! has a few such changes for free; then the next flow waits. The count is in memory: a gardenlet that is
//! started anew begins anew.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use api::gardencore::Shoot;
use jiff::SignedDuration;
use kube::{Api, ResourceExt};
use placement::Operation;
use runtime::{Cluster, Result, clock};
use tokio::time::Instant;

use super::zone_record;
use crate::context::{Context, MANAGER};

/// So many flows may be ended by a change within [`WITHIN`]. Enough for a mistake, its correction, and
/// another one.
pub(super) const FREE: usize = 3;
/// How long a change counts. Longer than a flow that ends without being disturbed, so that nobody gains by
/// changes.
pub(super) const WITHIN: Duration = Duration::from_secs(10 * 60);

/// When flows of shoots were ended by a change, by the shoot's uid.
#[derive(Debug, Default)]
pub(super) struct Changes(Mutex<HashMap<String, VecDeque<Instant>>>);

impl Changes {
    /// A flow of this shoot was ended by a change.
    pub(super) fn count(&self, shoot: &Shoot, now: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What is over is nobody's, also of shoots that are gone.
        all.retain(|_, times| {
            times.retain(|time| now.duration_since(*time) < WITHIN);
            !times.is_empty()
        });
        let times = all.entry(shoot.uid().unwrap_or_default()).or_default();
        times.push_back(now);
        while times.len() > FREE {
            times.pop_front();
        }
    }

    /// How long the next flow of the shoot waits, which is told; nothing where it does not. A move or a
    /// deletion never waits.
    ///
    /// # Errors
    /// It could not be told.
    pub(super) async fn hold(
        &self,
        context: &Context,
        shoot: &Shoot,
        operation: Operation,
    ) -> Result<Option<Duration>> {
        let pause = self.pause(shoot, Instant::now());
        let Some(pause) = pause.filter(|_| matches!(operation, Operation::Create | Operation::Reconcile))
        else {
            return Ok(None);
        };
        let now = clock::now_k8s();
        let until = SignedDuration::try_from(pause).map_or(now.0, |pause| now.0 + pause);
        if let Some(patch) = zone_record::held(shoot, until, &now) {
            let api: Api<Shoot> = context.garden.namespaced(&shoot.namespace().unwrap_or_default());
            // Whoever has written meanwhile wakes this again.
            MANAGER.try_merge_status_of(&api, shoot, &patch).await?;
        }
        Ok(Some(pause))
    }

    /// How long the next flow waits; nothing where there were few changes.
    pub(super) fn pause(&self, shoot: &Shoot, now: Instant) -> Option<Duration> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let times = all.get(&shoot.uid()?)?;
        let oldest = times.front().filter(|_| times.len() >= FREE)?;
        let rest = WITHIN.checked_sub(now.duration_since(*oldest))?;
        Some(rest).filter(|rest| !rest.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shoot(uid: &str) -> Shoot {
        let mut shoot = Shoot::default();
        shoot.metadata.uid = Some(uid.to_owned());
        shoot
    }

    /// However often it is changed: three flows are ended in each ten minutes.
    #[test]
    fn whoever_changes_his_mind_for_ever_waits() {
        let (changes, restless, calm) = (Changes::default(), shoot("u"), shoot("v"));
        let begin = Instant::now();
        let mut flows = 0;
        for second in 0..3600 {
            let now = begin + Duration::from_secs(second);
            if changes.pause(&restless, now).is_none() {
                changes.count(&restless, now);
                flows += 1;
            }
        }
        assert_eq!(flows, 18);
        assert_eq!(changes.pause(&calm, begin), None);
    }

    #[test]
    fn a_few_changes_are_free_and_time_passes() {
        let (changes, shoot) = (Changes::default(), shoot("u"));
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        changes.count(&shoot, begin);
        changes.count(&shoot, after(10));
        assert_eq!(changes.pause(&shoot, after(11)), None);
        changes.count(&shoot, after(20));
        assert_eq!(changes.pause(&shoot, after(20)), Some(Duration::from_secs(580)));
        assert_eq!(changes.pause(&shoot, after(600)), None);
    }
}
