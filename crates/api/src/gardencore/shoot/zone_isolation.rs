//! A zone that is cut off from a shoot (GEP-21, RZ-04).

use crate::derive::{Deserialize, JsonSchema, Serialize, Time, skip_serializing_none};

/// The zone that was last cut off, or is, and how far that is. The gardenlet of the shoot's seed writes it.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ZoneIsolation {
    /// The zone, by the provider's physical ID of it.
    #[serde(rename = "isolatedZoneID")]
    pub isolated_zone_id: String,
    /// What the shoot's account calls it. Absent until its provider has said so.
    pub isolated_zone_code: Option<String>,
    /// Whether the zone is left, or taken back.
    pub phase: ZoneIsolationPhase,
    /// State of the current phase.
    pub status: ZoneIsolationStatus,
    /// The time by which the network of the zone is closed, whatever is left in the zone: 15 minutes after
    /// the failover has begun, unless the gardenlet has another setting. Annotation
    /// `shoot.gardener.cloud/isolated-zone-close-now` sets the present time. Absent in a failback.
    pub close_deadline_time: Option<Time>,
    /// When any of this last changed.
    pub last_update_time: Time,
}

/// Whether a zone is left, or taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ZoneIsolationPhase {
    /// Its machines go, then its network is closed.
    Failover,
    /// Its network is opened, then its machines are made again.
    Failback,
}

/// How far a failover or a failback is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ZoneIsolationStatus {
    /// It is asked for, and waits for something else to end.
    Pending,
    /// It runs, or is tried again.
    InProgress,
    /// It was called off before its end: what it has done is undone.
    Aborting,
    /// It is all done.
    Done,
    /// It was refused, or given up. The condition `ZoneIsolation` says why.
    Failed,
}

impl ZoneIsolation {
    /// Whether nothing of it is left: the zone is as any other.
    #[must_use]
    pub fn is_over(&self) -> bool {
        (self.phase, self.status) == (ZoneIsolationPhase::Failback, ZoneIsolationStatus::Done)
    }
}
