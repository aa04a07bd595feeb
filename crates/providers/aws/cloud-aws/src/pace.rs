//! The pace of calls for an account in a region. EC2 throttles an account, so that all calls of the account
//! slow down together.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Time between calls after the first refusal. Each further refusal doubles the time.
const FIRST_GAP: Duration = Duration::from_millis(50);
/// The longest time between calls.
const LONGEST_GAP: Duration = Duration::from_millis(500);
/// The longest time that a call waits for the rate limit, shorter than the heartbeat interval of the waiting
/// object.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// When the next call of an account may leave.
#[derive(Debug)]
pub struct Pace(Mutex<Turns>);

#[derive(Debug)]
struct Turns {
    next: Instant,
    gap: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self(Mutex::new(Turns {
            next: Instant::now(),
            gap: Duration::ZERO,
        }))
    }
}

impl Pace {
    /// Takes a turn, and returns the time until that turn.
    pub fn take_turn(&self, now: Instant) -> Duration {
        let mut turns = self.turns();
        let turn = turns.next.clamp(now, now + LONGEST_WAIT);
        turns.next = turn + turns.gap;
        turn - now
    }

    /// EC2 throttles the account.
    pub fn slow_down(&self) {
        let mut turns = self.turns();
        turns.gap = (turns.gap * 2).clamp(FIRST_GAP, LONGEST_GAP);
    }

    /// EC2 has answered a call.
    pub fn speed_up(&self) {
        let mut turns = self.turns();
        turns.gap = turns.gap * 3 / 4;
        if turns.gap < FIRST_GAP / 2 {
            turns.gap = Duration::ZERO;
        }
    }

    /// Whether a new pace would behave as this pace does.
    pub fn is_at_rest(&self, now: Instant) -> bool {
        let turns = self.turns();
        turns.gap.is_zero() && turns.next <= now
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_a_throttled_account_leave_one_after_the_other() {
        let (pace, now) = (Pace::default(), Instant::now());
        assert!(pace.take_turn(now).is_zero() && pace.take_turn(now).is_zero());
        pace.slow_down();
        pace.slow_down();
        let turns = [now; 3].map(|now| pace.take_turn(now));
        assert_eq!(turns, [0, 100, 200].map(Duration::from_millis));
        assert!(!pace.is_at_rest(now));
    }

    #[test]
    fn a_pace_is_bounded_and_recovers() {
        let (pace, now) = (Pace::default(), Instant::now());
        for _ in 0..20 {
            pace.slow_down();
        }
        let longest = (0..100).map(|_| pace.take_turn(now)).max();
        assert_eq!(longest, Some(LONGEST_WAIT));
        for _ in 0..20 {
            pace.speed_up();
        }
        assert!(pace.is_at_rest(now + LONGEST_WAIT + LONGEST_GAP));
    }
}
