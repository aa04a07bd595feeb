//! The obstacles of an Etcd, as codes and sentences for `status.lastErrors`.
//!
//! etcd-backup-restore ends with a line `<Class>: <sentence>`; the kubelet keeps the end of its output as the
//! container's termination message. The class decides the code, so that the gardenlet can show both in the
//! Shoot's `lastErrors`.

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};
use kube::ResourceExt;
use runtime::Error;
use serde_json::Value;
use sidecar_protocol::{ErrorClass, SidecarHealth};

use crate::{containers::statuses, names::BACKUP_CONTAINER};

/// Code of an error that no well-known cause explains, in building the objects.
const SYNC: &str = "ERR_SYNC_ETCD";
/// Code of a container that ended for no well-known cause.
const CONTAINER: &str = "ERR_ETCD_CONTAINER_FAILED";
/// Code of an etcd that refuses writes: after a user has made room, the controller continues without further
/// action.
const NO_SPACE: &str = "ERR_RETRYABLE_CONFIGURATION_PROBLEM";
/// Longest sentence that is copied to the status. A log line can have any length, and humans read the status.
const LONGEST: usize = 1000;

/// Classes of etcd-backup-restore's errors. Work continues automatically after a cause is fixed, hence the
/// retryable codes.
const CLASSES: [(ErrorClass, &str); 15] = [
    (ErrorClass::Configuration, "ERR_CONFIGURATION_PROBLEM"),
    (ErrorClass::Credentials, "ERR_INFRA_UNAUTHENTICATED"),
    (ErrorClass::Store, "ERR_RETRYABLE_INFRA_DEPENDENCIES"),
    (ErrorClass::SnapshotCorrupt, "ERR_RETRYABLE_CONFIGURATION_PROBLEM"),
    (ErrorClass::SnapshotMissing, "ERR_RETRYABLE_CONFIGURATION_PROBLEM"),
    (
        ErrorClass::SnapshotUnparsable,
        "ERR_RETRYABLE_CONFIGURATION_PROBLEM",
    ),
    (
        ErrorClass::SnapshotUnverified,
        "ERR_RETRYABLE_CONFIGURATION_PROBLEM",
    ),
    (ErrorClass::Overtaken, CONTAINER),
    (ErrorClass::Interrupted, CONTAINER),
    (ErrorClass::OtherEpoch, "ERR_RETRYABLE_CONFIGURATION_PROBLEM"),
    (ErrorClass::DataDirectory, "ERR_RETRYABLE_INFRA_DEPENDENCIES"),
    (ErrorClass::NotPermitted, CONTAINER),
    (ErrorClass::Etcd, CONTAINER),
    (ErrorClass::Compacted, CONTAINER),
    (ErrorClass::Tool, CONTAINER),
];

/// An obstacle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Error code.
    pub code: String,
    /// Failure and remedy.
    pub description: String,
}

/// The failures for an error of etcd-druid.
#[must_use]
pub fn of_error(error: &Error) -> Vec<Failure> {
    if !error.is_failure() {
        return Vec::new();
    }
    let failure = |code: String| Failure {
        code,
        description: error.to_string(),
    };
    if error.codes().is_empty() {
        return vec![failure(SYNC.to_owned())];
    }
    error
        .codes()
        .iter()
        .filter_map(|code| serde_json::to_value(code).ok()?.as_str().map(str::to_owned))
        .map(failure)
        .collect()
}

/// The reasons why these pods do not work: why a container ended or cannot start, or why the pod has no node.
#[must_use]
pub fn of_pods(pods: &[Pod]) -> Vec<Failure> {
    pods.iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        .flat_map(|pod| {
            unschedulable(pod)
                .into_iter()
                .chain(statuses(pod).filter_map(of_container))
        })
        .collect()
}

