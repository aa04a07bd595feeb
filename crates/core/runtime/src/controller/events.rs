//! Kubernetes Events, so that `kubectl describe` shows the course of the work.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use api::text::one_line;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client, Resource,
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use tokio::time::{Instant, sleep};

/// Characters of a note. The API refuses notes of more than 1 kB.
const NOTE_LIMIT: usize = 1000;
/// Between two sentences of a note.
const SEPARATOR: &str = "; ";

/// Pauses before further attempts to publish an Event that the API server forbids. garden-controller-manager
/// grants a seed this right in a project moments after the first Shoot of the seed appears there.
const FORBIDDEN_PAUSES: [Duration; 4] = [
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];
/// Period without such pauses in a namespace that kept to forbid an Event, so that a missing right does not
/// delay all work there.
const FORBIDDEN_PERIOD: Duration = Duration::from_secs(60);

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

/// The note with the end of the operation. A tenant writes parts of many notes, and `kubectl describe` prints
/// control characters as received. So a note is a single line: a line feed would forge further Events.
fn with_identity(note: &str) -> String {
    let note = one_line(note);
    let identity = IDENTITY.try_with(Clone::clone).unwrap_or_default();
    let room = NOTE_LIMIT - identity.chars().count();
    note.chars().take(room).chain(identity.chars()).collect()
}

/// Publishes Events in a cluster under the name of the process. A lost Event never fails the work.
#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
    /// The times until which an Event is attempted only once, by namespace.
    forbidden: Arc<Mutex<HashMap<String, Instant>>>,
}

impl Events {
    /// Events of this process in the given cluster.
    #[must_use]
    pub fn new(client: Client, process: &str) -> Self {
        Self::reported(client, process, None)
    }

    /// Events in the garden of a process of a seed. `user` is the user of the seed in the garden: policy
    /// `gardenlet-event` asks for this user in `reportingInstance`, so that no seed rewrites Events of a
    /// different process.
    #[must_use]
    pub fn of_seed(garden: Client, process: &str, user: String) -> Self {
        Self::reported(garden, process, Some(user))
    }

