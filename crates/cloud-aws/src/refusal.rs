//! What EC2 says no by, and who has to act then.

use api::meta::ErrorCode;
use permit::NotPermitted;
use runtime::Error;
use serde::Deserialize;

/// What a call gives.
pub type Answer<T> = std::result::Result<T, Failed>;

/// A call that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// EC2 said no.
    #[error("EC2 refuses {}: {} ({})", .0.action, .0.code, .0.message)]
    Refused(Refusal),
    /// There was no answer, or none that can be understood. Whether the call was carried out is not known.
    #[error("{0}")]
    Unanswered(String),
    /// The right to act was lost.
    #[error(transparent)]
    NotPermitted(NotPermitted),
}

/// An answer that says no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What was asked for.
    pub action: &'static str,
    /// EC2's word for it.
    pub code: String,
    /// EC2's sentence, without keys of the account.
    pub message: String,
    /// The Secret with the credentials, for messages.
    pub origin: String,
}

/// EC2 has done nothing of such a call, and it may be repeated after a pause.
const THROTTLED: &[&str] = &[
    "RequestLimitExceeded",
    "Throttling",
    "ThrottlingException",
    "RequestThrottled",
];
/// What follows is for EC2's own tools only, and long.
const ENCODED: &str = " Encoded authorization failure message";

impl Failed {
    /// EC2's word for the refusal; empty where it was none.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Refused(refusal) => &refusal.code,
            _ => "",
        }
    }

    /// What the call names is not there.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.code().ends_with(".NotFound")
    }

    /// The call may be repeated after a pause.
    #[must_use]
    pub fn is_throttled(&self) -> bool {
        THROTTLED.contains(&self.code())
    }
}

#[derive(Deserialize)]
struct Answered {
    #[serde(rename = "Errors")]
    errors: Errors,
}

#[derive(Deserialize)]
struct Errors {
    #[serde(rename = "Error")]
    error: Said,
}

#[derive(Deserialize)]
struct Said {
    #[serde(rename = "Code")]
    code: String,
    #[serde(rename = "Message", default)]
    message: String,
}

impl Refusal {
    /// Reads one. `None`: it is no answer of EC2.
    pub(crate) fn read(action: &'static str, origin: &str, text: &str) -> Option<Self> {
        let said = quick_xml::de::from_str::<Answered>(text).ok()?.errors.error;
        let message = said.message.split(ENCODED).next().unwrap_or_default();
        Some(Self {
            action,
            code: said.code,
            message: message.trim_end_matches(['.', ' ']).to_owned(),
            origin: origin.to_owned(),
        })
    }

    fn error(&self) -> Error {
        let Self {
            action,
            code,
            message,
            origin,
        } = self;
        let said = format!("EC2 refuses {action}: {code} ({message})");
        let config = |code, to_do: String| Error::config(code, format!("{said}; {to_do}"));
        match code.as_str() {
            "AuthFailure"
            | "InvalidClientTokenId"
            | "SignatureDoesNotMatch"
            | "MissingAuthenticationToken"
            | "OptInRequired"
            | "ExpiredToken"
            | "RequestExpired" => config(
                ErrorCode::ErrInfraUnauthenticated,
                format!("correct accessKeyID and secretAccessKey in the Secret {origin}"),
            ),
            "UnauthorizedOperation" | "AccessDenied" => config(
                ErrorCode::ErrInfraUnauthorized,
                format!("let the account of the Secret {origin} do ec2:{action}"),
            ),
            "DependencyViolation" | "ResourceInUse" | "VolumeInUse" => config(
                // What was just removed hangs on for a while, too.
                ErrorCode::ErrRetryableInfraDependencies,
                "if it stays, look in the account for what still uses it and take that away".into(),
            ),
            "InsufficientInstanceCapacity"
            | "InsufficientHostCapacity"
            | "InsufficientCapacity"
            | "Unsupported" => config(
                ErrorCode::ErrInfraResourcesDepleted,
                "choose another machine type or zone, or wait".into(),
            ),
            "InsufficientFreeAddressesInSubnet" => config(
                ErrorCode::ErrInfraQuotaExceeded,
                "take larger networks for the workers, or fewer machines".into(),
            ),
            _ if self.is_of_quota() => config(
                ErrorCode::ErrInfraQuotaExceeded,
                "raise this quota of the account, or remove what is not needed".into(),
            ),
            // Seen for a moment after something was made; later somebody has removed it, and it is made anew.
            _ if code.ends_with(".NotFound") || code.contains("IncorrectState") || is_of_service(code) => {
                Error::transient(said)
            }
            _ if THROTTLED.contains(&code.as_str()) => Error::transient(said),
            _ if code.starts_with("Invalid")
                || code.starts_with("Missing")
                || code.starts_with("Unknown") =>
            {
                config(
                    ErrorCode::ErrConfigurationProblem,
                    "correct the configuration of the shoot's infrastructure or workers".into(),
                )
            }
            _ => Error::transient(said),
        }
    }

