//! `OwnershipVerified`: what the process beside etcd finds out about the shoot's owner, as etcd-druid passes it on, and when it was
//! looked at last (R17-13, R17-47).

use std::{future::Future, time::Duration};

use api::{
    constants::{
        ETCD_MAIN,
        condition::{OUTLASTS_FENCE, OWNERSHIP_VERIFIED},
    },
    druid::{Etcd, EtcdCondition, OwnerCheckSpec},
    meta::{Condition, ConditionStatus, find_condition},
};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use ownership::Terms;
use runtime::Result;

use super::observation::Observation;

/// How often the time is told anew where nothing else has changed: a write to the garden for each shoot.
const TELL_EVERY: SignedDuration = SignedDuration::from_mins(5);

/// What is said of a shoot; nothing where the seed does not check owners. `fence`: for how long destinations wait for this seed. It
/// is asked for only where etcd outlasts the usual one.
pub(super) async fn verified<F>(etcds: &[Etcd], fence: impl FnOnce() -> F) -> Result<Option<Observation>>
where
    F: Future<Output = Result<Duration>>,
{
    let usual = Terms::default().settings().fence;
    let fence = if outlasts(etcds, usual) {
        fence().await?
    } else {
        usual
    };
    Ok(verified_by(etcds, fence))
}

fn checked(etcds: &[Etcd]) -> Option<(&OwnerCheckSpec, Option<&EtcdCondition>)> {
    let main = etcds.iter().find(|etcd| etcd.name_any() == ETCD_MAIN)?;
    let check = main.spec.backup.owner_check.as_ref()?;
    let conditions = main.status.iter().flat_map(|status| &status.conditions);
    let said = conditions.into_iter().find(|one| one.type_ == OWNERSHIP_VERIFIED);
    Some((check, said))
}

/// Whether etcd may be served for longer than that, although nobody confirms it any more. etcd-druid knows the usual fence only.
fn outlasts(etcds: &[Etcd], fence: Duration) -> bool {
    checked(etcds).is_some_and(|(check, said)| {
        let is_said = said.is_some_and(|said| said.reason == OUTLASTS_FENCE);
        is_said && (fence <= Terms::default().settings().fence || !owner_checks::is_fenced_by(check, fence))
    })
}

fn verified_by(etcds: &[Etcd], fence: Duration) -> Option<Observation> {
    let (_, said) = checked(etcds)?;
    let outlasts = outlasts(etcds, fence);
    let (status, reason) = match said.map(|said| said.status.as_str()) {
        Some("True") if outlasts => (ConditionStatus::True, OUTLASTS_FENCE),
        Some("Unknown") if outlasts => (ConditionStatus::Unknown, OUTLASTS_FENCE),
        Some("True") => (ConditionStatus::True, "Owner"),
        Some("False") => (ConditionStatus::False, "Lost"),
        Some(_) => (ConditionStatus::Unknown, "NotConfirmed"),
        None => (ConditionStatus::Unknown, "NoAnswer"),
    };
    let message = said.map_or(
        "etcd-druid has not told yet whether the shoot is this seed's.",
        |said| &said.message,
    );
    Some(Observation::new(status, reason, message))
}

