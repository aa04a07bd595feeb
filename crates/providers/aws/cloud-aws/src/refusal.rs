//! The refusals of EC2, and the person or controller that has to act.

use api::meta::ErrorCode;
use jiff::SignedDuration;
use permit::NotPermitted;
use runtime::Error;
use serde::Deserialize;

use crate::{Call, account::Account, call::Service, skew};

/// The result of a call.
pub type Answer<T> = std::result::Result<T, Failed>;

/// A call that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// The service refuses the call.
    #[error("{} refuses {}: {} ({})", .0.service.title(), .0.action, .0.code, .0.message)]
    Refused(ServiceError),
    /// There was no answer, or none that can be understood. Whether the call was carried out is not known.
    #[error("{0}")]
    Unanswered(String),
    /// The right to act was lost.
    #[error(transparent)]
    NotPermitted(NotPermitted),
}

/// An answer that says no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceError {
    /// The service that refuses the call.
    pub(crate) service: Service,
    /// The action of the call.
    pub action: &'static str,
    /// The error code of EC2.
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

/// Codes of calls that had no effect in EC2. The caller may repeat such a call after a pause. AWS's own
/// libraries have this list.
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
/// The call that makes a NAT gateway.
pub(crate) const CREATE_NAT_GATEWAY: &str = "CreateNatGateway";
/// The text after this marker is long, and only for EC2's own tools.
const ENCODED: &str = " Encoded authorization failure message";

impl Failed {
    /// The error code of EC2; empty where EC2 did not refuse the call.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Refused(refusal) => &refusal.code,
            _ => "",
        }
    }

    /// Whether an object that the call names does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        match self {
            Self::Refused(refusal) => is_not_found(&refusal.code),
            _ => false,
        }
    }

    /// Whether the object to create exists already. The object may be the caller's own object that EC2 does
    /// not list yet.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        CONFLICTS.contains(&self.code())
    }

    /// Whether EC2 has refused the call without an effect.
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
    error: ErrorElement,
}

/// STS has a different form for errors.
#[derive(Deserialize)]
struct AnsweredBySts {
    #[serde(rename = "Error")]
    error: ErrorElement,
}

#[derive(Deserialize)]
struct ErrorElement {
    #[serde(rename = "Code")]
    code: String,
    #[serde(rename = "Message", default)]
    message: String,
}

impl ServiceError {
    /// Reads a refusal of a call. `None`: the text is not an answer of EC2 or STS.
    pub(crate) fn read(call: &Call, account: &Account, text: &str) -> Option<Self> {
        let said = match quick_xml::de::from_str::<Answered>(text) {
            Ok(answered) => answered.errors.error,
            Err(_) => quick_xml::de::from_str::<AnsweredBySts>(text).ok()?.error,
        };
        let message = said.message.split(ENCODED).next().unwrap_or_default();
        Some(Self {
            service: call.service(),
            action: call.action(),
            code: said.code,
            message: message.trim_end_matches(['.', ' ']).to_owned(),
            origin: account.origin().to_owned(),
            is_temporary: account.credential().token.is_some(),
            ahead: None,
            is_server_error: false,
        })
    }

    /// The failure of an object that EC2 could not make after EC2 had accepted the call.
    pub(crate) fn of_failure(action: &'static str, account: &Account, code: &str, message: &str) -> Self {
        Self {
            service: Service::Ec2,
            action,
            code: code.to_owned(),
            message: message.to_owned(),
            origin: account.origin().to_owned(),
            is_temporary: account.credential().token.is_some(),
            ahead: None,
            is_server_error: false,
        }
    }

    /// The error with this sentence in the place of the sentence of a refusal.
    pub(crate) fn error_with(&self, sentence: String) -> Error {
        if self.is_fault() {
            return Error::transient(sentence);
        }
        self.error_of_code(sentence)
    }

    /// Whether EC2 failed, so that the call may have been carried out. A code outside of the lists of codes
    /// proves no refusal where the status is 5xx.
    fn is_fault(&self) -> bool {
        let code = self.code.as_str();
        let is_judged = THROTTLED.contains(&code) || WITHOUT_CAPACITY.contains(&code);
        is_of_service(code) || self.is_server_error && !is_judged
    }

