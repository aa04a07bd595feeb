//! What was last done with an object, how far it got, and what stood in the way.

use std::fmt;

use crate::derive::{Deserialize, JsonSchema, Serialize, Time, skip_serializing_none};

/// The operation that ran last, or still runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastOperation {
    /// Names of the running tasks, or a closing sentence.
    pub description: String,
    /// When this was last written. Readiness checks compare it with the timestamp annotation.
    pub last_update_time: Time,
    /// Percentage of tasks that are done.
    #[schemars(range(min = 0, max = 100))]
    pub progress: i32,
    /// State of the operation, such as `Processing`, `Succeeded`, `Error` or `Failed`.
    pub state: LastOperationState,
    /// Type of the operation, such as `Create`, `Reconcile`, `Migrate`, `Restore` or `Delete`.
    pub type_: LastOperationType,
}

/// What is being done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LastOperationType {
    /// It is made for the first time.
    Create,
    /// It is brought in line with its specification.
    Reconcile,
    /// It is taken down.
    Delete,
    /// It is prepared for being taken over by another seed.
    Migrate,
    /// It is taken over from another seed.
    Restore,
    /// It is moved while it keeps serving.
    LiveMigrate,
}

/// How an operation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LastOperationState {
    /// It runs.
    Processing,
    /// It ended well.
    Succeeded,
    /// It met an error and is tried again.
    Error,
    /// It is not tried again until somebody changes something.
    Failed,
    /// It waits for something before it starts.
    Pending,
    /// It was given up on purpose.
    Aborted,
}

/// One obstacle an operation met.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastError {
    /// What happened and what to do about it.
    pub description: String,
    /// Name of the task that met it.
    #[serde(rename = "taskID")]
    pub task_id: Option<String>,
    /// Codes of well-known causes, such as `ERR_INFRA_UNAUTHORIZED`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<ErrorCode>,
    /// When the error happened for the last time.
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
    /// Too many requests; asking again only makes it worse.
    ErrInfraRateLimitsExceeded,
    /// Something else in the account depends on, or is missing for, what is to be changed.
    ErrInfraDependencies,
    /// As before, but expected to go away by itself.
    ErrRetryableInfraDependencies,
    /// The provider has none left.
    ErrInfraResourcesDepleted,
    /// Objects in the shoot cannot be removed.
    ErrCleanupClusterResources,
    /// A specification or provider configuration is wrong.
    ErrConfigurationProblem,
    /// As before, but expected to go away by itself.
    ErrRetryableConfigurationProblem,
    /// A webhook in the shoot gets in the way.
    ErrProblematicWebhook,
}

impl ErrorCode {
    /// True if trying again is pointless until a user changes something: the operation's state becomes
    /// `Failed`.
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
