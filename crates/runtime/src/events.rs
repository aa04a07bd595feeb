//! Kubernetes Events, so that `kubectl describe` tells the story.

use kube::{
    Client, Resource,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

/// Publishes Events in one cluster under the process's name. Losing an Event never fails the work it tells of.
#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
}

impl Events {
    /// Events of this process in the given cluster.
    #[must_use]
    pub fn new(client: Client, process: &str) -> Self {
        Self {
            recorder: Recorder::new(
                client,
                Reporter {
                    controller: process.to_owned(),
                    instance: None,
                },
            ),
        }
    }

    /// Something went as wanted. `reason` is one CamelCase word, `note` a sentence without secrets.
    pub async fn normal<K: Resource<DynamicType = ()>>(&self, object: &K, reason: &str, note: &str) {
        self.publish(object, EventType::Normal, reason, note).await;
    }

    /// Something needs attention.
    pub async fn warning<K: Resource<DynamicType = ()>>(&self, object: &K, reason: &str, note: &str) {
        self.publish(object, EventType::Warning, reason, note).await;
    }

    async fn publish<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        type_: EventType,
        reason: &str,
        note: &str,
    ) {
        // The API refuses notes of more than 1 kB.
        let note: String = note.chars().take(1000).collect();
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(note),
            action: reason.to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, &object.object_ref(&())).await {
            tracing::debug!(%error, reason, "an event could not be published");
        }
    }
}
