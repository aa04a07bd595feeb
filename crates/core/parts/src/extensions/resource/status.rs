//! Evaluates the status of an extension object. Pure.

use api::{
    constants,
    extensions::{DefaultStatus, ExtensionObject},
    meta::{LastError, LastOperation, LastOperationState, LastOperationType},
};
use jiff::Timestamp;
use kube::{ResourceExt, api::ObjectMeta};
use runtime::{Error, Result, client::wait::WaitState};

/// State of an awaited extension object.
#[derive(Debug)]
pub(crate) enum ObjectState {
    /// The object has the desired state.
    Done,
    /// The object does not exist.
    Missing,
    /// The object does not have the desired state yet, with the reason.
    Pending(String),
    /// The provider reports an error of the last requested operation.
    Failing(LastError),
}

/// Done when the last operation was completed after the last write to the object.
pub(super) fn ready<K: ExtensionObject>(object: &K) -> ObjectState {
    look_ready(object.meta(), object.default_status())
}

/// See [`ready`].
pub(crate) fn look_ready(meta: &ObjectMeta, status: Option<&DefaultStatus>) -> ObjectState {
    let Some(status) = status else {
        return ObjectState::Pending("its provider has not answered yet".into());
    };
    let Some(last) = &status.last_operation else {
        return ObjectState::Pending("its provider has not started yet".into());
    };
    // A report from before the last write is about an earlier request.
    if !is_since_timestamp(meta, last.last_update_time.0) {
        return ObjectState::Pending("its provider has not taken up the last change yet".into());
    }
    let asked = annotation(meta, constants::OPERATION);
    // The provider removes the annotation when a reconciliation begins, and when a different operation has
    // succeeded. So an error is not about this request yet.
    if asked == Some(constants::operation::RECONCILE) {
        return ObjectState::Pending("its provider has not begun to reconcile it yet".into());
    }
    if status.last_error.is_some() && status.observed_generation == meta.generation {
        return failing(status, last);
    }
    if let Some(operation) = asked {
        return ObjectState::Pending(format!("operation {operation} is not finished"));
    }
    if status.observed_generation != meta.generation {
        return ObjectState::Pending("its provider has not seen the last change yet".into());
    }
    if last.state != LastOperationState::Succeeded {
        return ObjectState::Pending(format!("{} is {}: {}", last.type_, last.state, last.description));
    }
    ObjectState::Done
}

/// The error that the provider reports. While the provider works, the error belongs to an earlier attempt or
/// an earlier request.
fn failing(status: &DefaultStatus, last: &LastOperation) -> ObjectState {
    let earlier = status.last_error.as_ref();
    match earlier {
        Some(error) if last.state != LastOperationState::Processing => ObjectState::Failing(error.clone()),
        Some(error) => ObjectState::Pending(format!(
            "{} is {} after: {}",
            last.type_, last.state, error.description
        )),
        None => ObjectState::Pending(format!("{} is {}: {}", last.type_, last.state, last.description)),
    }
}

/// Done when the provider has released the object.
pub(super) fn migrated<K: ExtensionObject>(object: &K) -> ObjectState {
    look_migrated(object.default_status())
}

pub(super) fn is_migrated<K: ExtensionObject>(object: &K) -> bool {
    matches!(migrated(object), ObjectState::Done)
}

/// See [`migrated`].
pub(crate) fn look_migrated(status: Option<&DefaultStatus>) -> ObjectState {
    let begun = status.and_then(|status| Some((status, status.last_operation.as_ref()?)));
    match begun {
        Some((status, last)) if last.type_ == LastOperationType::Migrate => {
            if last.state == LastOperationState::Succeeded {
                ObjectState::Done
            } else {
                failing(status, last)
            }
        }
        _ => ObjectState::Pending("its provider has not started to migrate it yet".into()),
    }
}

/// The object still exists during the deletion.
pub(super) fn deleting<K: ExtensionObject>(object: &K) -> ObjectState {
    look_deleting(object.meta(), object.default_status())
}

/// See [`deleting`].
pub(crate) fn look_deleting(meta: &ObjectMeta, status: Option<&DefaultStatus>) -> ObjectState {
    let last = status.and_then(|status| status.last_operation.as_ref());
    let deletes = last.is_some_and(|last| {
        last.type_ == LastOperationType::Delete && last.state != LastOperationState::Processing
    });
    if deletes && let Some(error) = status.and_then(|status| status.last_error.clone()) {
        // An error from before the forced deletion no longer counts: the user has already reacted to this
        // error.
        return if annotation(meta, constants::CONFIRMATION_FORCE_DELETION) == Some("true") {
            ObjectState::Pending(format!(
                "its provider does not let go of it: {}",
                error.description
            ))
        } else {
            ObjectState::Failing(error)
        };
    }
    let finalizers = meta.finalizers.as_deref().unwrap_or_default().join(", ");
    ObjectState::Pending(if finalizers.is_empty() {
        "it is being deleted".into()
    } else {
        format!("it waits for {finalizers}")
    })
}

/// Compares whole seconds, because both sides may have truncated the times.
fn is_since_timestamp(meta: &ObjectMeta, updated: Timestamp) -> bool {
    let touched = annotation(meta, constants::TIMESTAMP).and_then(|text| text.parse::<Timestamp>().ok());
    touched.is_none_or(|touched| updated.as_second() >= touched.as_second())
}

fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(key).map(String::as_str)
}

/// A wait for an object: follows the object and stores the last reported error.
pub(crate) struct ObjectWait {
    what: String,
    last: Option<LastError>,
    severe: bool,
}