    fn reported(client: Client, process: &str, instance: Option<String>) -> Self {
        let reporter = Reporter {
            controller: process.to_owned(),
            instance,
        };
        Self {
            recorder: Recorder::new(client, reporter),
            forbidden: Arc::default(),
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
        let published = self.publish_when_permitted(&event, &object.object_ref(&())).await;
        match published {
            Err(error) if is_forbidden(&error) => {
                tracing::info!(%error, reason, note = event.note, "the API server forbids an Event");
            }
            Err(error) => tracing::debug!(%error, reason, "an event could not be published"),
            Ok(()) => {}
        }
    }

    /// Repeats a forbidden attempt, and gives up after some seconds: the log then has the note of the Event.
    async fn publish_when_permitted(
        &self,
        event: &Event,
        reference: &ObjectReference,
    ) -> Result<(), kube::Error> {
        let namespace = reference.namespace.as_deref().unwrap_or_default();
        let mut pauses = FORBIDDEN_PAUSES.into_iter();
        loop {
            let published = self.recorder.publish(event, reference).await;
            if !published.as_ref().is_err_and(is_forbidden) || self.is_without_pauses(namespace) {
                return published;
            }
            let Some(pause) = pauses.next() else {
                self.stop_pauses(namespace);
                return published;
            };
            sleep(pause).await;
        }
    }

    fn is_without_pauses(&self, namespace: &str) -> bool {
        let forbidden = self.forbidden.lock().unwrap_or_else(PoisonError::into_inner);
        forbidden
            .get(namespace)
            .is_some_and(|until| *until > Instant::now())
    }

    fn stop_pauses(&self, namespace: &str) {
        let now = Instant::now();
        let mut forbidden = self.forbidden.lock().unwrap_or_else(PoisonError::into_inner);
        forbidden.retain(|_, until| *until > now);
        forbidden.insert(namespace.to_owned(), now + FORBIDDEN_PERIOD);
    }
}

/// Whether the user has no right to create Events there. A namespace in deletion forbids Events with other
/// words, and for good.
fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403 && status.message.contains("cannot create resource"))
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
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]

    use std::sync::atomic::{AtomicU32, Ordering};

    use http::{Request, Response};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::client::Body;
    use tower::service_fn;

    use super::*;

    /// A cluster that answers the first attempts with 403 and this message, and counts all attempts.
    fn refusing(first: u32, message: &'static str) -> (Events, Arc<AtomicU32>) {
        let attempts: Arc<AtomicU32> = Arc::default();
        let counted = Arc::clone(&attempts);
        let answer = move |request: Request<Body>| {
            let attempt = counted.fetch_add(1, Ordering::SeqCst);
            async move {
                if attempt >= first {
                    let event = request.into_body().collect_bytes().await.unwrap();
                    return Ok::<_, std::io::Error>(Response::new(Body::from(event.to_vec())));
                }
                let status = serde_json::json!({"kind": "Status", "status": "Failure", "reason": "Forbidden",
                    "message": message, "code": 403});
                let body = Body::from(status.to_string().into_bytes());
                Ok(Response::builder().status(403).body(body).unwrap())
            }
        };
        (
            Events::new(Client::new(service_fn(answer), "ns"), "test"),
            attempts,
        )
    }

    fn object(namespace: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.name = Some("x".to_owned());
        object.metadata.namespace = Some(namespace.to_owned());
        object
    }

    const WITHOUT_RIGHT: &str =
        r#"User "seed" cannot create resource "events" in the namespace "garden-dev""#;

    /// The first Event of a shoot may come before the right of the seed.
    #[tokio::test(start_paused = true)]
    async fn an_event_before_the_right_is_published_when_the_right_is_there() {
        let (events, attempts) = refusing(3, WITHOUT_RIGHT);
        events.normal(&object("garden-dev"), "Started", "started").await;
        assert_eq!(attempts.load(Ordering::SeqCst), 4);
        events.normal(&object("garden-dev"), "Ended", "ended").await;
        assert_eq!(attempts.load(Ordering::SeqCst), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_right_delays_the_work_of_a_namespace_once_a_minute() {
        let (events, attempts) = refusing(u32::MAX, WITHOUT_RIGHT);
        let most = u32::try_from(FORBIDDEN_PAUSES.len()).unwrap() + 1;
        let begun = Instant::now();
        events.normal(&object("a"), "One", "one").await;
        assert!(begun.elapsed() < Duration::from_secs(5));
        events.normal(&object("a"), "Two", "two").await;
        assert_eq!(attempts.load(Ordering::SeqCst), most + 1);
        events.normal(&object("b"), "One", "one").await;
        assert_eq!(attempts.load(Ordering::SeqCst), 2 * most + 1, "another namespace");
        tokio::time::advance(FORBIDDEN_PERIOD).await;
        events.normal(&object("a"), "Three", "three").await;
        assert_eq!(attempts.load(Ordering::SeqCst), 3 * most + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_in_deletion_gets_one_attempt() {
        let (events, attempts) = refusing(u32::MAX, "the namespace is being terminated");
        events.normal(&object("a"), "One", "one").await;
        assert_eq!(attempts.load(Ordering::SeqCst), 1);
    }

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

    #[tokio::test]
    async fn a_note_is_a_single_line_within_the_limit() {
        let forged = with_identity("type x\n  Warning  DataLost \u{1b}[2K\u{202e}\r\t");
        assert_eq!(
            forged,
            "type x\\u{a}  Warning  DataLost \\u{1b}[2K\\u{202e}\\u{d}\\u{9}"
        );
        let long = in_operation("u-3", 2, async { with_identity(&"\n".repeat(2000)) }).await;
        assert_eq!(long.chars().count(), NOTE_LIMIT);
        assert!(long.ends_with("(operation u-3, epoch 2)"), "{long}");
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
