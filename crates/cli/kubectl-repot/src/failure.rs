//! The reason why a command did not do the work, as a sentence for people and an exit code for scripts.

use std::time::Duration;

use kube::runtime::watcher;
use runtime::error::with_causes;

use crate::terminal::one_line;

/// Exit code of a command that could not be carried out.
pub const EXIT_FAILED: u8 = 1;
/// Exit code of a command that was refused, or that found obstacles.
pub const EXIT_REFUSED: u8 = 2;

/// The phrase of an API server in front of the sentence of an admission policy.
const DENIED: &str = "denied request: ";

/// The reason why a command did not do the work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The command could not be carried out.
    #[error("{0}")]
    Failed(String),
    /// The garden refuses the request, the user has no right, or there are obstacles.
    #[error("{0}")]
    Refused(String),
}

impl Failure {
    /// A command that could not be carried out, with a sentence.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// A refused command, with a sentence.
    #[must_use]
    pub fn refused(message: impl Into<String>) -> Self {
        Self::Refused(message.into())
    }

    /// The same failure, with a hint behind the sentence.
    #[must_use]
    pub fn with_hint(self, hint: &str) -> Self {
        match self {
            Self::Failed(why) => Self::Failed(format!("{why}; {hint}")),
            Self::Refused(why) => Self::Refused(format!("{why}; {hint}")),
        }
    }

    /// The exit code of the process.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) => EXIT_FAILED,
            Self::Refused(_) => EXIT_REFUSED,
        }
    }

    /// The failure of a request. `doing` names the failed action.
    #[must_use]
    pub fn from_request(doing: &str, error: &kube::Error) -> Self {
        let status = match error {
            kube::Error::Api(status) => status,
            kube::Error::SerdeError(wrong) => {
                return Self::failed(format!(
                    "{doing}: the answer of the garden has a form that this plugin does not know ({wrong}): use the plugin of the \
                     garden's version"
                ));
            }
            other => {
                return Self::failed(format!(
                    "{doing}: no answer of the garden: {}",
                    with_causes(other)
                ));
            }
        };
        let message = one_line(status.message.trim());
        if let Some((_, sentence)) = message.split_once(DENIED) {
            return Self::refused(format!("{doing}: the garden refuses: {sentence}"));
        }
        if status.is_forbidden() {
            return Self::refused(format!(
                "{doing}: no right: {message}; ask the operator of the garden for a role with this right"
            ));
        }
        if status.code == 401 {
            return Self::failed(format!(
                "{doing}: the garden does not accept the credentials of the kubeconfig: log in again, or name a different context \
                 (--context)"
            ));
        }
        if status.is_not_found() || status.code == 404 {
            let names_object = status
                .details
                .as_ref()
                .is_some_and(|details| !details.name.is_empty());
            return Self::failed(if names_object {
                format!("{doing}: the object does not exist; check the name and the namespace (-n)")
            } else {
                format!(
                    "{doing}: this cluster does not serve the API of the request: name the kubeconfig of the garden (--kubeconfig, \
                     --context)"
                )
            });
        }
        if status.is_conflict() {
            return Self::failed(format!(
                "{doing}: a concurrent edit came first; repeat the command"
            ));
        }
        if status.is_invalid() {
            return Self::refused(format!("{doing}: the garden refuses: {message}"));
        }
        Self::failed(format!("{doing}: the garden answers: {message}"))
    }

    /// The failure of a watch.
    #[must_use]
    pub fn from_watch(doing: &str, error: &watcher::Error) -> Self {
        match error {
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => Self::from_request(doing, error),
            watcher::Error::WatchError(status) => {
                Self::from_request(doing, &kube::Error::Api(status.clone()))
            }
            watcher::Error::NoResourceVersion => Self::failed(format!(
                "{doing}: the garden does not support a watch of this kind"
            )),
        }
    }

    /// A request without an answer within the bound.
    #[must_use]
    pub fn from_timeout(doing: &str, within: Duration) -> Self {
        Self::failed(format!(
            "{doing}: the garden does not answer within {} s; repeat the command, or raise --request-timeout",
            within.as_secs()
        ))
    }
}

/// Whether a repeated watch would fail for the same reason: no right, no such API, invalid credentials.
#[must_use]
pub fn is_lasting(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => {
            status.is_forbidden() || status.is_not_found() || status.code == 401
        }
        watcher::Error::NoResourceVersion => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn from_answer(yaml: &str) -> Failure {
        let status = serde_yaml_ng::from_str(yaml).unwrap();
        Failure::from_request(
            "Shoot garden-dev/demo cannot be read",
            &kube::Error::Api(Box::new(status)),
        )
    }

    #[test]
    fn a_missing_right_and_a_policy_are_refusals() {
        let no_right = from_answer(
            "{code: 403, reason: Forbidden, message: 'User \"eve\" cannot get resource \"shoots\"'}",
        );
        assert_eq!(no_right.exit_code(), EXIT_REFUSED);
        assert!(
            no_right.to_string().contains("no right: User \"eve\""),
            "{no_right}"
        );
        let policy = from_answer(
            "{code: 422, reason: Invalid, message: 'x is forbidden: ValidatingAdmissionPolicy ''p'' with binding ''p'' denied \
             request: the shoot is being deleted'}",
        );
        assert_eq!(
            policy,
            Failure::refused(
                "Shoot garden-dev/demo cannot be read: the garden refuses: the shoot is being deleted"
            )
        );
    }

    #[test]
    fn a_missing_object_and_a_missing_api_are_told_apart() {
        let object = from_answer("{code: 404, reason: NotFound, message: m, details: {name: demo}}");
        assert!(object.to_string().contains("does not exist"), "{object}");
        let api = from_answer("{code: 404, reason: Failed to parse error data, message: 404 page not found}");
        assert!(api.to_string().contains("does not serve the API"), "{api}");
        assert_eq!(api.exit_code(), EXIT_FAILED);
    }

    #[test]
    fn each_further_answer_has_a_sentence() {
        for (answer, words) in [
            (
                "{code: 401, reason: Unauthorized, message: Unauthorized}",
                "log in again",
            ),
            ("{code: 409, reason: Conflict, message: m}", "concurrent edit"),
            (
                "{code: 422, reason: Invalid, message: seedName is wrong}",
                "seedName is wrong",
            ),
            (
                "{code: 500, reason: InternalError, message: etcd is away}",
                "etcd is away",
            ),
        ] {
            let failure = from_answer(answer);
            assert!(failure.to_string().contains(words), "{failure}");
        }
        let unknown = kube::Error::SerdeError(serde_json::from_str::<u32>("{}").unwrap_err());
        let unknown = Failure::from_request("Seed a cannot be read", &unknown);
        assert!(
            unknown
                .to_string()
                .contains("use the plugin of the garden's version"),
            "{unknown}"
        );
        let slow = Failure::from_timeout("Seed a cannot be read", Duration::from_secs(3));
        assert!(slow.to_string().contains("within 3 s"), "{slow}");
    }
}
