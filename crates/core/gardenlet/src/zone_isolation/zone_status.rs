//! The status of a Shoot with an isolated zone (RZ-04): `zoneIsolation` and the condition `ZoneIsolation`.
//! Pure functions that build merge patches; `None` where the status is up to date.
//!
//! | asked for | recorded | as a reconciliation begins | as it ends well |
//! |---|---|---|---|
//! | a zone | nothing, or another one | Failover InProgress | Failover Done |
//! | a zone | its failover, Done | the same | the same |
//! | nothing | a failover that is Done, or has failed | Failback InProgress | Failback Done |
//! | nothing | a failover on its way | Failover Aborting | Failback Done |
//!
//! A move does not change zones: a request during a move is Pending until the shoot has arrived.

use std::time::Duration;

use api::{
    constants::condition::ZONE_ISOLATION,
    gardencore::{
        Shoot,
        shoot::{ZoneIsolation, ZoneIsolationPhase as Phase, ZoneIsolationStatus as Status},
    },
    meta::{Condition, ConditionStatus, LastError, find_condition},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use placement::{
    Operation,
    isolation::{IsolationRefusal, asked_zone, has_deadline, only_in, recorded},
};
use serde_json::{Value, json};

use crate::{name_list::names, zone_isolation};

/// Characters of a provider's report in the message.
const LONGEST_REPORT: usize = 300;

/// The record of a zone, without the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry<'a> {
    id: &'a str,
    name: Option<&'a str>,
    phase: Phase,
    status: Status,
    /// The time at which the network is closed at the latest. Only for a failover in progress or done.
    deadline: Option<Timestamp>,
}

impl<'a> Entry<'a> {
    fn from_record(recorded: &'a ZoneIsolation) -> Self {
        Self {
            id: &recorded.isolated_zone_id,
            name: recorded.isolated_zone_code.as_deref(),
            phase: recorded.phase,
            status: recorded.status,
            deadline: recorded.close_deadline_time.as_ref().map(|time| time.0),
        }
    }

    fn with(self, phase: Phase, status: Status) -> Self {
        let goes_on = self.is_under_way() && phase == Phase::Failover;
        let keeps = goes_on && matches!(status, Status::InProgress | Status::Done);
        Self {
            phase,
            status,
            deadline: self.deadline.filter(|_| keeps),
            ..self
        }
    }

    fn is_under_way(self) -> bool {
        (self.phase, self.status) == (Phase::Failover, Status::InProgress)
    }

    /// ID and name of the zone, for users.
    fn title(self) -> String {
        self.name
            .map_or_else(|| self.id.to_owned(), |name| format!("{} ({name})", self.id))
    }

    /// Status, reason and message of the condition, without an obstacle. The message names the pools of this
    /// Shoot that have no other zone.
    fn describe(self, shoot: &Shoot, now: &Time) -> (ConditionStatus, &'static str, String) {
        let (status, reason, mut message) = self.describe_zone();
        if let Some(deadline) = self.deadline.filter(|_| self.is_under_way()) {
            message.push_str(&budget(deadline, now.0));
        }
        let is_left =
            self.phase == Phase::Failover && matches!(self.status, Status::InProgress | Status::Done);
        let pools: Vec<_> = only_in(shoot, self.name.filter(|_| is_left).unwrap_or_default()).collect();
        if !pools.is_empty() {
            message.push_str(" Pools without another zone have no machines meanwhile: ");
            message.push_str(&names(&pools));
            message.push('.');
        }
        (status, reason, message)
    }

    fn describe_zone(self) -> (ConditionStatus, &'static str, String) {
        let zone = self.title();
        match (self.phase, self.status) {
            (Phase::Failover, Status::Done) => (
                ConditionStatus::True,
                "ZoneIsolated",
                format!("Zone {zone} is cut off: no machines are in it, and its network is closed."),
            ),
            (Phase::Failback, Status::Done) => (
                ConditionStatus::True,
                "ZoneIsBack",
                format!("Zone {zone} is used as any other."),
            ),
            (_, Status::Pending) => (
                ConditionStatus::Progressing,
                "Pending",
                format!("What is asked for zone {zone} begins when the shoot has moved."),
            ),
            (_, Status::Aborting) => (
                ConditionStatus::Progressing,
                "Aborting",
                format!(
                    "{} of zone {zone} was cancelled, and is undone.",
                    word(self.phase)
                ),
            ),
            (Phase::Failover, _) => (
                ConditionStatus::Progressing,
                "FailoverInProgress",
                format!("Machines leave zone {zone}, then its network is closed."),
            ),
            (Phase::Failback, _) => (
                ConditionStatus::Progressing,
                "FailbackInProgress",
                format!("The network of zone {zone} is opened, then its machines are made again."),
            ),
        }
    }
}

