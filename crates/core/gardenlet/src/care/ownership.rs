//! The condition `OwnershipVerified`: the findings of the process beside etcd about the owner of the shoot,
//! as reported by etcd-druid. The condition includes the time of the last check (R17-13, R17-47).

use std::{future::Future, time::Duration};

use api::{
    constants::{
        ETCD_MAIN,
        condition::{NEVER_ANSWERED, OUTLASTS_ANY_FENCE, OUTLASTS_FENCE, OWNERSHIP_VERIFIED},
    },
    druid::{Etcd, EtcdCondition, OwnerCheckSpec, ReportedOwnerCheck},
    meta::{Condition, ConditionStatus, find_condition},
};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use ownership::Terms;
use runtime::Result;

use super::observation::Observation;

/// Maximum delay of the time in the garden while all else is unchanged. Each update is a write to the garden
/// per shoot. Together with the interval of etcd-druid the delay never exceeds [`OLD`].
const TELL_EVERY: SignedDuration = SignedDuration::from_mins(3);

/// Age from which a report no longer counts. etcd-druid renews the report every minute while the process
/// beside etcd answers. If that process does not answer, etcd-druid reports the silence.
const OLD: SignedDuration = SignedDuration::from_mins(5);

/// Added to the message where no clock of the host guards the permits of the seed.
const CLOCK_MAY_STOP: &str = "The clock of this seed may stop: while a hypervisor pauses its machines no clock of the machines advances, \
    and the process beside etcd reads no clock of the host (/sys/class/rtc, /dev/ptp*). So only a person approves a takeover from this seed.";

/// Reason of a report that is too old.
const NOT_TOLD_ANEW: &str = "NotToldAnew";

/// The report about the owner of a shoot.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verified {
    seen: Observation,
    /// Time of the last check; `None` if etcd-druid has not reported yet.
    asked: Option<Time>,
}

/// Returns the report about a shoot; `None` where the seed does not check owners. `fence`: for how long
/// destinations wait for this seed. The function calls `fence` only where etcd outlasts the default fence.
pub(super) async fn verified<F>(
    etcds: &[Etcd],
    now: &Time,
    fence: impl FnOnce() -> F,
) -> Result<Option<Verified>>
where
    F: Future<Output = Result<Duration>>,
{
    let usual = Terms::default().settings().fence;
    let fence = if outlasts(etcds, usual) {
        fence().await?
    } else {
        usual
    };
    Ok(verified_by(etcds, now, fence))
}

fn checked(etcds: &[Etcd]) -> Option<(&OwnerCheckSpec, Option<&EtcdCondition>)> {
    let main = etcds.iter().find(|etcd| etcd.name_any() == ETCD_MAIN)?;
    let check = main.spec.backup.owner_check.as_ref()?;
    let conditions = main.status.iter().flat_map(|status| &status.conditions);
    let said = conditions.into_iter().find(|one| one.type_ == OWNERSHIP_VERIFIED);
    Some((check, said))
}

/// Whether etcd may be served for longer than the fence although no witness confirms the owner any more.
/// etcd-druid knows only the default fence. `OutlastsAnyFence` marks a process with settings that differ from
/// its Etcd object: no fence known here covers such a process.
fn outlasts(etcds: &[Etcd], fence: Duration) -> bool {
    let usual = Terms::default().settings().fence;
    let Some((check, Some(said))) = checked(etcds) else {
        return false;
    };
    match said.reason.as_str() {
        OUTLASTS_ANY_FENCE => true,
        OUTLASTS_FENCE => fence <= usual || !owner_checks::is_fenced_by(check, fence),
        _ => false,
    }
}

