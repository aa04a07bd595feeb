//! The label `shoot.gardener.cloud/status`: all conditions in a single word. Pure.

use api::{
    constants::shoot_status::{HEALTHY, PROGRESSING, UNHEALTHY, UNKNOWN},
    gardencore::ShootStatus,
    meta::{ConditionStatus, LastOperationState, LastOperationType},
};

/// The worst of the conditions. During a creation or a deletion the conditions are not meaningful, so the
/// errors count.
#[must_use]
pub fn status_label(status: &ShootStatus) -> &'static str {
    let Some(operation) = &status.last_operation else {
        return HEALTHY;
    };
    let unfinished = match operation.type_ {
        LastOperationType::Create => operation.state != LastOperationState::Succeeded,
        LastOperationType::Delete => true,
        _ => false,
    };
    if unfinished {
        return if status.last_errors.is_empty() {
            HEALTHY
        } else {
            UNHEALTHY
        };
    }
    let worst = status
        .conditions
        .iter()
        .map(|c| rank(c.status))
        .max()
        .unwrap_or_default();
    let worst = if operation.state == LastOperationState::Failed {
        RANKS.len() - 1
    } else {
        worst
    };
    RANKS[worst]
}

const RANKS: [&str; 4] = [HEALTHY, PROGRESSING, UNKNOWN, UNHEALTHY];

/// How bad a status is: 0 is `True`, 3 is `False`.
pub(super) fn rank(status: ConditionStatus) -> usize {
    match status {
        ConditionStatus::True => 0,
        ConditionStatus::Progressing => 1,
        ConditionStatus::Unknown => 2,
        ConditionStatus::False => 3,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use ConditionStatus::{False, Progressing, True, Unknown};
    use LastOperationType::{Create, Delete, Reconcile};
    use api::meta::{Condition, LastError, LastOperation};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn status(
        type_: LastOperationType,
        state: LastOperationState,
        conditions: &[ConditionStatus],
    ) -> ShootStatus {
        let now = Time(jiff::Timestamp::UNIX_EPOCH);
        ShootStatus {
            last_operation: Some(LastOperation {
                description: String::new(),
                last_update_time: now.clone(),
                progress: 0,
                state,
                type_,
            }),
            conditions: conditions
                .iter()
                .map(|s| Condition::new("C", *s, "R", "m", now.clone()))
                .collect(),
            ..ShootStatus::default()
        }
    }

    #[test]
    fn the_worst_condition_counts() {
        use LastOperationState::{Failed, Processing, Succeeded};
        for (conditions, label) in [
            (&[True, True][..], HEALTHY),
            (&[True, Progressing], PROGRESSING),
            (&[Progressing, Unknown], UNKNOWN),
            (&[True, False, Unknown], UNHEALTHY),
        ] {
            assert_eq!(status_label(&status(Reconcile, Processing, conditions)), label);
            assert_eq!(status_label(&status(Create, Succeeded, conditions)), label);
        }
        assert_eq!(status_label(&status(Reconcile, Failed, &[True])), UNHEALTHY);
    }

    #[test]
    fn a_shoot_that_comes_or_goes_is_judged_by_its_errors() {
        use LastOperationState::Processing;
        assert_eq!(status_label(&ShootStatus::default()), HEALTHY);
        for type_ in [Create, Delete] {
            let mut status = status(type_, Processing, &[False]);
            assert_eq!(status_label(&status), HEALTHY);
            status.last_errors = vec![LastError {
                description: "x".into(),
                task_id: None,
                codes: vec![],
                last_update_time: None,
            }];
            assert_eq!(status_label(&status), UNHEALTHY);
        }
    }
}
