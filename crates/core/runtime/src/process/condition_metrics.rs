//! Labels of metrics about conditions.
//!
//! A seed writes conditions of any type, and each value of a label is a series of Prometheus for hours. So
//! each type that the suite does not write has the same value.

use api::{
    constants::condition as types,
    meta::{Condition, ConditionStatus},
};

/// Value of label `condition` for all further types.
const OTHER: &str = "other";

/// The types of conditions and constraints of Seeds and Shoots.
const KNOWN: [&str; 26] = [
    types::API_SERVER_AVAILABLE,
    types::CONTROL_PLANE_HEALTHY,
    types::OBSERVABILITY_COMPONENTS_HEALTHY,
    types::EVERY_NODE_READY,
    types::SYSTEM_COMPONENTS_HEALTHY,
    types::SHOOT_STATE_UP_TO_DATE,
    types::SHOOT_STATE_COMPLETE,
    types::DATA_COMPLETE,
    types::OWNERSHIP_VERIFIED,
    types::OWNER_CHECKS_COMPLETE,
    types::OWNER_SERVERS_AGREE,
    types::ZONE_ISOLATION,
    types::ZONE_ISOLATION_DRY_RUN,
    types::READY_FOR_MIGRATION,
    types::TAKEOVER_POSSIBLE,
    types::MIGRATION_DRY_RUN,
    types::PREPARED,
    types::RECONCILIATION_POSSIBLE,
    types::HIBERNATION_POSSIBLE,
    types::GARDENLET_READY,
    types::SEED_SYSTEM_COMPONENTS_HEALTHY,
    types::EDGE_ADDRESS_READY,
    types::BACKUP_BUCKETS_READY,
    types::WITHOUT_SHOOTS,
    types::EXTENSIONS_READY,
    types::EMERGENCY_STOP_SHOOT_RECONCILIATIONS,
];

/// The labels `condition` and `status` of a series.
pub type ConditionLabels = [(&'static str, &'static str); 2];

/// The labels of these conditions, each pair of values once: Prometheus refuses a second series with the same
/// labels.
#[must_use]
pub fn condition_labels<'a>(conditions: impl IntoIterator<Item = &'a Condition>) -> Vec<ConditionLabels> {
    let mut all = Vec::new();
    for condition in conditions {
        let known = KNOWN.into_iter().find(|known| *known == condition.type_);
        let labels = [
            ("condition", known.unwrap_or(OTHER)),
            ("status", name_of_status(condition.status)),
        ];
        if !all.contains(&labels) {
            all.push(labels);
        }
    }
    all
}

fn name_of_status(status: ConditionStatus) -> &'static str {
    match status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
        ConditionStatus::Progressing => "Progressing",
    }
}

#[cfg(test)]
mod tests {
    use crate::clock;

    use super::*;

    fn condition(type_: &str, status: ConditionStatus) -> Condition {
        Condition::new(type_, status, "R", "m", clock::now_k8s())
    }

    fn labels(type_: &'static str, status: &'static str) -> ConditionLabels {
        [("condition", type_), ("status", status)]
    }

    #[test]
    fn invented_types_have_a_single_value() {
        let mut conditions = vec![condition("GardenletReady", ConditionStatus::True)];
        conditions.extend((0..1000).map(|number| {
            let status = [ConditionStatus::False, ConditionStatus::Unknown][number % 2];
            condition(&format!("Invented{number}"), status)
        }));
        let wanted = [
            labels("GardenletReady", "True"),
            labels("other", "False"),
            labels("other", "Unknown"),
        ];
        assert_eq!(condition_labels(&conditions), wanted);
    }

    #[test]
    fn a_condition_that_is_there_twice_has_one_series_for_each_status() {
        let twice = [
            ConditionStatus::True,
            ConditionStatus::True,
            ConditionStatus::False,
        ];
        let twice = twice.map(|status| condition("EveryNodeReady", status));
        let wanted = [
            labels("EveryNodeReady", "True"),
            labels("EveryNodeReady", "False"),
        ];
        assert_eq!(condition_labels(&twice), wanted);
    }

    #[test]
    fn a_type_that_is_only_longer_is_not_known() {
        let longer = [condition("GardenletReadyX", ConditionStatus::Progressing)];
        assert_eq!(condition_labels(&longer), [labels("other", "Progressing")]);
    }

    /// The description of a type begins with the kind of the object.
    #[test]
    fn each_type_of_the_suite_is_known() {
        let constants = include_str!("../../../api/src/constants.rs");
        let start = constants.find("pub mod condition {");
        let module = start.map(|start| &constants[start..]).unwrap_or_default();
        let module = module.split("\n}").next().unwrap_or_default();
        let (mut is_type, mut is_described, mut count) = (false, false, 0);
        for line in module.lines().map(str::trim) {
            if let Some(description) = line.strip_prefix("/// ") {
                if !is_described {
                    is_type = description.starts_with("Shoot") || description.starts_with("Seed");
                }
                is_described = true;
                continue;
            }
            is_described = false;
            let Some(value) = line.split('"').nth(1).filter(|_| is_type) else {
                continue;
            };
            assert!(KNOWN.contains(&value), "{value} is not in KNOWN");
            count += 1;
        }
        assert_eq!(count, KNOWN.len());
    }
}