/// The error that etcd-backup-restore reports while it runs.
#[must_use]
pub fn of_sidecar(said: &SidecarHealth) -> Option<Failure> {
    let error = sentence(said.error.as_deref()?)?;
    let code = class(&error).unwrap_or(CONTAINER);
    Some(Failure {
        code: code.to_owned(),
        description: format!("{BACKUP_CONTAINER}: {error}"),
    })
}

/// The failure of an etcd that refuses writes.
#[must_use]
pub fn of_no_space(message: String) -> Failure {
    Failure {
        code: NO_SPACE.to_owned(),
        description: message,
    }
}

/// The reason why this container does not run now; `None` if the container runs, or has completed.
fn of_container(status: &ContainerStatus) -> Option<Failure> {
    let state = status.state.as_ref()?;
    if let Some(ended) = state.terminated.as_ref().filter(|ended| ended.exit_code != 0) {
        return Some(of_end(&status.name, ended));
    }
    let waiting = state.waiting.as_ref()?;
    match waiting.reason.as_deref().unwrap_or_default() {
        "" | "ContainerCreating" | "PodInitializing" => None,
        "CrashLoopBackOff" => {
            let ended = status.last_state.as_ref()?.terminated.as_ref()?;
            Some(of_end(&status.name, ended))
        }
        reason => Some(Failure {
            code: "ERR_RETRYABLE_CONFIGURATION_PROBLEM".to_owned(),
            description: format!(
                "{}: the container cannot start ({reason}): {}",
                status.name,
                waiting.message.as_deref().unwrap_or("the kubelet says no more")
            ),
        }),
    }
}

fn of_end(container: &str, ended: &ContainerStateTerminated) -> Failure {
    let said = sentence(ended.message.as_deref().unwrap_or_default());
    let code = said.as_deref().and_then(class).unwrap_or(CONTAINER);
    let said = said.unwrap_or_else(|| {
        let reason = ended.reason.as_deref().unwrap_or("Error");
        format!(
            "it ended with exit code {} ({reason}) and said nothing; see its log",
            ended.exit_code
        )
    });
    Failure {
        code: code.to_owned(),
        description: format!("{container}: {said}"),
    }
}

/// The sentence in the end of a container's output: the last line that names a class, else the last line.
fn sentence(output: &str) -> Option<String> {
    let lines: Vec<String> = output
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(text_of)
        .collect();
    let line = lines
        .iter()
        .rev()
        .find_map(|line| from_class(line))
        .or_else(|| lines.last().cloned())?;
    Some(line.chars().take(LONGEST).collect())
}

/// The text of a line: the error (else the message) of a structured log line, or the line itself.
fn text_of(line: &str) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str(line) else {
        return line.to_owned();
    };
    let text = ["error", "message", "msg"]
        .iter()
        .find_map(|field| fields.get(*field)?.as_str());
    text.map_or_else(|| line.to_owned(), str::to_owned)
}

/// The part of a line from the error class on.
fn from_class(line: &str) -> Option<String> {
    CLASSES
        .iter()
        .filter_map(|(class, _)| find_class(line, *class))
        .min()
        .map(|at| line[at..].to_owned())
}

fn find_class(line: &str, class: ErrorClass) -> Option<usize> {
    let at = line.find(&format!("{}: ", class.prefix()))?;
    let starts_a_word = line[..at]
        .chars()
        .next_back()
        .is_none_or(|before| !before.is_alphanumeric());
    starts_a_word.then_some(at)
}

fn class(sentence: &str) -> Option<&'static str> {
    CLASSES
        .iter()
        .find(|(class, _)| find_class(sentence, *class) == Some(0))
        .map(|(_, code)| *code)
}