/// The rest of the budget in whole minutes: seconds would need a write each second.
fn budget(deadline: Timestamp, now: Timestamp) -> String {
    let time = deadline.strftime("%Y-%m-%dT%H:%M:%SZ");
    let seconds = deadline.duration_since(now).as_secs();
    if seconds <= 0 {
        return format!(
            " The budget was spent at {time}: the closing of the network waits for no machine of the zone."
        );
    }
    let minutes = (seconds + 59) / 60;
    format!(" At the latest the network is closed at {time}: {minutes} minutes of the budget are left.")
}

/// The patch at the start of an operation. `again`: the operation is repeated after errors, so a failed phase
/// stays failed until the operation succeeds.
pub(crate) fn begun(shoot: &Shoot, operation: Operation, again: bool, now: &Time) -> Option<Value> {
    let asked = asked_zone(shoot);
    let entry = recorded(shoot).map(Entry::from_record);
    let next = match operation {
        Operation::Create | Operation::Reconcile => at_work(asked, entry, again),
        Operation::Migrate | Operation::Restore => on_a_journey(asked, entry),
        Operation::Delete | Operation::ForceDelete => None,
    }?;
    written(shoot, next, next.describe(shoot, now), now)
}

fn at_work<'a>(asked: Option<&'a str>, entry: Option<Entry<'a>>, again: bool) -> Option<Entry<'a>> {
    let Some(zone) = asked else {
        let entry = entry?;
        return match (entry.phase, entry.status) {
            (Phase::Failover, Status::Pending | Status::InProgress | Status::Aborting) => {
                Some(entry.with(Phase::Failover, Status::Aborting))
            }
            (Phase::Failback, Status::Failed) if again => None,
            _ => Some(entry.with(Phase::Failback, Status::InProgress)),
        };
    };
    let same = entry.filter(|entry| entry.id == zone);
    let is_settled = same.is_some_and(|entry| {
        entry.phase == Phase::Failover
            && (entry.status == Status::Done || (entry.status == Status::Failed && again))
    });
    (!is_settled).then_some(Entry {
        id: zone,
        name: same.and_then(|entry| entry.name),
        phase: Phase::Failover,
        status: Status::InProgress,
        deadline: same
            .filter(|entry| entry.is_under_way())
            .and_then(|entry| entry.deadline),
    })
}

/// The failover of this zone is admitted: the failover is in progress, and its budget begins. A budget that
/// has begun goes on, and never ends later than a budget that would begin now.
pub(crate) fn admitted(shoot: &Shoot, zone: &str, budget: Duration, now: &Time) -> Option<Value> {
    if asked_zone(shoot) != Some(zone) {
        return None;
    }
    let budget = SignedDuration::try_from(budget).unwrap_or(SignedDuration::MAX);
    let latest = now.0.checked_add(budget).unwrap_or(Timestamp::MAX);
    let entry = recorded(shoot).map(Entry::from_record);
    let again = !zone_isolation::recheck::is_refused(shoot);
    let entry = at_work(Some(zone), entry, again)?;
    if entry.deadline.is_some_and(|deadline| deadline <= latest) {
        return None;
    }
    let entry = Entry {
        deadline: Some(latest),
        ..entry
    };
    written(shoot, entry, entry.describe(shoot, now), now)
}

/// The user spends the rest of the budget.
pub(crate) fn spent(shoot: &Shoot, zone: &str, now: &Time) -> Option<Value> {
    let entry = Entry::from_record(recorded(shoot).filter(|recorded| recorded.isolated_zone_id == zone)?);
    if !entry.is_under_way() || entry.deadline.is_some_and(|deadline| deadline <= now.0) {
        return None;
    }
    let entry = Entry {
        deadline: Some(now.0),
        ..entry
    };
    written(shoot, entry, entry.describe(shoot, now), now)
}

fn on_a_journey<'a>(asked: Option<&'a str>, entry: Option<Entry<'a>>) -> Option<Entry<'a>> {
    match (asked, entry) {
        (Some(zone), None) => Some(Entry {
            id: zone,
            name: None,
            phase: Phase::Failover,
            status: Status::Pending,
            deadline: None,
        }),
        (Some(zone), Some(entry)) if entry.id == zone && entry.phase == Phase::Failback => {
            // The annotation was removed and set again during a move: no failback has begun.
            let status = if entry.status == Status::Pending {
                Status::InProgress
            } else {
                Status::Pending
            };
            Some(entry.with(Phase::Failover, status))
        }
        (None, Some(entry)) if entry.phase == Phase::Failover => {
            Some(entry.with(Phase::Failback, Status::Pending))
        }
        _ => None,
    }
}

