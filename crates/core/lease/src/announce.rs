//! Events on the Lease when the holder changes, with client-go's reason and text.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};

use crate::lock::Lock;

const REASON: &str = "LeaderElection";

/// Publishes Events for changes of a single lock. A lost Event never fails or delays the election.
pub(crate) struct Announcer {
    recorder: Recorder,
    lease: ObjectReference,
    identity: String,
    timeout: Duration,
}

impl Announcer {
    pub(crate) fn new(lock: &Lock, timeout: Duration) -> Self {
        let Lock {
            client,
            namespace,
            name,
            identity,
            ..
        } = lock;
        let reporter = Reporter {
            controller: name.clone(),
            // The API allows 128 characters.
            instance: Some(identity.chars().take(128).collect()),
        };
        Self {
            recorder: Recorder::new(client.clone(), reporter),
            lease: ObjectReference {
                api_version: Some("coordination.k8s.io/v1".to_owned()),
                kind: Some("Lease".to_owned()),
                namespace: Some(namespace.clone()),
                name: Some(name.clone()),
                ..ObjectReference::default()
            },
            identity: identity.clone(),
            timeout,
        }
    }

    pub(crate) async fn became_leader(&self) {
        self.publish("BecomeLeader", "became leader").await;
    }

    pub(crate) async fn stopped_leading(&self) {
        self.publish("StopLeading", "stopped leading").await;
    }

    /// The actions must differ, because the recorder merges Events with the same reason and action.
    async fn publish(&self, action: &str, words: &str) {
        let event = Event {
            type_: EventType::Normal,
            reason: REASON.to_owned(),
            note: Some(format!("{} {words}", self.identity)),
            action: action.to_owned(),
            secondary: None,
        };
        match tokio::time::timeout(self.timeout, self.recorder.publish(&event, &self.lease)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, action, "an event could not be published"),
            Err(_) => tracing::debug!(action, "an event could not be published in time"),
        }
    }
}