fn unschedulable(pod: &Pod) -> Option<Failure> {
    let conditions = pod.status.as_ref()?.conditions.as_deref()?;
    let condition = conditions
        .iter()
        .find(|c| c.type_ == "PodScheduled" && c.status == "False")?;
    if condition.reason.as_deref() != Some("Unschedulable") {
        return None;
    }
    Some(Failure {
        code: "ERR_RETRYABLE_INFRA_DEPENDENCIES".to_owned(),
        description: format!(
            "Pod {} finds no node in the seed: {}",
            pod.name_any(),
            condition
                .message
                .as_deref()
                .unwrap_or("the scheduler says no more")
        ),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::meta::ErrorCode;
    use serde_json::json;

    use super::*;

    fn pod(statuses: &Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "etcd-main-0"}, "status": statuses})).unwrap()
    }

    fn ended(message: &str) -> Value {
        json!({"initContainerStatuses": [{
            "name": "initialize", "image": "", "imageID": "", "ready": false, "restartCount": 1,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "message": message}},
        }]})
    }

    #[test]
    fn the_sentence_of_a_failed_container_is_found_and_its_class_gives_the_code() {
        for (message, code, description) in [
            (
                "starting\nSnapshotCorrupt: Full-1 does not match its hash; remove it\n",
                "ERR_RETRYABLE_CONFIGURATION_PROBLEM",
                "initialize: SnapshotCorrupt: Full-1 does not match its hash; remove it",
            ),
            (
                "{\"level\":\"ERROR\",\"message\":\"ended\",\"error\":\"StoreCredentials: the object store refuses\"}",
                "ERR_INFRA_UNAUTHENTICATED",
                "initialize: StoreCredentials: the object store refuses",
            ),
            (
                "Error: Configuration: --data-dir is missing",
                "ERR_CONFIGURATION_PROBLEM",
                "initialize: Configuration: --data-dir is missing",
            ),
            (
                "StoreUnavailable: no answer\nbye",
                "ERR_RETRYABLE_INFRA_DEPENDENCIES",
                "initialize: StoreUnavailable: no answer",
            ),
            (
                "something else",
                "ERR_ETCD_CONTAINER_FAILED",
                "initialize: something else",
            ),
            (
                "",
                "ERR_ETCD_CONTAINER_FAILED",
                "initialize: it ended with exit code 1 (Error) and said nothing; see its log",
            ),
        ] {
            let expected = Failure {
                code: code.to_owned(),
                description: description.to_owned(),
            };
            assert_eq!(of_pods(&[pod(&ended(message))]), [expected], "{message:?}");
        }
    }

    #[test]
    fn a_container_that_runs_again_or_has_succeeded_is_no_obstacle() {
        for state in [
            json!({"running": {}}),
            json!({"terminated": {"exitCode": 0}}),
            json!({"waiting": {"reason": "PodInitializing"}}),
        ] {
            let pod = pod(&json!({"containerStatuses": [{
                "name": "etcd", "image": "", "imageID": "", "ready": false, "restartCount": 1, "state": state,
                "lastState": {"terminated": {"exitCode": 137, "message": "killed"}},
            }]}));
            assert_eq!(of_pods(&[pod]), []);
        }
    }

    #[test]
    fn a_missing_image_and_a_missing_node_are_obstacles() {
        let pod = pod(&json!({
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}],
            "containerStatuses": [{
                "name": "etcd", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": {"waiting": {"reason": "ErrImageNeverPull", "message": "image is not present"}},
            }],
        }));
        let found: Vec<_> = of_pods(&[pod]).into_iter().map(|f| f.description).collect();
        assert_eq!(
            found,
            [
                "Pod etcd-main-0 finds no node in the seed: 0/1 nodes",
                "etcd: the container cannot start (ErrImageNeverPull): image is not present",
            ]
        );
    }

    #[test]
    fn our_own_errors_keep_their_codes_and_waiting_is_none() {
        let wrong = Error::config(ErrorCode::ErrConfigurationProblem, "spec.etcd.quota is odd");
        assert_eq!(of_error(&wrong)[0].code, "ERR_CONFIGURATION_PROBLEM");
        assert_eq!(of_error(&Error::transient("no answer"))[0].code, "ERR_SYNC_ETCD");
        assert_eq!(of_error(&Error::not_ready(std::time::Duration::ZERO, "soon")), []);
    }
}