/// The failover of this zone was refused before any change. No refusal takes an admission back: the flow and
/// the controller of deadlines judge at the same time.
pub(crate) fn refused(shoot: &Shoot, zone: &str, refusal: &IsolationRefusal, now: &Time) -> Option<Value> {
    if asked_zone(shoot) != Some(zone) || has_deadline(shoot, zone) {
        return None;
    }
    let entry = at_work(Some(zone), recorded(shoot).map(Entry::from_record), false)?;
    let entry = entry.with(Phase::Failover, Status::Failed);
    let message = zone_isolation::recheck::refusal_message(shoot, refusal);
    let told = (ConditionStatus::False, refusal.reason, message);
    written(shoot, entry, told, now)
}

/// The user has requested to close the network after the refusal, or has withdrawn the request.
pub(crate) fn refused_with_request(shoot: &Shoot, zone: &str, now: &Time) -> Option<Value> {
    let entry = Entry::from_record(recorded(shoot).filter(|recorded| recorded.isolated_zone_id == zone)?);
    if (entry.phase, entry.status) != (Phase::Failover, Status::Failed) {
        return None;
    }
    let condition = find_condition(&shoot.status.as_ref()?.conditions, ZONE_ISOLATION)?;
    let message = zone_isolation::recheck::with_request(shoot, &condition.message);
    written(
        shoot,
        entry,
        (condition.status, condition.reason.as_str(), message),
        now,
    )
}

/// The present wait, as the provider reports the wait. Only while a phase is in progress.
pub(crate) fn progress(shoot: &Shoot, zone: &str, words: &str, now: &Time) -> Option<Value> {
    let entry = Entry::from_record(recorded(shoot).filter(|recorded| recorded.isolated_zone_id == zone)?);
    if entry.status != Status::InProgress {
        return None;
    }
    let (status, reason, message) = entry.describe(shoot, now);
    let words: String = words.trim_end_matches('.').chars().take(LONGEST_REPORT).collect();
    let message = if words.is_empty() {
        message
    } else {
        format!("{message} Now: {words}.")
    };
    written(shoot, entry, (status, reason, message), now)
}

/// The annotation has changed too often, so the next flow waits until this time.
pub(crate) fn delayed(shoot: &Shoot, until: Timestamp, now: &Time) -> Option<Value> {
    let entry = Entry::from_record(recorded(shoot)?);
    let message = format!(
        "Annotation shoot.gardener.cloud/isolated-zone was changed again and again while its last value was being obeyed. What it asks for \
         now begins at {}.",
        until.strftime("%Y-%m-%dT%H:%M:%SZ")
    );
    written(
        shoot,
        entry,
        (ConditionStatus::Progressing, "ChangedTooOften", message),
        now,
    )
}

/// The provider has reported the account's name of the zone.
pub(crate) fn named(shoot: &Shoot, zone: &str, name: &str, now: &Time) -> Option<Value> {
    let entry = Entry::from_record(recorded(shoot).filter(|recorded| recorded.isolated_zone_id == zone)?);
    // A failover that failed before the provider reported the name continues after all.
    let entry = match (entry.phase, entry.status) {
        (Phase::Failover, Status::Failed) if entry.name.is_none() => {
            entry.with(Phase::Failover, Status::InProgress)
        }
        _ => entry,
    };
    let entry = Entry {
        name: Some(name),
        ..entry
    };
    written(shoot, entry, entry.describe(shoot, now), now)
}

/// The user has changed the annotation, so that the reconciliation under way ends. A failover that was
/// admitted since goes on.
pub(crate) fn aborting(shoot: &Shoot, now: &Time) -> Option<Value> {
    if is_admitted(shoot) {
        return None;
    }
    let entry = Entry::from_record(recorded(shoot)?);
    let entry = match entry.status {
        Status::Pending | Status::InProgress | Status::Failed => entry.with(entry.phase, Status::Aborting),
        Status::Aborting | Status::Done => return None,
    };
    written(shoot, entry, entry.describe(shoot, now), now)
}

/// Whether the failover that the Shoot asks for now is under way with a deadline.
fn is_admitted(shoot: &Shoot) -> bool {
    asked_zone(shoot).is_some_and(|zone| has_deadline(shoot, zone))
}

