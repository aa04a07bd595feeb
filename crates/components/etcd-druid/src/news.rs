//! The Events of an Etcd, derived from two successive statuses.

use api::{
    constants::condition::{DATA_COMPLETE, NO_SPACE},
    druid::{EtcdCondition, EtcdStatus},
};

use crate::status::condition::READY;

/// An Event.
#[derive(Debug, PartialEq, Eq)]
pub struct News {
    /// Whether people should act.
    pub is_warning: bool,
    /// Reason of the Event.
    pub reason: &'static str,
    /// Message of the Event.
    pub note: String,
}

/// The Events of the change between two statuses.
#[must_use]
pub fn between(before: Option<&EtcdStatus>, after: &EtcdStatus) -> Vec<News> {
    let old = |type_: &str| before.and_then(|status| find(status, type_));
    let mut news = Vec::new();
    let refuses = |condition: Option<&EtcdCondition>| condition.is_some_and(|ready| ready.reason == NO_SPACE);
    let (was, is) = (old(READY), find(after, READY));
    if let Some(ready) = is.filter(|_| refuses(is) && !refuses(was)) {
        news.push(News {
            is_warning: true,
            reason: NO_SPACE,
            note: ready.message.clone(),
        });
    }
    if is.is_some_and(|ready| ready.status == "True") && refuses(was) {
        news.push(News {
            is_warning: false,
            reason: "SpaceFreed",
            note: "etcd accepts writes again: alarm NOSPACE is disarmed.".to_owned(),
        });
    }
    let lost = find(after, DATA_COMPLETE).map(|lost| &lost.message);
    if let Some(lost) = lost.filter(|lost| old(DATA_COMPLETE).is_none_or(|told| told.message != **lost)) {
        news.push(News {
            is_warning: true,
            reason: "DataLost",
            note: lost.clone(),
        });
    }
    news
}

fn find<'a>(status: &'a EtcdStatus, type_: &str) -> Option<&'a EtcdCondition> {
    status
        .conditions
        .iter()
        .find(|condition| condition.type_ == type_)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn status(conditions: &[(&str, &str, &str, &str)]) -> EtcdStatus {
        let time = "2026-01-01T00:00:00Z";
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(type_, status, reason, message)| {
                json!({"type": type_, "status": status, "reason": reason, "message": message,
                    "lastTransitionTime": time, "lastUpdateTime": time})
            })
            .collect();
        serde_json::from_value(json!({ "conditions": conditions })).unwrap()
    }

    fn reasons(before: Option<&EtcdStatus>, after: &EtcdStatus) -> Vec<&'static str> {
        between(before, after).iter().map(|news| news.reason).collect()
    }

    #[test]
    fn a_refusal_of_writes_its_end_and_each_loss_are_reported_once() {
        let serves = ("Ready", "True", "Quorate", "m");
        let full = status(&[("Ready", "False", "NoSpace", "m")]);
        assert_eq!(reasons(Some(&status(&[serves])), &full), ["NoSpace"]);
        assert!(reasons(Some(&full), &full).is_empty());
        assert_eq!(reasons(Some(&full), &status(&[serves])), ["SpaceFreed"]);
        let down = status(&[("Ready", "False", "QuorumLost", "m")]);
        assert!(reasons(Some(&full), &down).is_empty());

        let lost = |message| status(&[serves, ("DataComplete", "False", "VolumeLost", message)]);
        assert_eq!(reasons(None, &lost("a")), ["DataLost"]);
        assert!(reasons(Some(&lost("a")), &lost("a")).is_empty());
        assert_eq!(reasons(Some(&lost("a")), &lost("b")), ["DataLost"]);
        assert!(reasons(Some(&lost("a")), &status(&[serves])).is_empty());
    }
}
