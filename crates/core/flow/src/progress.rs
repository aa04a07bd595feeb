//! Progress of a flow, for `status.lastOperation`.

use std::fmt;

/// A moment of a running flow. The text form is the list of running tasks, as `lastOperation.description`
/// shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Finished share of the flow in percent, rounded down: 100 means that all tasks are done or skipped.
    /// Measured by the expected durations of the tasks ([`crate::Flow::expect`]), else by the number of
    /// tasks.
    pub percent: u8,
    /// Names of the tasks that run now, in the order of the graph.
    pub running: Vec<&'static str>,
    /// Names of the finished tasks, in the order of the ends.
    pub succeeded: Vec<&'static str>,
    /// Names of the tasks that wait, run or have failed, in the order of the graph. An error of an earlier
    /// run under a different name is solved.
    pub unfinished: Vec<&'static str>,
    /// Number of tasks of the flow.
    pub total: usize,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.running.join(", "))
    }
}

/// `floor(100 * done / all)`. A flow without tasks is done.
pub(crate) fn percent(done: usize, all: usize) -> u8 {
    if all == 0 {
        return 100;
    }
    u8::try_from(100 * done.min(all) / all).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_rounds_down_so_that_100_means_all() {
        assert_eq!(percent(0, 53), 0);
        assert_eq!(percent(52, 53), 98);
        assert_eq!(percent(53, 53), 100);
        assert_eq!(percent(0, 0), 100);
    }

    #[test]
    fn text_is_the_running_tasks() {
        let progress = Progress {
            running: vec!["A", "B"],
            ..Progress::default()
        };
        assert_eq!(progress.to_string(), "A, B");
    }
}
