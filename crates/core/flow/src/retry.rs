//! The retries of a task: pauses and time limit.

use std::time::Duration;

/// Retries a task after an error until a time limit has passed. The limit also cuts off an attempt that is
/// under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    pub(crate) interval: Duration,
    pub(crate) longest: Duration,
    pub(crate) limit: Duration,
}

impl Retry {
    /// Pauses `interval` after each failed attempt, and gives up `limit` after the start of the first
    /// attempt. `interval` must be shorter than `limit`, else there is no second attempt.
    #[must_use]
    pub const fn until_timeout(interval: Duration, limit: Duration) -> Self {
        Self {
            interval,
            longest: interval,
            limit,
        }
    }

    /// Doubles the pause after each failed attempt, up to `longest`.
    #[must_use]
    pub const fn backoff(mut self, longest: Duration) -> Self {
        self.longest = longest;
        self
    }

    /// The pause that follows `pause`.
    pub(crate) fn next(&self, pause: Duration) -> Duration {
        if self.longest <= self.interval {
            self.interval
        } else {
            (pause * 2).min(self.longest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn the_pause_is_constant_without_backoff() {
        let retry = Retry::until_timeout(seconds(5), seconds(30));
        assert_eq!(retry.next(seconds(5)), seconds(5));
    }

    #[test]
    fn the_pause_doubles_up_to_the_longest() {
        let retry = Retry::until_timeout(seconds(1), seconds(60)).backoff(seconds(5));
        let pauses: Vec<u64> = std::iter::successors(Some(seconds(1)), |p| Some(retry.next(*p)))
            .take(5)
            .map(|p| p.as_secs())
            .collect();
        assert_eq!(pauses, [1, 2, 4, 5, 5]);
    }
}
