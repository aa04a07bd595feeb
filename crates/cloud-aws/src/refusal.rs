//! What EC2 says no by, and who has to act then.

use api::meta::ErrorCode;
use jiff::SignedDuration;
use permit::NotPermitted;
use runtime::Error;
use serde::Deserialize;

use crate::{account::Account, skew};

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
    /// The keys are temporary.
    pub is_temporary: bool,
    /// How far the clock of this process is ahead of EC2's, where the answer has a date.
    pub ahead: Option<SignedDuration>,
    /// The status of the answer is 5xx: EC2 failed, and did not judge the call.
    pub is_server_error: bool,
}

/// EC2 has done nothing of such a call, and it may be repeated after a pause. AWS's own libraries have this
/// list.
const THROTTLED: &[&str] = &[
    "BandwidthLimitExceeded",
    "EC2ThrottledException",
    "LimitExceededException",
    "PriorRequestNotComplete",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "TransactionInProgressException",
];
/// EC2 answers want of capacity with the status 5xx, and has judged the call nevertheless.
const WITHOUT_CAPACITY: &[&str] = &[
    "InsufficientAddressCapacity",
    "InsufficientCapacity",
    "InsufficientHostCapacity",
    "InsufficientInstanceCapacity",
    "InsufficientReservedInstanceCapacity",
    "InsufficientVolumeCapacity",
];
/// EC2's code for invalid keys, and for an object of a different account.
const AUTH_FAILURE: &str = "AuthFailure";
/// A part of EC2's sentence for invalid keys.
const OF_KEYS: &str = "access credentials";
/// EC2's sentence for an image of a different account begins so.
const OF_IMAGE: &str = "Not authorized for image";
/// The object of the call is there already.
const CONFLICTS: &[&str] = &[
    "InvalidGroup.Duplicate",
    "InvalidPermission.Duplicate",
    "InvalidSubnet.Conflict",
    "NetworkAclEntryAlreadyExists",
    "Resource.AlreadyAssociated",
    "RouteAlreadyExists",
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
        match self {
            Self::Refused(refusal) => {
                is_not_found(&refusal.code)
                    // EC2 gives a released address to other accounts.
                    || refusal.action == "ReleaseAddress" && refusal.is_of_other_account()
            }
            _ => false,
        }
    }

    /// What the call makes is there already. It may be the caller's own object, which EC2 does not list yet.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        CONFLICTS.contains(&self.code())
    }

    /// EC2 has refused the call and has done nothing of it.
    #[must_use]
    pub fn is_undone(&self) -> bool {
        matches!(self, Self::Refused(_)) && !self.is_fault()
    }

    /// EC2 or the connection failed, so that the call may have been carried out.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.is_fault(),
            Self::Unanswered(_) => true,
            Self::NotPermitted(_) => false,
        }
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

/// STS has a form of its own for errors.
#[derive(Deserialize)]
struct AnsweredBySts {
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
    pub(crate) fn read(action: &'static str, account: &Account, text: &str) -> Option<Self> {
        let said = match quick_xml::de::from_str::<Answered>(text) {
            Ok(answered) => answered.errors.error,
            Err(_) => quick_xml::de::from_str::<AnsweredBySts>(text).ok()?.error,
        };
        let message = said.message.split(ENCODED).next().unwrap_or_default();
        Some(Self {
            action,
            code: said.code,
            message: message.trim_end_matches(['.', ' ']).to_owned(),
            origin: account.origin().to_owned(),
            is_temporary: account.credential().token.is_some(),
            ahead: None,
            is_server_error: false,
        })
    }

    /// EC2 failed, so that the call may have been carried out. A code that is not in a list of judgements
    /// proves nothing where the status is 5xx.
    fn is_fault(&self) -> bool {
        let code = self.code.as_str();
        let is_judged = THROTTLED.contains(&code) || WITHOUT_CAPACITY.contains(&code);
        is_of_service(code) || self.is_server_error && !is_judged
    }

