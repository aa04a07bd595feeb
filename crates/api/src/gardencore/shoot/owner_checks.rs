//! Which servers the processes of a shoot ask for its owner, seed by seed: what a destination has to know of
//! a seed that is dead.

use crate::derive::{Deserialize, JsonSchema, Serialize, skip_serializing_none};

/// How the processes of one seed check the owner of a shoot. A destination that takes the shoot over waits
/// until all `servers` of all entries show the destination, and for the longest `fenceSeconds`.
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
    /// The DNS name of the owner record that the processes ask for, as the last create, reconcile or restore
    /// flow has configured it. Absent until a flow has ended.
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
    /// The DNS zone of that record, as the same flow has configured it. A destination whose record has any
    /// other name or zone cannot fence this seed.
    #[schemars(length(min = 1, max = 253))]
    pub zone: Option<String>,
    /// The DNS servers that the process beside etcd asks for the owner records, as `address:port`. Empty
    /// until that process has answered once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 64)))]
    pub servers: Vec<String>,
    /// Whether the Seed names these servers (`true`), or the processes find them by the NS records of the
    /// zone (`false`). Absent until the process beside etcd has answered once.
    pub servers_named: Option<bool>,
    /// The time in seconds, rounded up, for which a destination has to wait until no process of this seed
    /// acts for the shoot any more. The value counts also when the Seed was deleted.
    #[schemars(range(min = 0))]
    pub fence_seconds: Option<i64>,
    /// The clock of the host that ends permits after a pause of the guest: `Rtc`, `Ptp` or `None`. Absent
    /// where the process beside etcd does not report it.
    #[schemars(length(max = 16))]
    pub host_clock: Option<String>,
    /// A hash of the owner terms (epoch, identity, zone, servers and settings) with which a create, reconcile
    /// or restore flow has last ended. Absent while no flow has ended with the terms that processes may have
    /// been given since.
    #[schemars(length(max = 64))]
    pub terms: Option<String>,
    /// The managers of machines or clouds that run without an owner check, as `Deployment <name>`. No fence
    /// stops these managers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 300)))]
    pub unchecked: Vec<String>,
}

impl SeedOwnerCheck {
    /// Whether permits of the seed end after a pause of the guest by its hypervisor.
    #[must_use]
    pub fn reads_host_clock(&self) -> bool {
        matches!(self.host_clock.as_deref(), Some("Rtc" | "Ptp"))
    }
}
