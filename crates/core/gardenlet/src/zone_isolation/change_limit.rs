//! Limits the flows that changes of the annotation start. Each change ends the running flow, and the next
//! flow undoes the changes of the ended flow (RZ-02). Repeated changes would start flow after flow, each with
//! calls to the cloud. A shoot has a few changes without a delay, then the next flow waits. The count is in
//! memory: a restarted gardenlet counts from zero.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use api::gardencore::Shoot;
use jiff::SignedDuration;
use kube::ResourceExt;
use placement::Operation;
use runtime::{Result, clock};
use tokio::time::Instant;

use crate::{
    context::Context,
    shoot::operation::report::{CONFLICT_REQUEUE, write_report},
    zone_isolation,
};

/// Flows that changes may end within [`COUNTED_PERIOD`] without a delay. Enough for a mistake, its
/// correction, and a second mistake.
pub(crate) const FREE_CHANGES: usize = 3;
/// How long a change counts. Longer than an undisturbed flow, so that a change never makes a flow start
/// earlier.
pub(crate) const COUNTED_PERIOD: Duration = Duration::from_secs(10 * 60);

/// The times at which a change ended a flow, by the uid of the Shoot.
#[derive(Debug, Default)]
pub(crate) struct ChangeLimit(Mutex<HashMap<String, VecDeque<Instant>>>);

impl ChangeLimit {
    /// A flow of this shoot was ended by a change.
    pub(crate) fn count(&self, shoot: &Shoot, now: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Also removes the entries of deleted shoots.
        all.retain(|_, times| {
            times.retain(|time| now.duration_since(*time) < COUNTED_PERIOD);
            !times.is_empty()
        });
        let times = all.entry(shoot.uid().unwrap_or_default()).or_default();
        times.push_back(now);
        while times.len() > FREE_CHANGES {
            times.pop_front();
        }
    }

    /// The delay of the next flow, reported in the Shoot. `None` without a delay. A move or a deletion never
    /// waits.
    ///
    /// # Errors
    /// The report could not be written.
    pub(crate) async fn delay_flow(
        &self,
        context: &Context,
        shoot: &Shoot,
        operation: Operation,
    ) -> Result<Option<Duration>> {
        let delay = self.delay(shoot, Instant::now());
        let Some(delay) = delay.filter(|_| matches!(operation, Operation::Create | Operation::Reconcile))
        else {
            return Ok(None);
        };
        let now = clock::now_k8s();
        let until = SignedDuration::try_from(delay).map_or(now.0, |delay| now.0 + delay);
        let report = zone_isolation::zone_status::delayed(shoot, until, &now);
        let is_reported = write_report(context, shoot, report).await?;
        Ok(Some(if is_reported { delay } else { CONFLICT_REQUEUE }))
    }

    /// The delay of the next flow; `None` after few changes.
    pub(crate) fn delay(&self, shoot: &Shoot, now: Instant) -> Option<Duration> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let times = all.get(&shoot.uid()?)?;
        let oldest = times.front().filter(|_| times.len() >= FREE_CHANGES)?;
        let rest = COUNTED_PERIOD.checked_sub(now.duration_since(*oldest))?;
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

    /// At any rate of changes, three flows are ended in each ten minutes.
    #[test]
    fn repeated_changes_are_delayed() {
        let (changes, restless, calm) = (ChangeLimit::default(), shoot("u"), shoot("v"));
        let begin = Instant::now();
        let mut flows = 0;
        for second in 0..3600 {
            let now = begin + Duration::from_secs(second);
            if changes.delay(&restless, now).is_none() {
                changes.count(&restless, now);
                flows += 1;
            }
        }
        assert_eq!(flows, 18);
        assert_eq!(changes.delay(&calm, begin), None);
    }

    #[test]
    fn a_few_changes_are_free_and_time_passes() {
        let (changes, shoot) = (ChangeLimit::default(), shoot("u"));
        let begin = Instant::now();
        let after = |seconds| begin + Duration::from_secs(seconds);
        changes.count(&shoot, begin);
        changes.count(&shoot, after(10));
        assert_eq!(changes.delay(&shoot, after(11)), None);
        changes.count(&shoot, after(20));
        assert_eq!(changes.delay(&shoot, after(20)), Some(Duration::from_secs(580)));
        assert_eq!(changes.delay(&shoot, after(600)), None);
    }
}
