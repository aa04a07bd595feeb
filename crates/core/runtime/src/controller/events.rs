//! Kubernetes Events, so that `kubectl describe` shows the course of the work.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use kube::{
    Client, Resource,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

/// Characters of a note. The API refuses notes of more than 1 kB.
const NOTE_LIMIT: usize = 1000;
/// Between two sentences of a note.
const SEPARATOR: &str = "; ";

/// Characters that the identity of an operation takes at most at the end of a note.
const IDENTITY_LIMIT: usize = 100;

tokio::task_local! {
    /// The end of the notes of the operation that this task works on.
    static IDENTITY: String;
}

/// Runs work whose Events name the operation and the ownership epoch, as the log lines of the work do.
pub async fn in_operation<F: Future>(id: &str, epoch: i64, work: F) -> F::Output {
    let identity = format!(" (operation {id}, epoch {epoch})");
    let identity = identity.chars().take(IDENTITY_LIMIT).collect();
    IDENTITY.scope(identity, work).await
}

fn with_identity(note: &str) -> String {
    let identity = IDENTITY.try_with(Clone::clone).unwrap_or_default();
    let room = NOTE_LIMIT - identity.chars().count();
    note.chars().take(room).chain(identity.chars()).collect()
}

/// Publishes Events in a cluster under the name of the process. A lost Event never fails the work.
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

    /// Reports success. `reason` is a single CamelCase word, `note` a sentence without secrets.
    pub async fn normal<K: Resource<DynamicType = ()>>(&self, object: &K, reason: &str, note: &str) {
        self.publish(object, EventType::Normal, (reason, reason), note)
            .await;
    }

    /// Reports a problem that needs attention.
    pub async fn warning<K: Resource<DynamicType = ()>>(&self, object: &K, reason: &str, note: &str) {
        self.publish(object, EventType::Warning, (reason, reason), note)
            .await;
    }

    /// As [`Self::warning`], in answer to a request. The API server counts Events with the same reason and
    /// action in the first Event, and keeps the first note. So the action is derived from the note, and a
    /// later answer with a new note is published too.
    pub async fn answer_with_warning<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        reason: &str,
        note: &str,
    ) {
        let action = action_of(reason, note);
        self.publish(object, EventType::Warning, (reason, &action), note)
            .await;
    }

    /// As [`Self::answer_with_warning`], for any number of sentences: in as few Events as the limit of a note
    /// allows.
    pub async fn warnings<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        reason: &str,
        sentences: &[String],
    ) {
        for note in notes_of(sentences) {
            self.answer_with_warning(object, reason, &note).await;
        }
    }

    async fn publish<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        type_: EventType,
        (reason, action): (&str, &str),
        note: &str,
    ) {
        let note = with_identity(note);
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(note),
            action: action.to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, &object.object_ref(&())).await {
            tracing::debug!(%error, reason, "an event could not be published");
        }
    }
}

/// Joins sentences to notes below the limit. No sentence is divided, so that each name is complete within a
/// note.
fn notes_of(sentences: &[String]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for sentence in sentences {
        match notes.last_mut() {
            Some(note) if note.len() + SEPARATOR.len() + sentence.len() <= NOTE_LIMIT - IDENTITY_LIMIT => {
                note.push_str(SEPARATOR);
                note.push_str(sentence);
            }
            _ => notes.push(sentence.clone()),
        }
    }
    notes
}

fn action_of(reason: &str, note: &str) -> String {
    let mut hasher = DefaultHasher::new();
    note.hash(&mut hasher);
    format!("{reason}-{:x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sentence_is_whole_in_one_note() {
        let sentences: Vec<_> = (0..30)
            .map(|n| format!("machine m-{n:02} {}", "x".repeat(90)))
            .collect();
        let notes = notes_of(&sentences);
        assert_eq!(notes.len(), 4);
        assert!(notes.iter().all(|note| note.len() <= NOTE_LIMIT));
        assert_eq!(notes.join(SEPARATOR), sentences.join(SEPARATOR));
        assert!(notes_of(&[]).is_empty());
    }

    #[tokio::test]
    async fn a_note_of_an_operation_names_the_operation_and_the_epoch_within_the_limit() {
        assert_eq!(with_identity("began"), "began");
        let short = in_operation("u-3", 2, async { with_identity("began") }).await;
        assert_eq!(short, "began (operation u-3, epoch 2)");
        let long = in_operation("u-3", 2, async { with_identity(&"x".repeat(2000)) }).await;
        assert_eq!(long.chars().count(), NOTE_LIMIT);
        assert!(long.ends_with("x (operation u-3, epoch 2)"), "{long}");
    }

    /// The API refuses actions of more than 128 characters.
    #[test]
    fn answers_with_other_notes_have_other_actions() {
        let reason = "ForceRestoreRefused";
        let actions = ["the source lives", "the shoot is being deleted"].map(|note| action_of(reason, note));
        assert_ne!(actions[0], actions[1]);
        assert_eq!(actions[0], action_of(reason, "the source lives"));
        assert!(
            actions
                .iter()
                .all(|action| action.len() < 128 && action.starts_with(reason))
        );
    }
}
