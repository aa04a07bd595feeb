//! Errors that a user has to correct.

use api::meta::ErrorCode;
use runtime::Error;

/// The error for a setting in the shoot, in the profile or in an object that this provider does not accept.
/// `message` states the remedy.
pub(crate) fn problem(message: impl Into<String>) -> Error {
    Error::config(ErrorCode::ErrConfigurationProblem, message.into())
}
