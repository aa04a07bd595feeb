//! How an observation becomes a condition: pure.

use std::time::Duration;

use api::meta::{Condition, ConditionStatus};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::observation::Observation;

/// The condition after an observation. A condition that was `True` is `Progressing` for `threshold` before
/// the condition becomes `False`.
#[must_use]
pub fn settle(
    old: Option<&Condition>,
    type_: &str,
    seen: Observation,
    threshold: Duration,
    now: &Time,
) -> Condition {
    let Observation {
        mut status,
        reason,
        message,
        codes,
    } = seen;
    if status == ConditionStatus::False {
        status = match old.map(|old| (old.status, &old.last_transition_time)) {
            Some((ConditionStatus::True, _)) if !threshold.is_zero() => ConditionStatus::Progressing,
            Some((ConditionStatus::Progressing, since)) if is_within(&since.0, threshold, now) => {
                ConditionStatus::Progressing
            }
            _ => ConditionStatus::False,
        };
    }
    let mut condition = Condition::new(type_, status, reason, &message, now.clone());
    condition.codes = codes;
    condition
}

fn is_within(since: &jiff::Timestamp, threshold: Duration, now: &Time) -> bool {
    SignedDuration::try_from(threshold).is_ok_and(|threshold| now.0.duration_since(*since) < threshold)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use ConditionStatus::{False, Progressing, True, Unknown};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(second: i64) -> Time {
        Time(jiff::Timestamp::from_second(second).unwrap())
    }

    fn after(old: Option<ConditionStatus>, seen: ConditionStatus, seconds: i64) -> ConditionStatus {
        let old = old.map(|status| Condition::new("C", status, "R", "m", at(0)));
        let seen = Observation {
            status: seen,
            reason: "S",
            message: "n".into(),
            codes: vec![],
        };
        settle(old.as_ref(), "C", seen, MINUTE, &at(seconds)).status
    }

    #[test]
    fn what_held_gets_a_minute() {
        assert_eq!(after(Some(True), False, 500), Progressing);
        assert_eq!(after(Some(Progressing), False, 59), Progressing);
        assert_eq!(after(Some(Progressing), False, 60), False);
        assert_eq!(after(Some(False), False, 10), False);
        assert_eq!(after(None, False, 0), False);
        assert_eq!(after(Some(Unknown), False, 0), False);
    }

    #[test]
    fn good_news_and_ignorance_are_told_at_once() {
        assert_eq!(after(Some(False), True, 0), True);
        assert_eq!(after(Some(Progressing), True, 0), True);
        assert_eq!(after(Some(True), Unknown, 0), Unknown);
    }
}
