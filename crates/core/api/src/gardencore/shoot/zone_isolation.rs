//! A zone that is cut off from a shoot (GEP-21, RZ-04).

use crate::derive::{Deserialize, JsonSchema, Serialize, Time, skip_serializing_none};

/// The zone that is isolated or was isolated last, and the progress. The gardenlet of the shoot's seed writes
/// this status.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ZoneIsolation {
    /// The zone, as the provider's physical ID.
    #[serde(rename = "isolatedZoneID")]
    pub isolated_zone_id: String,
    /// The account's name of the zone. Absent until the provider has reported the name.
    pub isolated_zone_code: Option<String>,
    /// Whether the zone is left, or taken back.
    pub phase: ZoneIsolationPhase,
    /// State of the current phase.
    pub status: ZoneIsolationStatus,
    /// The time by which the network of the zone is closed, even if machines are left in the zone: 15 minutes
    /// after the begin of the failover, unless the gardenlet has another setting. Annotation
    /// `shoot.gardener.cloud/isolated-zone-close-now` sets the present time. Absent in a failback.
    #[serde(default, deserialize_with = "crate::meta::time::writable_option")]
    pub close_deadline_time: Option<Time>,
    /// When any of this last changed.
    #[serde(deserialize_with = "crate::meta::time::writable")]
    pub last_update_time: Time,
}

/// Whether a zone is left, or taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ZoneIsolationPhase {
    /// The machines of the zone are deleted, then the network of the zone is closed.
    Failover,
    /// The network of the zone is opened, then the machines are created again.
    Failback,
}

/// How far a failover or a failback is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ZoneIsolationStatus {
    /// The operation is requested, and waits for the end of a different operation.
    Pending,
    /// The operation runs, or is retried.
    InProgress,
    /// The operation was cancelled before the end: all changes are undone.
    Aborting,
    /// The operation is done.
    Done,
    /// The operation was refused, or given up. The condition `ZoneIsolation` gives the reason.
    Failed,
}

impl ZoneIsolation {
    /// Whether the isolation has ended completely: the zone is like every other zone.
    #[must_use]
    pub fn is_over(&self) -> bool {
        (self.phase, self.status) == (ZoneIsolationPhase::Failback, ZoneIsolationStatus::Done)
    }
}