/// Puts it into the conditions of a shoot, at once: whoever has lost a shoot is not on the way to have it again.
pub(super) fn tell(seen: Option<&Observation>, now: &Time, conditions: &mut Vec<Condition>) {
    let Some(seen) = seen else {
        conditions.retain(|one| one.type_ != OWNERSHIP_VERIFIED);
        return;
    };
    let told = Condition::new(
        OWNERSHIP_VERIFIED,
        seen.status,
        seen.reason,
        &seen.message,
        now.clone(),
    );
    let is_fresh = find_condition(conditions, OWNERSHIP_VERIFIED)
        .is_some_and(|old| now.0.duration_since(old.last_update_time.0) < TELL_EVERY);
    told.merge_into(conditions);
    if !is_fresh && let Some(told) = conditions.iter_mut().find(|one| one.type_ == OWNERSHIP_VERIFIED) {
        told.last_update_time = now.clone();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    const USUAL: Duration = Duration::from_secs(20);

    fn etcd(checks: bool, said: &[(&str, &str)]) -> Etcd {
        let mut etcd = Etcd::new(ETCD_MAIN, api::druid::EtcdSpec::default());
        etcd.spec.backup.owner_check = checks.then(Default::default);
        let conditions: Vec<_> = said
            .iter()
            .map(|(status, message)| {
                json!({"type": OWNERSHIP_VERIFIED, "status": status, "reason": "Any", "message": message,
                    "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"})
            })
            .collect();
        etcd.status = Some(serde_json::from_value(json!({"conditions": conditions})).unwrap());
        etcd
    }

    #[test]
    fn what_druid_says_is_passed_on() {
        use ConditionStatus::{False, True, Unknown};
        assert_eq!(verified_by(&[], USUAL), None);
        assert_eq!(verified_by(&[etcd(false, &[("True", "yes.")])], USUAL), None);
        let silent = verified_by(&[etcd(true, &[])], USUAL).unwrap();
        assert_eq!((silent.status, silent.reason), (Unknown, "NoAnswer"));
        for (said, status, reason) in [
            ("True", True, "Owner"),
            ("False", False, "Lost"),
            ("Unknown", Unknown, "NotConfirmed"),
            ("ConditionCheckError", Unknown, "NotConfirmed"),
        ] {
            let seen = verified_by(&[etcd(true, &[(said, "a sentence.")])], USUAL).unwrap();
            assert_eq!(seen, Observation::new(status, reason, "a sentence."));
        }
    }

    #[test]
    fn that_silence_is_borne_is_passed_on() {
        let mut served = etcd(true, &[("True", "a sentence.")]);
        served.status.as_mut().unwrap().conditions[0].reason = OUTLASTS_FENCE.into();
        let seen = verified_by(&[served], USUAL).unwrap();
        assert_eq!(
            (seen.status, seen.reason),
            (ConditionStatus::True, OUTLASTS_FENCE)
        );
    }

    /// Settings of the Seed that destinations know are no reason for a person to be asked; such as they do not know are.
    #[test]
    fn a_longer_fence_of_the_seed_covers_what_it_was_made_for() {
        let seconds = |text: &str| Some(text.to_owned());
        let mut longer = etcd(true, &[("True", "a sentence.")]);
        longer.status.as_mut().unwrap().conditions[0].reason = OUTLASTS_FENCE.into();
        let check = longer.spec.backup.owner_check.as_mut().unwrap();
        (check.validity, check.fence) = (seconds("30s"), seconds("40s"));
        let mut tolerant = longer.clone();
        let check = tolerant.spec.backup.owner_check.as_mut().unwrap();
        check.silence = Some(api::druid::OwnerCheckSilence::Tolerate);
        let mut unreadable = longer.clone();
        unreadable.spec.backup.owner_check.as_mut().unwrap().validity = seconds("90m");
        for (etcd, fence, reason) in [
            (&longer, 40, "Owner"),
            // 1.001 * (2 + 30 / 0.999 + 5) = 37.07
            (&longer, 38, "Owner"),
            (&longer, 37, OUTLASTS_FENCE),
            (&longer, 20, OUTLASTS_FENCE),
            (&tolerant, 3600, OUTLASTS_FENCE),
            (&unreadable, 3600, OUTLASTS_FENCE),
        ] {
            let seen = verified_by(std::slice::from_ref(etcd), Duration::from_secs(fence)).unwrap();
            assert_eq!(seen.reason, reason, "{fence}");
        }
    }

    #[tokio::test]
    async fn the_seed_is_read_only_where_it_matters() {
        let asked = |etcd: Etcd| async move {
            let mut asked = false;
            let fence = || {
                asked = true;
                std::future::ready(Ok(Duration::from_secs(60)))
            };
            let seen = verified(&[etcd], fence).await;
            seen.map(|_| asked)
        };
        assert_eq!(asked(etcd(true, &[("True", "yes.")])).await, Ok(false));
        let mut longer = etcd(true, &[("True", "yes.")]);
        longer.status.as_mut().unwrap().conditions[0].reason = OUTLASTS_FENCE.into();
        assert_eq!(asked(longer).await, Ok(true));
    }

    #[test]
    fn a_loss_is_told_at_once_and_the_time_of_a_look_now_and_then() {
        let at = |second| Time(jiff::Timestamp::from_second(second).unwrap());
        let times = |conditions: &[Condition]| {
            let told = find_condition(conditions, OWNERSHIP_VERIFIED).unwrap();
            let seconds = |time: &Time| time.0.as_second();
            (
                told.status,
                seconds(&told.last_transition_time),
                seconds(&told.last_update_time),
            )
        };
        let owner = Observation::new(ConditionStatus::True, "Owner", "yes.");
        let lost = Observation::new(ConditionStatus::False, "Lost", "no.");
        let mut conditions = Vec::new();
        tell(Some(&owner), &at(0), &mut conditions);
        tell(Some(&owner), &at(299), &mut conditions);
        assert_eq!(times(&conditions), (ConditionStatus::True, 0, 0));
        tell(Some(&owner), &at(300), &mut conditions);
        assert_eq!(times(&conditions), (ConditionStatus::True, 0, 300));
        tell(Some(&lost), &at(310), &mut conditions);
        assert_eq!(times(&conditions), (ConditionStatus::False, 310, 310));
        tell(None, &at(320), &mut conditions);
        assert_eq!(conditions, []);
    }
}