/// A reconciliation has ended well, and has isolated the zone or ended the isolation. A failover that was
/// admitted since the beginning of a failback is not ended by the failback.
pub(crate) fn ended(shoot: &Shoot, cuts_off: bool, now: &Time) -> Option<Value> {
    if !cuts_off && is_admitted(shoot) {
        return None;
    }
    let phase = if cuts_off {
        Phase::Failover
    } else {
        Phase::Failback
    };
    let entry = Entry::from_record(recorded(shoot)?).with(phase, Status::Done);
    written(shoot, entry, entry.describe(shoot, now), now)
}

/// The failover has ended, and machines in other zones are not ready: `report` of the Worker.
pub(crate) fn ended_without_others(shoot: &Shoot, report: &str, now: &Time) -> Option<Value> {
    let entry = Entry::from_record(recorded(shoot)?).with(Phase::Failover, Status::Done);
    let (status, _, message) = entry.describe(shoot, now);
    let report: String = report
        .trim_end_matches('.')
        .chars()
        .take(LONGEST_REPORT)
        .collect();
    let message = format!("{message} {report}.");
    written(
        shoot,
        entry,
        (status, zone_isolation::recheck::OTHER_ZONES_NOT_READY, message),
        now,
    )
}

/// Whether the operation is tried again after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// The operation is tried again by itself.
    ByItself,
    /// The operation was given up: the retry time is over, or an error needs a change by a user.
    Never,
}

/// A reconciliation has met errors. No error of any task ends a failover that was admitted: the message
/// reports the errors, and the network of the zone is closed in the budget (RZ-32). An error of the Worker is
/// no proof about the zone, also with code `ERR_CONFIGURATION_PROBLEM`. Only [`refused`], before the
/// admission, or the user ends such a failover. Before the admission, a failover has changed no object and
/// fails with the operation.
pub(crate) fn failed(
    shoot: &Shoot,
    operation: Operation,
    errors: &[LastError],
    retry: Retry,
    now: &Time,
) -> Option<Value> {
    let entry = Entry::from_record(recorded(shoot)?);
    // A refusal, or an earlier failure, is reported already.
    let is_at_work = matches!(entry.status, Status::InProgress | Status::Aborting);
    if !matches!(operation, Operation::Create | Operation::Reconcile) || !is_at_work {
        return None;
    }
    let errors: Vec<_> = errors.iter().map(|error| error.description.as_str()).collect();
    let errors = errors.join("; ");
    // A Shoot of an older gardenlet has no deadline: the name of the zone proves the admission.
    let is_admitted = entry.is_under_way() && (entry.deadline.is_some() || entry.name.is_some());
    let ends = retry == Retry::Never && !is_admitted;
    if !ends {
        let (status, reason, message) = entry.describe(shoot, now);
        let message = format!("{message} It is tried again after: {errors}");
        return written(shoot, entry, (status, reason, message), now);
    }
    // A cancelled failover is in its failback.
    let phase = if entry.status == Status::Aborting {
        Phase::Failback
    } else {
        entry.phase
    };
    let entry = entry.with(phase, Status::Failed);
    let reason = match phase {
        Phase::Failover => "FailoverFailed",
        Phase::Failback => "FailbackFailed",
    };
    let message = format!("{} of zone {} has failed: {errors}", word(phase), entry.title());
    written(shoot, entry, (ConditionStatus::False, reason, message), now)
}

fn word(phase: Phase) -> &'static str {
    match phase {
        Phase::Failover => "The failover",
        Phase::Failback => "The failback",
    }
}

/// The patch; `None` if the status is the same already.
fn written(
    shoot: &Shoot,
    entry: Entry<'_>,
    (status, reason, message): (ConditionStatus, &str, String),
    now: &Time,
) -> Option<Value> {
    let known = shoot.status.as_ref();
    let before = known.and_then(|status| status.zone_isolation.as_ref());
    let told = known.map_or(&[][..], |status| &status.conditions);
    let mut conditions = told.to_vec();
    Condition::new(ZONE_ISOLATION, status, reason, &message, now.clone()).merge_into(&mut conditions);
    let is_same = before.map(Entry::from_record) == Some(entry);
    if is_same && conditions == told {
        return None;
    }
    let time = before
        .filter(|_| is_same)
        .map_or(now, |before| &before.last_update_time);
    Some(json!({
        "zoneIsolation": {
            "isolatedZoneID": entry.id,
            // A missing field would keep the name of the zone before.
            "isolatedZoneCode": entry.name,
            "closeDeadlineTime": entry.deadline.map(Time),
            "phase": entry.phase,
            "status": entry.status,
            "lastUpdateTime": time,
        },
        "conditions": conditions,
    }))
}

#[cfg(test)]
#[path = "zone_status_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "admission_tests.rs"]
mod admission_tests;
