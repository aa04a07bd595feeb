//! Conditions of Gardener's kinds: like those of Kubernetes, with an update time, a fourth status and error
//! codes.

use super::ErrorCode;
use crate::{
    derive::{Deserialize, JsonSchema, Serialize, Time},
    text::one_line,
};

/// A condition of an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type of the condition, e.g. `APIServerAvailable`.
    pub type_: String,
    /// Status of the condition: `True`, `False`, `Unknown` or `Progressing`.
    pub status: ConditionStatus,
    /// When `status` last changed.
    #[serde(deserialize_with = "crate::meta::time::writable")]
    pub last_transition_time: Time,
    /// Time at which a check last changed any field of the condition.
    #[serde(deserialize_with = "crate::meta::time::writable")]
    pub last_update_time: Time,
    /// Reason of the status, as a single CamelCase word for programs.
    pub reason: String,
    /// Explanation of the status, for people.
    pub message: String,
    /// Well-known causes, if such a cause is the reason that the condition does not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<ErrorCode>,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The status could not be determined.
    Unknown,
    /// The condition does not hold now, and is expected to hold soon without an action of a user.
    Progressing,
}

impl Condition {
    /// A condition as of `now`. A tenant writes parts of many messages, so the message becomes a single line.
    #[must_use]
    pub fn new(type_: &str, status: ConditionStatus, reason: &str, message: &str, now: Time) -> Self {
        Self {
            type_: type_.to_owned(),
            status,
            last_transition_time: now.clone(),
            last_update_time: now,
            reason: reason.to_owned(),
            message: one_line(message).into_owned(),
            codes: Vec::new(),
        }
    }

    /// Puts `self` into `conditions`: keeps the transition time while the status stays the same, and keeps
    /// the whole old condition when only times differ, so that a repeated observation causes no write.
    pub fn merge_into(mut self, conditions: &mut Vec<Condition>) {
        let Some(old) = conditions.iter_mut().find(|c| c.type_ == self.type_) else {
            conditions.push(self);
            return;
        };
        if old.status == self.status {
            if old.reason == self.reason && old.message == self.message && old.codes == self.codes {
                return;
            }
            self.last_transition_time = old.last_transition_time.clone();
        }
        *old = self;
    }
}

/// The condition of that type, if present.
#[must_use]
pub fn find_condition<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.type_ == type_)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_message_is_a_single_line() {
        let now = Time(Timestamp::UNIX_EPOCH);
        let condition = Condition::new("T", ConditionStatus::False, "R", "type a\n\u{1b}b", now);
        assert_eq!(condition.message, "type a\\u{a}\\u{1b}b");
    }
}
