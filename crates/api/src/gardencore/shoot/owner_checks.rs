//! Which servers the processes of a shoot ask for its owner, seed by seed: what a destination has to know of a seed that is dead.

use crate::derive::{Deserialize, JsonSchema, Serialize, skip_serializing_none};

/// How the processes of one seed check the owner of a shoot. A destination that takes the shoot over waits until all `servers` of all
/// entries show the destination, and for the longest `fenceSeconds`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeedOwnerCheck {
    /// The name of the Seed whose processes this entry describes. The gardenlet of that seed writes the entry.
    #[schemars(length(min = 1, max = 253))]
    pub seed_name: String,
    /// The ownership epoch of the shoot in which the entry was written last.
    #[schemars(range(min = 1))]
    pub epoch: i64,
    /// The DNS servers that the process beside etcd asks for the owner records, as `address:port`. Empty until that process has
    /// answered once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 64)))]
    pub servers: Vec<String>,
    /// Whether the Seed names these servers (`true`), or the processes find them by the NS records of the zone (`false`). Absent until
    /// the process beside etcd has answered once.
    pub servers_named: Option<bool>,
    /// The time in seconds, rounded up, for which a destination has to wait until no process of this seed acts for the shoot any more.
    /// The value counts also when the Seed was deleted.
    #[schemars(range(min = 0))]
    pub fence_seconds: Option<i64>,
    /// The clock of the host that ends permits after a pause of the guest: `Rtc`, `Ptp` or `None`. Absent where the process beside etcd
    /// does not report it.
    #[schemars(length(max = 16))]
    pub host_clock: Option<String>,
    /// A hash of the owner terms (epoch, identity, zone, servers and settings) with which a create, reconcile or restore flow has last
    /// ended. Absent while no flow has ended with the terms that processes may have been given since.
    #[schemars(length(max = 64))]
    pub terms: Option<String>,
    /// The managers of machines or clouds that run without an owner check, as `Deployment <name>`. No fence stops these managers.
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

impl super::ShootStatus {
    /// The entry of a seed.
    #[must_use]
    pub fn owner_check_in(&self, seed: &str) -> Option<&SeedOwnerCheck> {
        self.owner_checks.iter().find(|entry| entry.seed_name == seed)
    }

    /// All entries after this one was written: entries of seeds that neither have the shoot nor may have left processes of it are
    /// removed.
    #[must_use]
    pub fn owner_checks_with(&self, entry: SeedOwnerCheck) -> Vec<SeedOwnerCheck> {
        let source = self
            .ownership
            .as_ref()
            .and_then(|ownership| ownership.source.as_ref());
        let may_have_left = |name: &str| {
            let mut formers = self.former_seeds.iter().chain(source);
            formers.any(|former| former.name == name)
        };
        let others = self
            .owner_checks
            .iter()
            .filter(|other| other.seed_name != entry.seed_name && may_have_left(&other.seed_name));
        let mut all: Vec<_> = others.cloned().collect();
        all.push(entry);
        all.sort_by(|one, other| one.seed_name.cmp(&other.seed_name));
        all
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;
    use crate::gardencore::ShootStatus;

    #[test]
    fn entries_of_seeds_that_may_have_left_processes_stay() {
        let status: ShootStatus = serde_json::from_value(json!({
            "seedName": "d", "formerSeeds": [{"name": "b", "epoch": 3}],
            "ownership": {"epoch": 4, "phase": "Claiming", "source": {"name": "a", "epoch": 2}},
            "ownerChecks": [{"seedName": "a", "epoch": 2}, {"seedName": "b", "epoch": 3}, {"seedName": "c", "epoch": 1},
                {"seedName": "d", "epoch": 1, "servers": ["192.0.2.1:53"]}],
        }))
        .unwrap();
        let own = SeedOwnerCheck {
            seed_name: "d".into(),
            epoch: 4,
            ..SeedOwnerCheck::default()
        };
        let written = status.owner_checks_with(own);
        let names: Vec<_> = written
            .iter()
            .map(|entry| (entry.seed_name.as_str(), entry.epoch, entry.servers.len()))
            .collect();
        assert_eq!(names, [("a", 2, 0), ("b", 3, 0), ("d", 4, 0)]);
        assert_eq!(status.owner_check_in("b").unwrap().epoch, 3);
    }
}
