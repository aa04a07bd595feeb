//! Keeps the longest fence that a Seed has configured in the status of the Seed. A seed that takes over a
//! shoot from a dead seed must wait for the settings that the processes of the dead seed run with. Later
//! edits of the Seed never reached these processes (docs/understand/ownership.md, "Who gets the settings").

use api::gardencore::Seed;
use ownership::Terms;

/// The fence that the Seed configures now, in seconds, rounded up. `None` if the Seed configures no fence or
/// an invalid fence.
fn read_configured_fence(seed: &Seed) -> Option<i64> {
    let checks = seed.spec.owner_checks()?;
    let fence = owner_checks::needed_fence(checks, Terms::default()).ok()?;
    let up = u64::from(fence.subsec_nanos() > 0);
    i64::try_from(fence.as_secs() + up).ok()
}

/// The fence that the status may report now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FenceReport {
    /// The new fence: not shorter than the reported fence.
    Now(Option<i64>),
    /// Shorter than the reported fence. The new fence may be reported only if the seed has no shoot, because
    /// then no process runs with the longer fence. Otherwise the report stays.
    Shorter {
        /// The fence that the Seed configures now.
        given: Option<i64>,
        /// The reported fence.
        before: Option<i64>,
    },
}

/// Compares the configured fence with the reported fence.
pub(super) fn plan_report(seed: &Seed) -> FenceReport {
    let before = seed
        .status
        .as_ref()
        .and_then(|status| status.owner_check_fence_seconds);
    let given = read_configured_fence(seed);
    if given >= before {
        FenceReport::Now(given)
    } else {
        FenceReport::Shorter { given, before }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn seed(checks: &Value, before: Option<i64>) -> Seed {
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": "a"},
            "spec": {"dns": {}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
                "provider": {"type": "local", "region": "local"}, "settings": {"ownerChecks": checks}},
            "status": {"ownerCheckFenceSeconds": before},
        }))
        .unwrap()
    }

    #[test]
    fn a_shorter_fence_is_not_told_while_something_may_go_by_the_longer_one() {
        let shorter = |given, before| FenceReport::Shorter { given, before };
        for (checks, before, expected) in [
            (json!({"enabled": true}), None, FenceReport::Now(Some(24))),
            (
                json!({"enabled": true, "fence": "45s"}),
                Some(24),
                FenceReport::Now(Some(45)),
            ),
            (
                json!({"enabled": true, "fence": "45s"}),
                Some(45),
                FenceReport::Now(Some(45)),
            ),
            (json!({"enabled": true}), Some(45), shorter(Some(24), Some(45))),
            // Neither disabled checks nor invalid settings end a reported fence.
            (Value::Null, Some(45), shorter(None, Some(45))),
            (
                json!({"enabled": true, "fence": "soon"}),
                Some(45),
                shorter(None, Some(45)),
            ),
            (Value::Null, None, FenceReport::Now(None)),
            // The fence is at least the sum that the remaining settings need, and is rounded up to full
            // seconds.
            (
                json!({"enabled": true, "validity": "40s"}),
                None,
                FenceReport::Now(Some(52)),
            ),
        ] {
            assert_eq!(
                plan_report(&seed(&checks, before)),
                expected,
                "{checks} {before:?}"
            );
        }
    }
}
