//! The status of a ManagedResource, as a pure function of results and observations.

use api::{
    meta::{Condition, ConditionStatus},
    resources::{ManagedResource, ManagedResourceStatusObject},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::{object::Key, watches::State};

/// Condition: all objects are applied as wanted.
pub const APPLIED: &str = "ResourcesApplied";
/// Condition: all objects are healthy.
pub const HEALTHY: &str = "ResourcesHealthy";
/// Condition: a part of the last change is still pending.
pub const PROGRESSING: &str = "ResourcesProgressing";

/// Objects that a condition names. All objects may be too long for a condition.
const NAMED: usize = 5;
/// Maximum characters for a single object. The owner of the shoot can write some of the text.
const LONGEST: usize = 400;

/// The content of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Status of the condition.
    pub status: ConditionStatus,
    /// Reason of the condition, a single word.
    pub reason: String,
    /// Message of the condition.
    pub message: String,
}

impl Verdict {
    /// The content of a condition.
    #[must_use]
    pub fn new(status: ConditionStatus, reason: &str, message: impl Into<String>) -> Self {
        Self {
            status,
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    /// [`APPLIED`]: all objects are as wanted.
    #[must_use]
    pub fn all_applied() -> Self {
        Self::new(
            ConditionStatus::True,
            "ApplySucceeded",
            "All resources are applied.",
        )
    }
}

/// The changes of a status. A `None` field stays unchanged.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// [`APPLIED`].
    pub applied: Option<Verdict>,
    /// [`HEALTHY`].
    pub healthy: Option<Verdict>,
    /// [`PROGRESSING`].
    pub progressing: Option<Verdict>,
    /// All objects.
    pub resources: Option<Vec<Key>>,
    /// Checksum of the Secrets.
    pub checksum: Option<String>,
    /// The generation that was processed.
    pub observed: Option<i64>,
}

/// The status to write; `None` if the status is unchanged. A field that stays unchanged is not written:
/// `resource` may be older than the last report of this process.
#[must_use]
pub fn body(resource: &ManagedResource, report: Report, now: &Time) -> Option<Value> {
    let before = resource.status.clone().unwrap_or_default();
    let mut after = before.clone();
    for (type_, verdict) in [
        (APPLIED, report.applied),
        (HEALTHY, report.healthy),
        (PROGRESSING, report.progressing),
    ] {
        if let Some(Verdict {
            status,
            reason,
            message,
        }) = verdict
        {
            Condition::new(type_, status, &reason, &message, now.clone()).merge_into(&mut after.conditions);
        }
    }
    let mut changes = json!({});
    if let Some(mut keys) = report.resources {
        keys.sort();
        keys.dedup_by(|one, other| one.identity() == other.identity());
        after.resources = keys.iter().map(Key::to_status).collect();
        // A list is written as a whole, also when empty.
        changes["resources"] = json!(after.resources);
    }
    if let Some(checksum) = report.checksum {
        changes["secretsDataChecksum"] = json!(checksum);
        after.secrets_data_checksum = Some(checksum);
    }
    if let Some(generation) = report.observed {
        changes["observedGeneration"] = json!(generation);
        after.observed_generation = Some(generation);
    }
    changes["conditions"] = json!(after.conditions);
    (after != before).then_some(changes)
}

/// The objects of a status.
#[must_use]
pub fn keys(resource: &ManagedResource) -> Vec<Key> {
    let objects = resource.status.iter().flat_map(|status| &status.resources);
    objects
        .filter_map(|object: &ManagedResourceStatusObject| Key::of_status(object))
        .collect()
}

/// The first sentences, and the number of the remaining sentences.
#[must_use]
pub fn some(sentences: &[String]) -> String {
    let shown: Vec<String> = sentences
        .iter()
        .take(NAMED)
        .map(|sentence| sentence.chars().take(LONGEST).collect())
        .collect();
    let text = shown.join("; ");
    match sentences.len().saturating_sub(NAMED) {
        0 => text,
        more => format!("{text}; and {more} more"),
    }
}

/// The verdicts for [`HEALTHY`] and [`PROGRESSING`] of objects.
#[must_use]
pub fn judged<'a>(objects: impl Iterator<Item = (&'a Key, State)>) -> (Verdict, Verdict) {
    let (mut wrong, mut unknown, mut pending, mut rolls) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut reason, mut rolling) = (None, None);
    for (key, state) in objects {
        match state {
            State::Seen(health) => {
                if let Some(why) = health.wrong {
                    reason.get_or_insert_with(|| format!("{}Unhealthy", key.kind));
                    wrong.push(format!("{key}: {why}"));
                }
                if let Some(why) = health.rolls {
                    rolling.get_or_insert_with(|| format!("{}Progressing", key.kind));
                    rolls.push(format!("{key}: {why}"));
                }
            }
            State::Missing => {
                reason.get_or_insert_with(|| format!("{}Missing", key.kind));
                wrong.push(format!("{key} is not there"));
            }
            State::Pending => pending.push(format!("{key} was not seen yet")),
            State::Unknown(why) => unknown.push(format!("{key}: {why}")),
        }
    }
    let healthy = if let Some(reason) = reason {
        Verdict::new(ConditionStatus::False, &reason, some(&wrong))
    } else if !unknown.is_empty() {
        Verdict::new(ConditionStatus::Unknown, "ChecksFailed", some(&unknown))
    } else if !pending.is_empty() {
        Verdict::new(ConditionStatus::Progressing, "ChecksPending", some(&pending))
    } else {
        Verdict::new(
            ConditionStatus::True,
            "ResourcesHealthy",
            "All resources are healthy.",
        )
    };
    let progressing = match rolling {
        Some(reason) => Verdict::new(ConditionStatus::True, &reason, some(&rolls)),
        None if unknown.is_empty() && pending.is_empty() => Verdict::new(
            ConditionStatus::False,
            "ResourcesRolledOut",
            "All resources have been fully rolled out.",
        ),
        None => Verdict::new(
            ConditionStatus::Unknown,
            "ChecksPending",
            "Not all resources were seen yet.",
        ),
    };
    (healthy, progressing)
}

/// The report for a cluster that does not answer.
#[must_use]
pub fn away(why: &str) -> Report {
    let verdict = |status| Some(Verdict::new(status, "TargetUnavailable", why));
    Report {
        applied: verdict(ConditionStatus::False),
        healthy: verdict(ConditionStatus::Unknown),
        progressing: verdict(ConditionStatus::Unknown),
        ..Report::default()
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
