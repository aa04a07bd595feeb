//! The finished share of a flow, by the expected durations of the tasks.
//!
//! The share is measured along the longest path: parallel tasks count once. A task counts only after its end,
//! so that a hanging task does not look like progress.

use std::time::Duration;

use crate::progress::percent;
use crate::task::Task;

/// The expected time from the start of each task to the end of the flow.
pub(crate) struct ExpectedTimes {
    until_end: Vec<Duration>,
    total: Duration,
}

impl ExpectedTimes {
    /// `None` where no task has an expected duration.
    pub(crate) fn new<E>(tasks: &[Task<'_, E>]) -> Option<Self> {
        let mut until_end: Vec<_> = tasks
            .iter()
            .map(|task| {
                if task.skipped {
                    Duration::ZERO
                } else {
                    task.expected
                }
            })
            .collect();
        // Each task comes after the dependencies in the list.
        let mut after = vec![Duration::ZERO; tasks.len()];
        for index in (0..tasks.len()).rev() {
            until_end[index] += after[index];
            for before in &tasks[index].after {
                after[before.index] = after[before.index].max(until_end[index]);
            }
        }
        let total = until_end.iter().max().copied().filter(|total| !total.is_zero())?;
        Some(Self { until_end, total })
    }

    /// Percentage of the expected time; `unfinished`: the tasks that have not ended.
    pub(crate) fn percent(&self, unfinished: impl Iterator<Item = usize>) -> u8 {
        let Some(left) = unfinished.map(|index| self.until_end[index]).max() else {
            return 100;
        };
        let milliseconds = |time: Duration| usize::try_from(time.as_millis()).unwrap_or(usize::MAX / 100);
        let (left, total) = (milliseconds(left), milliseconds(self.total).max(1));
        percent(total.saturating_sub(left), total).min(99)
    }
}
