//! The fence that a Seed has given, kept in its status: whoever takes a shoot over from a dead seed must wait
//! for what that seed's processes were told, and not for what somebody has written into the Seed since
//! (docs/understand/ownership.md, "Who gets the settings").

use api::gardencore::Seed;
use ownership::Terms;

/// What the Seed gives now, in seconds, rounded up. None where it gives nothing, or what cannot be read.
fn given(seed: &Seed) -> Option<i64> {
    let checks = seed.spec.owner_checks()?;
    let fence = owner_checks::needed_fence(checks, Terms::default()).ok()?;
    let up = u64::from(fence.subsec_nanos() > 0);
    i64::try_from(fence.as_secs() + up).ok()
}

/// What may be told now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// This: it is no less than what was told before.
    Now(Option<i64>),
    /// Less than what was told before, where the seed has no shoot: nothing goes by the longer one then.
    /// Otherwise the same as before.
    Shorter {
        /// What it gives now.
        given: Option<i64>,
        /// What was told before.
        before: Option<i64>,
    },
}

/// What follows from the Seed.
pub(super) fn of(seed: &Seed) -> Told {
    let before = seed
        .status
        .as_ref()
        .and_then(|status| status.owner_check_fence_seconds);
    let given = given(seed);
    if given >= before {
        Told::Now(given)
    } else {
        Told::Shorter { given, before }
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
        let shorter = |given, before| Told::Shorter { given, before };
        for (checks, before, expected) in [
            (json!({"enabled": true}), None, Told::Now(Some(24))),
            (
                json!({"enabled": true, "fence": "45s"}),
                Some(24),
                Told::Now(Some(45)),
            ),
            (
                json!({"enabled": true, "fence": "45s"}),
                Some(45),
                Told::Now(Some(45)),
            ),
            (json!({"enabled": true}), Some(45), shorter(Some(24), Some(45))),
            // Checks that are switched off, and settings that nobody can read, end nothing that was told.
            (Value::Null, Some(45), shorter(None, Some(45))),
            (
                json!({"enabled": true, "fence": "soon"}),
                Some(45),
                shorter(None, Some(45)),
            ),
            (Value::Null, None, Told::Now(None)),
            // What the others need counts where the fence falls short of it, and a part of a second is a
            // whole one.
            (
                json!({"enabled": true, "validity": "40s"}),
                None,
                Told::Now(Some(52)),
            ),
        ] {
            assert_eq!(of(&seed(&checks, before)), expected, "{checks} {before:?}");
        }
    }
}