    /// The keys are valid, and the object that the call names belongs to a different account.
    fn is_of_other_account(&self) -> bool {
        let names_object = match self.action {
            "ReleaseAddress" => !self.message.contains(OF_KEYS),
            "DescribeImages" | "RunInstances" => self.message.starts_with(OF_IMAGE),
            _ => false,
        };
        self.code == AUTH_FAILURE && names_object && !skew::is_cause(&self.code, &self.message, self.ahead)
    }

    fn error(&self) -> Error {
        let Self {
            action,
            code,
            message,
            origin,
            ..
        } = self;
        let said = format!("EC2 refuses {action}: {code} ({message})");
        if skew::is_cause(code, message, self.ahead) {
            return Error::transient(format!(
                "{said}; the clock of this process {}: correct the time of the node on which the process runs. The Secret \
                 {origin} is not the cause",
                skew::describe(self.ahead)
            ));
        }
        if self.is_fault() {
            return Error::transient(said);
        }
        if self.is_of_other_account() {
            return Error::config(
                ErrorCode::ErrInfraDependencies,
                format!(
                    "{said}; the object belongs to a different account: name an object of the account of the Secret {origin}, or \
                     share the object with this account"
                ),
            );
        }
        self.error_of_code(said)
    }

    /// The error for a call that EC2 has judged.
    fn error_of_code(&self, said: String) -> Error {
        let Self {
            action, code, origin, ..
        } = self;
        let config = |code, to_do: String| Error::config(code, format!("{said}; {to_do}"));
        match code.as_str() {
            AUTH_FAILURE
            | "InvalidClientTokenId"
            | "SignatureDoesNotMatch"
            | "MissingAuthenticationToken"
            | "OptInRequired"
            | "ExpiredToken"
            | "RequestExpired" => config(
                ErrorCode::ErrInfraUnauthenticated,
                if self.is_temporary {
                    format!(
                        "put temporary keys that have not expired, with their sessionToken, into the Secret {origin}"
                    )
                } else {
                    format!("correct accessKeyID and secretAccessKey in the Secret {origin}")
                },
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
            code if WITHOUT_CAPACITY.contains(&code) || code == "Unsupported" => config(
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
            _ if is_not_found(code) || code.contains("IncorrectState") => Error::transient(said),
            _ if CONFLICTS.contains(&code.as_str()) => Error::transient(format!(
                "{said}; if EC2 does not list the object soon, it is not of this shoot: remove it in the account"
            )),
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
        "InternalError"
            | "InternalFailure"
            | "RequestTimeout"
            | "RequestTimeoutException"
            | "ServiceUnavailable"
            | "Unavailable"
    )
}

/// The code for NAT gateways differs from the others.
fn is_not_found(code: &str) -> bool {
    code.ends_with(".NotFound") || code == "NatGatewayNotFound"
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
    #![allow(clippy::unwrap_used, clippy::panic)]
    use rstest::rstest;

    use super::*;

    fn refused(code: &str, message: &str) -> Failed {
        Failed::Refused(refusal("RunInstances", code, message))
    }

    fn refusal(action: &'static str, code: &str, message: &str) -> Refusal {
        let text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>{code}</Code>\
             <Message>{message}</Message></Error></Errors><RequestID>1</RequestID></Response>"
        );
        Refusal::read(action, &account(), &text).unwrap()
    }

    fn account() -> Account {
        let keys = [("accessKeyID", "AKIA-ONE"), ("secretAccessKey", "s3cret")];
        let data = keys.map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec()));
        Account::from_secret(&runtime::Credentials::new("garden/aws", data.into())).unwrap()
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
    #[case("InvalidSubnet.Conflict", None, "is not of this shoot")]
    #[case("InvalidPermission.Duplicate", None, "is not of this shoot")]
    #[case("RouteAlreadyExists", None, "is not of this shoot")]
    #[case("Resource.AlreadyAssociated", None, "is not of this shoot")]
    #[case("NatGatewayNotFound", None, "")]
    #[case("BandwidthLimitExceeded", None, "")]
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
    fn a_wrong_clock_is_not_reported_as_wrong_keys() {
        for (code, ahead, expected) in [
            ("AuthFailure", Some(700), "is 700 s ahead of the clock of EC2"),
            ("RequestExpired", Some(-700), "is 700 s behind the clock of EC2"),
            ("RequestTimeTooSkewed", None, "differs from the clock of EC2"),
        ] {
            let Failed::Refused(refusal) = refused(code, "No.") else {
                panic!("{code} is a refusal")
            };
            let ahead = ahead.map(SignedDuration::from_secs);
            let error = Error::from(Failed::Refused(Refusal { ahead, ..refusal }));
            assert_eq!(
                (error.class(), error.codes()),
                ("Transient", [].as_slice()),
                "{error}"
            );
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn an_expired_session_token_is_named() {
        let Failed::Refused(refusal) = refused("RequestExpired", "Request has expired.") else {
            panic!("it is a refusal")
        };
        let refusal = Refusal {
            is_temporary: true,
            ahead: Some(SignedDuration::from_secs(1)),
            ..refusal
        };
        let error = Error::from(Failed::Refused(refusal));
        assert_eq!(error.codes(), [ErrorCode::ErrInfraUnauthenticated]);
        assert!(error.to_string().contains("sessionToken"), "{error}");
    }

    #[test]
    fn only_a_throttled_call_was_not_carried_out_for_sure() {
        assert!(refused("RequestLimitExceeded", "").is_throttled());
        assert!(!refused("VpcLimitExceeded", "").is_throttled());
        assert!(!refused("InternalError", "").is_throttled());
        assert!(refused("InvalidVpcID.NotFound", "").is_missing());
    }

    #[rstest]
    // EC2's sentences.
    #[case(
        "DescribeVpcs",
        "AWS was not able to validate the provided access credentials",
        false
    )]
    #[case(
        "ReleaseAddress",
        "AWS was not able to validate the provided access credentials",
        false
    )]
    #[case(
        "DescribeVpcs",
        "You do not have permission to access the specified resource",
        false
    )]
    #[case("ReleaseAddress", "The address '203.0.113.7' does not belong to you", true)]
    #[case(
        "RunInstances",
        "AWS was not able to validate the provided access credentials",
        false
    )]
    #[case("RunInstances", "Not authorized for images: [ami-1]", true)]
    fn a_refused_object_of_a_different_account_is_not_reported_as_wrong_keys(
        #[case] action: &'static str,
        #[case] message: &str,
        #[case] is_of_other_account: bool,
    ) {
        let refusal = refusal(action, "AuthFailure", message);
        let failed = Failed::Refused(refusal.clone());
        let is_released = is_of_other_account && action == "ReleaseAddress";
        assert_eq!(failed.is_missing(), is_released, "{message}");
        let expected = if is_of_other_account {
            ErrorCode::ErrInfraDependencies
        } else {
            ErrorCode::ErrInfraUnauthenticated
        };
        let error = Error::from(failed);
        assert_eq!(error.codes(), [expected], "{error}");

        // A wrong clock is neither.
        let ahead = Some(SignedDuration::from_secs(700));
        let skewed = Failed::Refused(Refusal { ahead, ..refusal });
        assert!(!skewed.is_missing());
        assert_eq!(Error::from(skewed).class(), "Transient");
    }

    #[rstest]
    #[case("InternalError", false, true)]
    #[case("InternalError", true, true)]
    #[case("SomethingNew", false, false)]
    #[case("SomethingNew", true, true)]
    #[case("InvalidParameterValue", true, true)]
    #[case("InternalServerError", true, true)]
    #[case("RequestLimitExceeded", true, false)]
    #[case("InsufficientInstanceCapacity", true, false)]
    fn a_call_may_have_been_carried_out_where_ec2_failed(
        #[case] code: &str,
        #[case] is_server_error: bool,
        #[case] is_fault: bool,
    ) {
        let refusal = Refusal {
            is_server_error,
            ..refusal("AllocateAddress", code, "No.")
        };
        let failed = Failed::Refused(refusal);
        assert_eq!((failed.is_fault(), failed.is_undone()), (is_fault, !is_fault));
        if is_fault {
            let error = Error::from(failed);
            assert!(
                error.codes().is_empty() && error.class() == "Transient",
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_no_answer_of_ec2_is_none() {
        assert_eq!(Refusal::read("A", &account(), "<html>Bad Gateway</html>"), None);
        assert_eq!(Refusal::read("A", &account(), ""), None);
    }
}
