//! The DNS servers that the processes of a shoot ask for the owner, by seed: needed by a destination when the
//! former seed is dead.

use crate::derive::{Deserialize, JsonSchema, Serialize, skip_serializing_none};

/// Owner checks of the processes of a seed for a shoot. A destination that takes the shoot over waits until
/// all `servers` of all entries show the destination, and for the longest `fenceSeconds`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeedOwnerCheck {
    /// The name of the Seed whose processes this entry describes. The gardenlet of that seed writes the
    /// entry.
    #[schemars(length(min = 1, max = 253))]
    pub seed_name: String,
    /// The ownership epoch of the shoot in which the entry was written last.
    #[schemars(range(min = 1))]
    pub epoch: i64,
    /// The DNS name of the owner record that the processes ask for, as configured by the last create,
    /// reconcile or restore flow. Absent until a flow has ended.
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// The DNS zone of that record, as configured by the same flow. A destination whose record has a
    /// different name or zone cannot fence this seed.
    #[schemars(length(min = 1, max = 253))]
    pub zone: Option<String>,
    /// The DNS servers that the process beside etcd asks for the owner records, as `address:port`. Empty
    /// until that process has answered once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 64)))]
    pub servers: Vec<String>,
    /// Whether the Seed names these servers (`true`), or the processes find the servers by the NS records of
    /// the zone (`false`). Absent until the first answer of the process beside etcd.
    pub servers_named: Option<bool>,
    /// The time in seconds, rounded up, for which a destination has to wait until no process of this seed
    /// acts for the shoot any more. The value counts also when the Seed was deleted.
    #[schemars(range(min = 0))]
    pub fence_seconds: Option<i64>,
    /// The clock of the host that ends permits after a pause of the guest: `Rtc`, `Ptp` or `None`. Absent
    /// where the process beside etcd does not report the clock.
    #[schemars(length(max = 16))]
    pub host_clock: Option<String>,
    /// A hash of the owner terms (epoch, identity, zone, servers and settings) of the last create, reconcile
    /// or restore flow that has ended. Absent while processes may have newer terms than the last flow that
    /// has ended.
    #[schemars(length(max = 64))]
    pub terms: Option<String>,
    /// The managers of machines or clouds that run without an owner check, as `Deployment <name>`. No fence
    /// stops these managers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 300)))]
    pub unchecked: Vec<String>,
}

impl SeedOwnerCheck {
    /// Whether permits of the seed end after a pause of the guest by the hypervisor.
    #[must_use]
    pub fn reads_host_clock(&self) -> bool {
        matches!(self.host_clock.as_deref(), Some("Rtc" | "Ptp"))
    }
}