impl ObjectWait {
    /// A wait without a report so far. `what` names the object in errors.
    pub(crate) fn new(what: String) -> Self {
        Self {
            what,
            last: None,
            severe: false,
        }
    }

    /// From now on every error ends the wait.
    pub(crate) fn be_severe(&mut self) {
        self.severe = true;
    }

    /// Whether an error was reported that ends the wait.
    pub(crate) fn failed(&self) -> bool {
        self.last
            .as_ref()
            .is_some_and(|error| self.severe || needs_a_user(error))
    }

    /// Converts the state of the object into the action of the wait.
    pub(crate) fn evaluate(&mut self, seen: ObjectState) -> WaitState {
        self.last = None;
        match seen {
            ObjectState::Done => WaitState::Done,
            ObjectState::Missing => WaitState::Wait("it does not exist".into()),
            ObjectState::Pending(why) => WaitState::Wait(why),
            ObjectState::Failing(error) => {
                self.last = Some(error.clone());
                if self.failed() {
                    WaitState::Fail(self.error(&error))
                } else {
                    WaitState::Wait(error.description)
                }
            }
        }
    }

    /// The result of the wait: the object's own error is more precise than a timeout.
    pub(crate) fn outcome<T>(&self, result: Result<T>) -> Result<T> {
        match (&self.last, result) {
            (Some(error), Err(_)) => Err(self.error(error)),
            (_, other) => other,
        }
    }

    fn error(&self, error: &LastError) -> Error {
        let message = format!("{}: {}", self.what, error.description);
        if error.codes.is_empty() {
            Error::transient(message)
        } else {
            Error::Config {
                codes: error.codes.clone(),
                message: message.into(),
            }
        }
    }
}

/// The provider cannot continue without a user.
fn needs_a_user(error: &LastError) -> bool {
    error.codes.iter().any(|code| code.is_non_retryable())
}

/// The shared part of a status of an unknown kind.
pub(crate) fn of_any(object: &kube::core::DynamicObject) -> Option<DefaultStatus> {
    serde_json::from_value(object.data.get("status")?.clone()).ok()
}

/// The last requested operation on an object of any kind.
pub(crate) fn operation_of(object: &kube::core::DynamicObject) -> Option<&str> {
    object.annotations().get(constants::OPERATION).map(String::as_str)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;

    fn refused(annotations: &Value) -> (ObjectMeta, DefaultStatus) {
        let meta =
            json!({"annotations": annotations, "finalizers": ["extensions.gardener.cloud/infrastructure"]});
        let status = json!({
            "lastError": {"description": "the cloud refuses", "codes": ["ERR_INFRA_UNAUTHENTICATED"]},
            "lastOperation": {"type": "Delete", "state": "Error", "progress": 50, "description": "",
                "lastUpdateTime": "2026-01-01T00:00:00Z"},
        });
        (
            serde_json::from_value(meta).unwrap(),
            serde_json::from_value(status).unwrap(),
        )
    }

    #[test]
    fn a_refused_deletion_ends_the_wait_and_a_forced_one_goes_on_waiting() {
        let (meta, status) = refused(&json!({}));
        let mut object_wait = ObjectWait::new("Infrastructure web".into());
        assert!(matches!(
            object_wait.evaluate(look_deleting(&meta, Some(&status))),
            WaitState::Fail(_)
        ));
        let (meta, status) = refused(&json!({(constants::CONFIRMATION_FORCE_DELETION): "true"}));
        let seen = object_wait.evaluate(look_deleting(&meta, Some(&status)));
        assert!(matches!(seen, WaitState::Wait(why) if why.contains("the cloud refuses")));
        assert!(!object_wait.failed());
    }

    /// Otherwise a user who has fixed the cause would get the old error, and the flow would end.
    #[test]
    fn an_error_of_before_ends_no_wait() {
        let look = |operation: &str, generation: i64, type_: &str, state: &str| {
            let mut meta =
                json!({"generation": 2, "annotations": {(constants::TIMESTAMP): "2026-01-01T00:00:00.5Z"}});
            if !operation.is_empty() {
                meta["annotations"][constants::OPERATION] = json!(operation);
            }
            let status = json!({
                "lastError": {"description": "no such zone", "codes": ["ERR_CONFIGURATION_PROBLEM"]},
                "lastOperation": {"type": type_, "state": state, "progress": 50, "description": "",
                    "lastUpdateTime": "2026-01-01T00:00:00Z"},
                "observedGeneration": generation,
            });
            let (meta, status): (ObjectMeta, DefaultStatus) = (
                serde_json::from_value(meta).unwrap(),
                serde_json::from_value(status).unwrap(),
            );
            let seen = match type_ {
                "Migrate" => look_migrated(Some(&status)),
                "Delete" => look_deleting(&meta, Some(&status)),
                _ => look_ready(&meta, Some(&status)),
            };
            matches!(seen, ObjectState::Failing(_))
        };
        assert!(look("", 2, "Reconcile", "Error"));
        assert!(
            look("restore", 2, "Restore", "Error"),
            "it stays until that has succeeded"
        );
        assert!(!look("reconcile", 2, "Reconcile", "Error"), "not begun");
        assert!(!look("", 1, "Reconcile", "Error"), "of an earlier specification");
        for type_ in ["Reconcile", "Migrate", "Delete"] {
            assert!(look("", 2, type_, "Error"), "{type_}");
            assert!(!look("", 2, type_, "Processing"), "{type_}: it is tried again");
        }
    }
}
