//! Events of an object, as far as the caller may read Events.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::{Api, Resource, api::ListParams, core::Request};
use runtime::client::Cluster;
use serde_json::Value;

use crate::{failure::Failure, session::Session};

/// Events that an answer of the garden may have.
const MOST: u32 = 500;
/// The process that decides about takeovers.
const GARDEN: &str = "garden-controller-manager";

/// Reporters with an own list. Many Events of a member push no Event of these processes out.
const PROCESSES: [&str; 2] = [GARDEN, "gardenlet"];

/// Events as the garden stores the Events. A member of the project may write times that no type takes.
pub struct RawEvents {
    /// The Events in the order of names.
    pub items: Vec<Value>,
    /// Whether the garden has further Events.
    pub is_cut: bool,
}

/// The Events of the object with this uid: of garden-controller-manager, of gardenlets, and of further
/// reporters.
pub async fn raw_events(session: &Session, namespace: &str, uid: &str) -> Vec<Result<RawEvents, Failure>> {
    let mut lists = Vec::new();
    for fields in selectors(uid) {
        lists.push(Box::pin(list_raw(session, namespace, &fields)).await);
    }
    lists
}

fn selectors(uid: &str) -> Vec<String> {
    let about = format!("involvedObject.uid={uid}");
    let others = PROCESSES.map(|process| format!("reportingComponent!={process}"));
    let lists = PROCESSES.map(|process| format!("{about},reportingComponent={process}"));
    let others = format!("{about},{}", others.join(","));
    lists.into_iter().chain([others]).collect()
}

async fn list_raw(session: &Session, namespace: &str, fields: &str) -> Result<RawEvents, Failure> {
    let about = ListParams::default().fields(fields).limit(MOST);
    let read = async {
        let request = Request::new(Event::url_path(&(), Some(namespace))).list(&about);
        let request = request.map_err(kube::Error::BuildRequest)?;
        session.garden().client().request::<Value>(request).await
    };
    let doing = format!("Events in namespace {namespace} cannot be listed");
    let mut list = Box::pin(session.request(&doing, read)).await?;
    let more = list.pointer("/metadata/continue").and_then(Value::as_str);
    let is_cut = more.is_some_and(|token| !token.is_empty());
    let items = match list.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    Ok(RawEvents { items, is_cut })
}

/// The Events of garden-controller-manager about the object with this uid, the oldest first. Many Events of
/// further reporters push no answer out.
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
/// the order of [`events_of_garden`]. Events of further reporters do not count: a seed or a member of the
/// project may write Events, but decides no takeover. Policy `project-event` keeps the name of the reporter
/// for the process.
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
    fn events_of_a_member_are_a_list_of_their_own() {
        let expected = [
            "involvedObject.uid=u,reportingComponent=garden-controller-manager",
            "involvedObject.uid=u,reportingComponent=gardenlet",
            "involvedObject.uid=u,reportingComponent!=garden-controller-manager,reportingComponent!=gardenlet",
        ];
        assert_eq!(selectors("u"), expected);
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
