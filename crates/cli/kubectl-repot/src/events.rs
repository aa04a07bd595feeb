//! Events of an object, as far as the caller may read Events.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::{Api, api::ListParams};
use runtime::client::Cluster;

use crate::{failure::Failure, session::Session};

/// Events that an answer of the garden may have.
const MOST: u32 = 500;
/// The process that decides about takeovers.
const GARDEN: &str = "garden-controller-manager";

/// The Events of the object with this uid, the oldest first.
pub async fn events(session: &Session, namespace: &str, uid: &str) -> Result<Vec<Event>, Failure> {
    list(session, namespace, &format!("involvedObject.uid={uid}")).await
}

/// As [`events`], of garden-controller-manager alone: many Events of further reporters push no answer out.
pub async fn events_of_garden(session: &Session, namespace: &str, uid: &str) -> Result<Vec<Event>, Failure> {
    let fields = format!("involvedObject.uid={uid},reportingComponent={GARDEN}");
    list(session, namespace, &fields).await
}

async fn list(session: &Session, namespace: &str, fields: &str) -> Result<Vec<Event>, Failure> {
    let events: Api<Event> = session.garden().namespaced(namespace);
    let about = ListParams::default().fields(fields).limit(MOST);
    let doing = format!("Events in namespace {namespace} cannot be listed");
    let list = Box::pin(session.request(&doing, events.list(&about))).await?;
    let mut events = list.items;
    events.sort_by_key(time);
    Ok(events)
}

/// The time of the last occurrence.
#[must_use]
pub fn time(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref();
    let observed = series.and_then(|series| series.last_observed_time.as_ref());
    observed
        .or(event.event_time.as_ref())
        .map(|time| time.0)
        .or_else(|| event.last_timestamp.as_ref().map(|time| time.0))
}

/// The newest sentence of garden-controller-manager with any of the reasons since this time, among Events in
/// the order of [`events`]. Events of further reporters do not count: a seed or a member of the project may
/// write Events, but decides no takeover. Policy `project-event` keeps the name of the reporter for the
/// process.
#[must_use]
pub fn newest<'a>(events: &'a [Event], reasons: &[&str], since: Timestamp) -> Option<&'a str> {
    let is_answer = |event: &&Event| {
        event.reporting_component.as_deref() == Some(GARDEN)
            && event
                .reason
                .as_deref()
                .is_some_and(|reason| reasons.contains(&reason))
            && time(event).is_some_and(|time| time >= since)
    };
    events.iter().rev().find(is_answer)?.message.as_deref()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn event(yaml: &str) -> Event {
        serde_yaml_ng::from_str(yaml).unwrap()
    }

    #[test]
    fn the_newest_event_of_the_garden_since_the_request_counts() {
        let mut all = vec![
            event(
                "{metadata: {}, involvedObject: {}, reportingComponent: garden-controller-manager, reason: A, message: new, \
                 eventTime: 2026-01-01T00:00:02.000000Z}",
            ),
            event(
                "{metadata: {}, involvedObject: {}, reportingComponent: garden-controller-manager, reason: A, message: old, \
                 lastTimestamp: 2026-01-01T00:00:01Z}",
            ),
            event(
                "{metadata: {}, involvedObject: {}, reportingComponent: gardenlet, reason: A, message: forged, \
                 lastTimestamp: 2026-01-01T00:00:03Z}",
            ),
        ];
        all.sort_by_key(time);
        let at = |second: i64| Timestamp::from_second(1_767_225_600 + second).unwrap();
        assert_eq!(newest(&all, &["A"], at(0)), Some("new"));
        assert_eq!(newest(&all, &["A", "C"], at(2)), Some("new"));
        assert_eq!(newest(&all, &["A"], at(3)), None);
        assert_eq!(newest(&all, &["C"], at(0)), None);
    }
}