fn verified_by(etcds: &[Etcd], now: &Time, fence: Duration) -> Option<Verified> {
    let (_, said) = checked(etcds)?;
    let Some(said) = said else {
        let message = "etcd-druid has not told yet whether the shoot is this seed's.";
        let seen = Observation::new(ConditionStatus::Unknown, NEVER_ANSWERED, message);
        return Some(Verified { seen, asked: None });
    };
    let is_old = differ_by(&said.last_update_time, now, OLD);
    let (status, reason) = match said.status.as_str() {
        "True" if is_old => (ConditionStatus::Unknown, NOT_TOLD_ANEW),
        "True" => (ConditionStatus::True, "Owner"),
        // A loss is final, so the age of the report does not matter.
        "False" => (ConditionStatus::False, "Lost"),
        _ if said.reason == NEVER_ANSWERED => (ConditionStatus::Unknown, NEVER_ANSWERED),
        _ => (ConditionStatus::Unknown, "NotConfirmed"),
    };
    let message = if reason == NOT_TOLD_ANEW {
        "etcd-druid has not told anew for five minutes that the shoot is this seed's: see that etcd-druid runs in the seed (Deployment \
         etcd-druid in namespace garden), and what its log says of Etcd etcd-main."
    } else {
        said.message.as_str()
    };
    let message = if status == ConditionStatus::True && clock_may_stop(etcds) {
        format!("{message} {CLOCK_MAY_STOP}")
    } else {
        message.to_owned()
    };
    // Independent of the age: a process that keeps serving without an answer does not end because a report is
    // old.
    let reason = match status {
        ConditionStatus::True | ConditionStatus::Unknown if outlasts(etcds, fence) => OUTLASTS_FENCE,
        _ => reason,
    };
    Some(Verified {
        seen: Observation::new(status, reason, &message),
        asked: Some(said.last_update_time.clone()),
    })
}

/// Whether the process beside etcd reads no clock of the host, or does not report such a clock.
fn clock_may_stop(etcds: &[Etcd]) -> bool {
    let main = etcds.iter().find(|etcd| etcd.name_any() == ETCD_MAIN);
    let reported = main.and_then(|etcd| etcd.status.as_ref()?.owner_check.as_ref());
    !reported.is_some_and(ReportedOwnerCheck::reads_host_clock)
}

/// Whether two times differ by at least `much`. The absolute value also covers a time in the future, from a
/// wrong clock.
fn differ_by(one: &Time, other: &Time, much: SignedDuration) -> bool {
    one.0.duration_since(other.0).abs() >= much
}

