//! Whether the permits of a source end while its hypervisor pauses a machine: a pure decision.

use api::gardencore::{Shoot, shoot::SeedOwnerCheck};

/// Why only an operator's approval may begin a takeover; `None` if the source reports a clock of the host.
/// The clocks of a paused machine stand still, so that its silence may end in an acknowledged write.
#[must_use]
pub fn obstacle_to_silence(shoot: &Shoot) -> Option<String> {
    let status = shoot.status.as_ref()?;
    let source = status.seed_name.as_deref()?;
    let guarded = status
        .owner_check_in(source)
        .is_some_and(SeedOwnerCheck::reads_host_clock);
    (!guarded).then(|| {
        format!(
            "the clock of seed {source} may stop while its hypervisor pauses a machine (status.ownerChecks of the Shoot reports no \
             hostClock): a person has to approve the takeover"
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn shoot(host_clock: &Value) -> Shoot {
        let checks = json!([
            {"seedName": "a", "epoch": 3, "hostClock": host_clock},
            {"seedName": "z", "epoch": 2, "hostClock": "Rtc"},
        ]);
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
            "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
            "status": {"seedName": "a", "ownerChecks": checks},
        }))
        .unwrap()
    }

    #[test]
    fn silence_of_a_seed_whose_clock_may_stop_approves_nothing() {
        for (host_clock, expected) in [
            (json!("Rtc"), false),
            (json!("Ptp"), false),
            (json!("None"), true),
            (Value::Null, true),
        ] {
            let obstacle = obstacle_to_silence(&shoot(&host_clock));
            assert_eq!(obstacle.is_some(), expected, "{host_clock}: {obstacle:?}");
        }
        let mut unknown = shoot(&json!("Rtc"));
        unknown.status.as_mut().unwrap().owner_checks.clear();
        assert!(obstacle_to_silence(&unknown).unwrap().contains("seed a may stop"));
    }
}
