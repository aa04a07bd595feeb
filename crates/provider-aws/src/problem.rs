//! What somebody has to correct.

use api::meta::ErrorCode;
use runtime::Error;

/// Something in the shoot, its profile or its objects is not as this provider needs it. `message` says what
/// to do.
pub(crate) fn problem(message: impl Into<String>) -> Error {
    Error::config(ErrorCode::ErrConfigurationProblem, message.into())
}
