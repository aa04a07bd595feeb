//! The approval of a move, the progress of the move, and the grant of a preparation.

use crate::derive::{Deserialize, JsonSchema, PackedExtension, Serialize, Time, skip_serializing_none};

/// The move that garden-controller-manager has approved (constraint `ReadyForMigration`), and the progress of
/// the move. Seeds write `progress` alone.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationApproval {
    /// The seed that hosted the shoot when the move was approved.
    pub source: String,
    /// The seed that may take the shoot over. A gardenlet hands the shoot over to no other seed.
    pub destination: String,
    /// The generation of the Shoot that was judged. A move begins with this generation only.
    pub generation: i64,
    /// The Shoot's specification for the whole move. Later edits of the specification take effect after the
    /// move.
    pub spec: PackedExtension,
    /// The step that runs now. Absent until the move begins.
    pub progress: Option<MigrationProgress>,
}

/// The step of a move that runs now. The gardenlet that works on the shoot writes the progress with each new
/// step, and at most every 5 s within a step.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationProgress {
    /// The name of the Seed whose gardenlet reports the progress.
    #[schemars(length(min = 1, max = 253))]
    pub seed_name: String,
    /// The step that runs now, as in `status.lastOperation.description`. Of several steps that run side by
    /// side, the step that started first.
    #[schemars(length(min = 1, max = 256))]
    pub step: String,
    /// The time at which the step started, by the clock of the gardenlet.
    #[serde(deserialize_with = "crate::meta::time::writable")]
    pub start_time: Time,
    /// The condition that the step waits for, or the error of the last attempt. Absent while the step does
    /// not wait.
    #[schemars(length(max = 1024))]
    pub awaited: Option<String>,
    /// Bytes of etcd backups that the destination has copied and verified so far. Absent where no backups are
    /// copied.
    #[schemars(range(min = 0))]
    pub copied_bytes: Option<i64>,
    /// Bytes of the etcd backups to copy, as far as the copy has listed these backups. The total grows while
    /// a source that does not answer adds backups. Absent where no backups are copied.
    #[schemars(range(min = 0))]
    pub total_bytes: Option<i64>,
}

/// The right of a seed to prepare in that seed for the shoot, while the source serves. The right ends when
/// the Shoot has a different uid, host or epoch, when the Shoot is being deleted, and when this field is
/// removed. Only garden-controller-manager writes this field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationPreparation {
    /// `metadata.uid` of the Shoot.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,
    /// Name of the Seed that hosted the shoot at the time of the grant.
    #[schemars(length(min = 1, max = 253))]
    pub source: String,
    /// Name of the Seed that may prepare.
    #[schemars(length(min = 1, max = 253))]
    pub destination: String,
    /// The ownership epoch of the shoot at the time of the grant.
    #[schemars(range(min = 1))]
    pub epoch: i64,
    /// Time after which the destination removes the preparation, and garden-controller-manager removes this
    /// field.
    pub expiry: Time,
}