    fn is_of_quota(&self) -> bool {
        let code = self.code.as_str();
        code.ends_with("LimitExceeded") && !THROTTLED.contains(&code)
            || code == "MaxSpotInstanceCountExceeded"
            || code == "InstanceLimitExceeded"
    }
}

fn is_of_service(code: &str) -> bool {
    matches!(
        code,
        "InternalError" | "InternalFailure" | "ServiceUnavailable" | "Unavailable"
    )
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Refused(refusal) => refusal.error(),
            Failed::Unanswered(why) => Self::transient(why),
            Failed::NotPermitted(refused) => refused.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rstest::rstest;

    use super::*;

    fn refused(code: &str, message: &str) -> Failed {
        let text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>{code}</Code>\
             <Message>{message}</Message></Error></Errors><RequestID>1</RequestID></Response>"
        );
        Failed::Refused(Refusal::read("RunInstances", "garden/aws", &text).unwrap())
    }

    #[rstest]
    #[case(
        "AuthFailure",
        Some(ErrorCode::ErrInfraUnauthenticated),
        "in the Secret garden/aws"
    )]
    #[case(
        "UnauthorizedOperation",
        Some(ErrorCode::ErrInfraUnauthorized),
        "do ec2:RunInstances"
    )]
    #[case(
        "DependencyViolation",
        Some(ErrorCode::ErrRetryableInfraDependencies),
        "take that away"
    )]
    #[case(
        "InsufficientInstanceCapacity",
        Some(ErrorCode::ErrInfraResourcesDepleted),
        "another machine type"
    )]
    #[case(
        "VpcLimitExceeded",
        Some(ErrorCode::ErrInfraQuotaExceeded),
        "raise this quota"
    )]
    #[case(
        "AddressLimitExceeded",
        Some(ErrorCode::ErrInfraQuotaExceeded),
        "raise this quota"
    )]
    #[case(
        "InvalidParameterValue",
        Some(ErrorCode::ErrConfigurationProblem),
        "correct the configuration"
    )]
    #[case("InvalidSubnetID.NotFound", None, "")]
    #[case("RequestLimitExceeded", None, "")]
    #[case("InternalError", None, "")]
    #[case("SomethingNew", None, "")]
    fn who_has_to_act(#[case] code: &str, #[case] expected: Option<ErrorCode>, #[case] told: &str) {
        let error = Error::from(refused(code, "No."));
        assert_eq!(error.codes().first().copied(), expected, "{error}");
        let said = error.to_string();
        assert!(said.contains(code) && said.contains(told), "{said}");
    }

    #[test]
    fn a_long_secret_word_of_ec2_is_left_out() {
        let said = "You are not authorized. Encoded authorization failure message: 4kYb";
        let error = Error::from(refused("UnauthorizedOperation", said)).to_string();
        assert!(!error.contains("4kYb"), "{error}");
    }

    #[test]
    fn only_a_throttled_call_was_not_carried_out_for_sure() {
        assert!(refused("RequestLimitExceeded", "").is_throttled());
        assert!(!refused("VpcLimitExceeded", "").is_throttled());
        assert!(!refused("InternalError", "").is_throttled());
        assert!(refused("InvalidVpcID.NotFound", "").is_missing());
    }

    #[test]
    fn what_is_no_answer_of_ec2_is_none() {
        assert_eq!(Refusal::read("A", "b", "<html>Bad Gateway</html>"), None);
        assert_eq!(Refusal::read("A", "b", ""), None);
    }
}