    /// The keys are valid, and the image that the call names belongs to a different account.
    fn is_of_other_account(&self) -> bool {
        let names_image = matches!(self.action, "DescribeImages" | "RunInstances");
        self.code == AUTH_FAILURE && names_image && self.message.starts_with(OF_IMAGE)
    }

    /// The keys are valid, and a NAT gateway or a network interface still holds the address. EC2 reports this
    /// as a lack of rights.
    fn is_of_held_address(&self) -> bool {
        self.action == "ReleaseAddress" && self.code == AUTH_FAILURE && !self.message.contains(OF_KEYS)
    }

    fn error(&self) -> Error {
        let Self {
            service,
            action,
            code,
            message,
            origin,
            ..
        } = self;
        let service = service.title();
        let said = format!("{service} refuses {action}: {code} ({message})");
        if skew::is_cause(code, message, self.ahead) {
            return Error::transient(format!(
                "{said}; the clock of this process {}: correct the time of the node on which the process runs. The Secret \
                 {origin} is not the cause",
                skew::describe(self.ahead, service)
            ));
        }
        if self.is_fault() {
            return Error::transient(said);
        }
        if self.is_of_held_address() {
            return Error::config(
                ErrorCode::ErrRetryableInfraDependencies,
                format!(
                    "{said}; the address is still in use: if this stays, look in the account for the NAT gateway or network interface \
                     that holds the address, and delete it"
                ),
            );
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
            service,
            action,
            code,
            origin,
            ..
        } = self;
        let config = |code, to_do: String| Error::config(code, format!("{said}; {to_do}"));
        match code.as_str() {
            AUTH_FAILURE
            | "InvalidClientTokenId"
            | "SignatureDoesNotMatch"
            | "MissingAuthenticationToken"
            | "ExpiredToken"
            | "RequestExpired" => config(
                ErrorCode::ErrInfraUnauthenticated,
                if self.is_temporary {
                    format!(
                        "put temporary keys that have not expired, with their sessionToken, into the Secret {origin}"
                    )
                } else {
                    format!(
                        "correct accessKeyID and secretAccessKey in the Secret {origin}, or enable the region in the account"
                    )
                },
            ),
            "OptInRequired" | "PendingVerification" | "Blocked" => config(
                ErrorCode::ErrInfraDependencies,
                "the keys are valid: subscribe the account to the service or image, or let AWS verify the account".into(),
            ),
            "UnauthorizedOperation" | "AccessDenied" => config(
                ErrorCode::ErrInfraUnauthorized,
                format!("let the account of the Secret {origin} do {}:{action}", service.name()),
            ),
            "DependencyViolation" | "ResourceInUse" | "VolumeInUse" => config(
                // An object that was just removed blocks the call for a while, too.
                ErrorCode::ErrRetryableInfraDependencies,
                "if it stays, look in the account for what still uses it and take that away".into(),
            ),
            code if WITHOUT_CAPACITY.contains(&code) || code == "Unsupported" => config(
                ErrorCode::ErrInfraResourcesDepleted,
                "choose another machine type or zone, or wait".into(),
            ),
            "InsufficientFreeAddressesInSubnet" if *action == CREATE_NAT_GATEWAY => config(
                ErrorCode::ErrInfraQuotaExceeded,
                "free addresses in the public subnet of the zone".into(),
            ),
            "InsufficientFreeAddressesInSubnet" => config(
                ErrorCode::ErrInfraQuotaExceeded,
                "take larger networks for the workers, or fewer machines".into(),
            ),
            _ if self.is_of_quota() => config(
                ErrorCode::ErrInfraQuotaExceeded,
                "raise this quota of the account, or remove what is not needed".into(),
            ),
            // EC2 reports this code for a moment after an object was made. Later the code means that a user
            // has removed the object, and the object is made again.
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

/// The code for NAT gateways differs from the codes for all further kinds.
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
#[path = "refusal_tests.rs"]
mod tests;
