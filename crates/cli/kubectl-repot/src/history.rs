//! The duration of former moves, by the Events of gardenlets. The garden keeps Events for an hour by default.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::{Api, api::ListParams};
use runtime::client::Cluster;
use serde::Serialize;

use crate::{age::span, events::time, failure::Failure, session::Session};

/// Reason of the Event at the begin of a move.
const BEGIN: &str = "Migrating";
/// Reason of the Event at the end of a move.
const END: &str = "Restored";
/// The process that reports the begin and the end. Members of a project may write Events in the name of
/// processes outside the suite (policy `project-event`).
const REPORTER: &str = "gardenlet";
/// Events that an answer of the garden may have.
const MOST: u32 = 500;

/// The duration of former moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FormerMoves {
    /// The median in seconds.
    pub median_seconds: i64,
    /// How many moves were measured.
    pub count: usize,
}

impl FormerMoves {
    /// The duration of a single move as text.
    #[must_use]
    pub fn describe(self) -> String {
        format!(
            "{} (median of {} former moves)",
            span(self.median_seconds),
            self.count
        )
    }
}

/// Reads the duration of former moves. `None`: no Event of a former move exists, or the caller may not read
/// Events.
pub async fn former_moves(session: &Session) -> Option<FormerMoves> {
    let mut events = Vec::new();
    for reason in [BEGIN, END] {
        events.extend(Box::pin(list(session, reason)).await.ok()?);
    }
    measure(&events)
}

async fn list(session: &Session, reason: &str) -> Result<Vec<Event>, Failure> {
    let events: Api<Event> = session.garden().all();
    let query = ListParams::default()
        .fields(&format!(
            "involvedObject.kind=Shoot,reason={reason},reportingComponent={REPORTER}"
        ))
        .limit(MOST);
    let doing = "the Events of all namespaces cannot be listed";
    let list = Box::pin(session.request(doing, events.list(&query))).await?;
    Ok(list.items)
}

/// The median over the last complete move of each shoot, by the Events of gardenlets.
fn measure(events: &[Event]) -> Option<FormerMoves> {
    let mut begins: BTreeMap<&str, Vec<Timestamp>> = BTreeMap::new();
    let mut ends: BTreeMap<&str, Timestamp> = BTreeMap::new();
    let is_of_gardenlet = |event: &&Event| event.reporting_component.as_deref() == Some(REPORTER);
    for event in events.iter().filter(is_of_gardenlet) {
        let (Some(uid), Some(at)) = (event.involved_object.uid.as_deref(), time(event)) else {
            continue;
        };
        match event.reason.as_deref() {
            Some(BEGIN) => begins.entry(uid).or_default().push(at),
            Some(END) => {
                let latest = ends.entry(uid).or_insert(at);
                *latest = at.max(*latest);
            }
            _ => {}
        }
    }
    let mut seconds: Vec<i64> = Vec::new();
    for (uid, end) in ends {
        let before = begins
            .get(uid)
            .into_iter()
            .flatten()
            .filter(|begin| **begin <= end);
        seconds.extend(before.max().map(|begin| end.duration_since(*begin).as_secs()));
    }
    seconds.sort_unstable();
    Some(FormerMoves {
        median_seconds: *seconds.get(seconds.len() / 2)?,
        count: seconds.len(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn event(uid: &str, reason: &str, second: u32) -> Event {
        serde_yaml_ng::from_str(&format!(
            "{{metadata: {{}}, involvedObject: {{uid: {uid}}}, reason: {reason}, reportingComponent: gardenlet, \
             eventTime: '2026-01-01T00:00:{second:02}.000000Z'}}"
        ))
        .unwrap()
    }

    /// Otherwise a member of a project chooses the duration that a plan shows.
    #[test]
    fn only_the_events_of_gardenlets_count() {
        let by = |reporter: Option<&str>| {
            [event("a", BEGIN, 0), event("a", END, 30)].map(|mut event| {
                event.reporting_component = reporter.map(str::to_owned);
                event
            })
        };
        assert!(measure(&by(Some("gardenlet"))).is_some());
        for other in [None, Some("kubectl"), Some("garden-controller-manager")] {
            assert_eq!(measure(&by(other)), None, "{other:?}");
        }
    }

    #[test]
    fn the_last_complete_move_of_each_shoot_counts() {
        let events = [
            event("a", BEGIN, 0),
            event("a", BEGIN, 10),
            event("a", END, 30),
            // A second move of the shoot has not ended.
            event("a", BEGIN, 40),
            event("b", BEGIN, 0),
            event("b", END, 50),
            event("c", BEGIN, 0),
        ];
        let measured = measure(&events).unwrap();
        assert_eq!((measured.median_seconds, measured.count), (50, 2));
        assert_eq!(measure(&events[..2]), None);
    }
}