/// Writes the report into the conditions of a shoot without a threshold. A seed that has lost a shoot does
/// not regain the shoot by waiting.
pub(super) fn set_condition(said: Option<&Verified>, now: &Time, conditions: &mut Vec<Condition>) {
    let Some(Verified { seen, asked }) = said else {
        conditions.retain(|one| one.type_ != OWNERSHIP_VERIFIED);
        return;
    };
    let before = find_condition(conditions, OWNERSHIP_VERIFIED).cloned();
    Condition::new(
        OWNERSHIP_VERIFIED,
        seen.status,
        seen.reason,
        &seen.message,
        now.clone(),
    )
    .merge_into(conditions);
    let told = conditions.iter_mut().find(|one| one.type_ == OWNERSHIP_VERIFIED);
    let (Some(told), Some(asked)) = (told, asked) else {
        return;
    };
    // A changed condition needs an updated time as well.
    if before.as_ref() != Some(&*told) || differ_by(&told.last_update_time, asked, TELL_EVERY) {
        told.last_update_time = asked.clone();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use ConditionStatus::{False, True, Unknown};
    use serde_json::json;

    use super::*;

    const USUAL: Duration = Duration::from_secs(24);

    fn at(second: i64) -> Time {
        Time(jiff::Timestamp::from_second(second).unwrap())
    }

    /// An Etcd with a report that etcd-druid wrote at second 1000.
    fn etcd(checks: bool, said: &[(&str, &str)]) -> Etcd {
        let mut etcd = Etcd::new(ETCD_MAIN, api::druid::EtcdSpec::default());
        etcd.spec.backup.owner_check = checks.then(Default::default);
        let conditions: Vec<_> = said
            .iter()
            .map(|(status, reason)| {
                json!({"type": OWNERSHIP_VERIFIED, "status": status, "reason": reason, "message": "a sentence.",
                    "lastTransitionTime": at(0), "lastUpdateTime": at(1000)})
            })
            .collect();
        let owner_check = json!({"servers": ["192.0.2.1:53"], "serversNamed": true, "hostClock": "Rtc"});
        let status = json!({"conditions": conditions, "ownerCheck": owner_check});
        etcd.status = Some(serde_json::from_value(status).unwrap());
        etcd
    }

    #[test]
    fn what_druid_says_is_passed_on_while_it_is_new() {
        let now = at(1000);
        assert_eq!(verified_by(&[], &now, USUAL), None);
        assert_eq!(
            verified_by(&[etcd(false, &[("True", "Owner")])], &now, USUAL),
            None
        );
        let silent = verified_by(&[etcd(true, &[])], &now, USUAL).unwrap();
        assert_eq!(
            (silent.seen.status, silent.seen.reason, silent.asked),
            (Unknown, NEVER_ANSWERED, None)
        );
        // The second of the check, and whether the report is too old at that second.
        let times = [
            (1000, false),
            (1299, false),
            (701, false),
            (1300, true),
            (700, true),
            (90_000, true),
        ];
        for (said, reason, new, old) in [
            ("True", "Owner", (True, "Owner"), (Unknown, "NotToldAnew")),
            ("False", "Lost", (False, "Lost"), (False, "Lost")),
            (
                "Unknown",
                "NotConfirmed",
                (Unknown, "NotConfirmed"),
                (Unknown, "NotConfirmed"),
            ),
            (
                "Unknown",
                "NoAnswer",
                (Unknown, "NotConfirmed"),
                (Unknown, "NotConfirmed"),
            ),
            (
                "ConditionCheckError",
                "Any",
                (Unknown, "NotConfirmed"),
                (Unknown, "NotConfirmed"),
            ),
            (
                "Unknown",
                "NeverAnswered",
                (Unknown, "NeverAnswered"),
                (Unknown, "NeverAnswered"),
            ),
            // No fence outlasts `OutlastsAnyFence`, whether `fence` is called or not.
            (
                "True",
                "OutlastsFence",
                (True, "OutlastsFence"),
                (Unknown, "OutlastsFence"),
            ),
            (
                "Unknown",
                "OutlastsFence",
                (Unknown, "OutlastsFence"),
                (Unknown, "OutlastsFence"),
            ),
            (
                "True",
                "OutlastsAnyFence",
                (True, "OutlastsFence"),
                (Unknown, "OutlastsFence"),
            ),
        ] {
            for (second, is_old) in times {
                let told = verified_by(&[etcd(true, &[(said, reason)])], &at(second), USUAL).unwrap();
                let expected = if is_old { old } else { new };
                assert_eq!(
                    (told.seen.status, told.seen.reason),
                    expected,
                    "{said} {reason} {second}"
                );
                assert_eq!(told.asked, Some(at(1000)));
                let is_passed_on = told.seen.message == "a sentence.";
                assert_eq!(is_passed_on, !is_old || said != "True", "{}", told.seen.message);
            }
        }
    }

    /// Policy `shoot-ownership` refuses further reasons to seeds.
    #[test]
    fn the_garden_allows_each_reason_to_seeds() {
        let reports = [
            ("True", "Owner"),
            ("False", "Lost"),
            ("Unknown", "NoAnswer"),
            ("Unknown", "NeverAnswered"),
            ("True", "OutlastsFence"),
            ("Unknown", "OutlastsAnyFence"),
            ("Unknown", "OfALaterVersion"),
        ];
        let known = placement::takeover::REASONS_OF_SEEDS;
        for report in reports {
            for second in [1000, 90_000] {
                let told = verified_by(&[etcd(true, &[report])], &at(second), USUAL).unwrap();
                assert!(
                    known.contains(&told.seen.reason),
                    "{report:?}: {}",
                    told.seen.reason
                );
            }
        }
        let silent = verified_by(&[etcd(true, &[])], &at(1000), USUAL).unwrap();
        assert!(known.contains(&silent.seen.reason));
    }

    fn read_condition(conditions: &[Condition]) -> (ConditionStatus, &str, i64, i64) {
        let told = find_condition(conditions, OWNERSHIP_VERIFIED).unwrap();
        let seconds = |time: &Time| time.0.as_second();
        (
            told.status,
            &told.reason,
            seconds(&told.last_transition_time),
            seconds(&told.last_update_time),
        )
    }

    /// Destinations know the settings in the Seed, so such settings need no approval by a person. Settings
    /// that destinations do not know need an approval.
    #[test]
    fn a_longer_fence_of_the_seed_covers_what_it_was_made_for() {
        let seconds = |text: &str| Some(text.to_owned());
        let mut longer = etcd(true, &[("True", "a sentence.")]);
        longer.status.as_mut().unwrap().conditions[0].reason = OUTLASTS_FENCE.into();
        let check = longer.spec.backup.owner_check.as_mut().unwrap();
        (check.validity, check.fence) = (seconds("30s"), seconds("44s"));
        let mut tolerant = longer.clone();
        let check = tolerant.spec.backup.owner_check.as_mut().unwrap();
        check.silence = Some(api::druid::OwnerCheckSilence::Tolerate);
        let mut other = longer.clone();
        other.status.as_mut().unwrap().conditions[0].reason = OUTLASTS_ANY_FENCE.into();
        let mut unreadable = longer.clone();
        unreadable.spec.backup.owner_check.as_mut().unwrap().validity = seconds("90m");
        for (etcd, fence, reason) in [
            (&longer, 44, "Owner"),
            // 1.001 * (2 + 30 / 0.999 + 5 + 4) = 41.07
            (&longer, 42, "Owner"),
            (&longer, 41, OUTLASTS_FENCE),
            (&longer, 24, OUTLASTS_FENCE),
            (&tolerant, 3600, OUTLASTS_FENCE),
            (&unreadable, 3600, OUTLASTS_FENCE),
            // The process of this etcd runs with settings that differ from the object.
            (&other, 3600, OUTLASTS_FENCE),
        ] {
            let told = verified_by(std::slice::from_ref(etcd), &at(1000), Duration::from_secs(fence));
            assert_eq!(told.unwrap().seen.reason, reason, "{fence}");
        }
    }

    /// R17-47. The fence of such a seed rests on clocks that a hypervisor may stop.
    #[test]
    fn a_seed_without_a_clock_of_the_host_says_that_its_clock_may_stop() {
        for (reported, may_stop) in [
            (Some("Rtc"), false),
            (Some("Ptp"), false),
            (Some("None"), true),
            (Some("Sundial"), true),
            (None, true),
        ] {
            for (status, is_owner) in [("True", true), ("Unknown", false)] {
                let mut etcd = etcd(true, &[(status, "Owner")]);
                let check = etcd.status.as_mut().unwrap().owner_check.as_mut().unwrap();
                check.host_clock = reported.map(str::to_owned);
                let told = verified_by(&[etcd], &at(1000), USUAL).unwrap();
                assert_eq!(
                    told.seen.message.contains(CLOCK_MAY_STOP),
                    may_stop && is_owner,
                    "{reported:?} {status}"
                );
                assert!(told.seen.message.starts_with("a sentence."));
                assert_eq!(told.seen.status, if is_owner { True } else { Unknown });
            }
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
            let told = verified(&[etcd], &at(1000), fence).await;
            told.map(|_| asked)
        };
        assert_eq!(asked(etcd(true, &[("True", "yes.")])).await, Ok(false));
        let mut longer = etcd(true, &[("True", "yes.")]);
        longer.status.as_mut().unwrap().conditions[0].reason = OUTLASTS_FENCE.into();
        assert_eq!(asked(longer).await, Ok(true));
    }

    #[test]
    fn a_loss_is_told_at_once_and_the_time_of_a_look_now_and_then() {
        let said = |status, reason, asked: Option<i64>| Verified {
            seen: Observation::new(status, reason, "a sentence."),
            asked: asked.map(at),
        };
        let owner = |asked| said(True, "Owner", Some(asked));
        let mut conditions = Vec::new();
        for (what, now, expected) in [
            (owner(0), 10, (True, "Owner", 10, 0)),
            // No process checks any more: a new read of the same report does not make the report newer.
            (owner(0), 290, (True, "Owner", 10, 0)),
            (owner(179), 300, (True, "Owner", 10, 0)),
            (owner(180), 300, (True, "Owner", 10, 180)),
            (owner(420), 430, (True, "Owner", 10, 420)),
            (
                said(Unknown, "NotToldAnew", Some(420)),
                720,
                (Unknown, "NotToldAnew", 720, 420),
            ),
            (
                said(Unknown, "NotToldAnew", Some(420)),
                9000,
                (Unknown, "NotToldAnew", 720, 420),
            ),
            (owner(9010), 9015, (True, "Owner", 9015, 9010)),
            (
                said(True, "OutlastsFence", Some(9020)),
                9025,
                (True, "OutlastsFence", 9015, 9020),
            ),
            (said(False, "Lost", Some(9030)), 9040, (False, "Lost", 9040, 9030)),
            // Report of an earlier process, with a time of its own clock.
            (said(False, "Lost", Some(8800)), 9050, (False, "Lost", 9040, 8800)),
            (
                said(Unknown, "NoAnswer", None),
                9060,
                (Unknown, "NoAnswer", 9060, 9060),
            ),
            (
                said(Unknown, "NoAnswer", None),
                9990,
                (Unknown, "NoAnswer", 9060, 9060),
            ),
        ] {
            set_condition(Some(&what), &at(now), &mut conditions);
            assert_eq!(read_condition(&conditions), expected, "{now}");
            // A second call with the same report writes no change.
            let before = conditions.clone();
            set_condition(Some(&what), &at(now + 1), &mut conditions);
            assert_eq!(conditions, before, "{now}");
        }
        set_condition(None, &at(9999), &mut conditions);
        assert_eq!(conditions, []);
    }
}
