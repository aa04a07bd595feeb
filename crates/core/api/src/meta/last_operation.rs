//! The last operation on an object, with the progress and the errors.

use std::fmt;

use crate::derive::{Deserialize, JsonSchema, Serialize, Time, skip_serializing_none};

/// The operation that ran last, or still runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastOperation {
    /// Names of the running tasks, or a closing sentence.
    pub description: String,
    /// When this was last written. Readiness checks compare the time with the timestamp annotation.
    #[serde(deserialize_with = "crate::meta::time::writable")]
    pub last_update_time: Time,
    /// Percentage of tasks that are done.
    #[schemars(range(min = 0, max = 100))]
    pub progress: i32,
    /// State of the operation, such as `Processing`, `Succeeded`, `Error` or `Failed`.
    pub state: LastOperationState,
    /// Type of the operation, such as `Create`, `Reconcile`, `Migrate`, `Restore` or `Delete`.
    pub type_: LastOperationType,
}

/// Type of the operation on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LastOperationType {
    /// The object is created for the first time.
    Create,
    /// The object is reconciled with the specification.
    Reconcile,
    /// The object is deleted.
    Delete,
    /// The object is prepared for a takeover by another seed.
    Migrate,
    /// The object is taken over from another seed.
    Restore,
    /// The object is moved while the API stays available.
    LiveMigrate,
}

/// How an operation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LastOperationState {
    /// The operation runs.
    Processing,
    /// The operation has succeeded.
    Succeeded,
    /// The operation failed and is retried.
    Error,
    /// The operation failed, and is not retried before a change of the object.
    Failed,
    /// The operation waits before the start.
    Pending,
    /// The operation was cancelled.
    Aborted,
}

/// An error of an operation.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastError {
    /// Description of the error, with the remedy.
    pub description: String,
    /// Name of the task that failed.
    #[serde(rename = "taskID")]
    pub task_id: Option<String>,
    /// Codes of well-known causes, such as `ERR_INFRA_UNAUTHORIZED`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<ErrorCode>,
    /// When the error happened for the last time.
    #[serde(default, deserialize_with = "crate::meta::time::writable_option")]
    pub last_update_time: Option<Time>,
}

/// Well-known causes of errors, as users and dashboards match on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// Credentials are missing or wrong.
    ErrInfraUnauthenticated,
    /// Credentials lack a permission.
    ErrInfraUnauthorized,
    /// A quota of the account is used up.
    ErrInfraQuotaExceeded,
    /// Too many requests; retries only make the problem worse.
    ErrInfraRateLimitsExceeded,
    /// Another resource in the account depends on the resource to change, or is missing for the change.
    ErrInfraDependencies,
    /// As `ErrInfraDependencies`, but expected to pass without a change.
    ErrRetryableInfraDependencies,
    /// The provider has none left.
    ErrInfraResourcesDepleted,
    /// Objects in the shoot cannot be removed.
    ErrCleanupClusterResources,
    /// A specification or provider configuration is wrong.
    ErrConfigurationProblem,
    /// As `ErrConfigurationProblem`, but expected to pass without a change.
    ErrRetryableConfigurationProblem,
    /// A webhook in the shoot gets in the way.
    ErrProblematicWebhook,
}

impl ErrorCode {
    /// True if a retry is pointless until a user changes the object: the operation's state becomes `Failed`.
    #[must_use]
    pub fn is_non_retryable(self) -> bool {
        matches!(
            self,
            Self::ErrInfraUnauthenticated
                | Self::ErrInfraUnauthorized
                | Self::ErrInfraDependencies
                | Self::ErrInfraQuotaExceeded
                | Self::ErrInfraRateLimitsExceeded
                | Self::ErrConfigurationProblem
                | Self::ErrProblematicWebhook
        )
    }
}

impl fmt::Display for LastOperationType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl fmt::Display for LastOperationState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
