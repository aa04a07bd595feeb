//! How a Shoot is.

use crate::{
    derive::{Deserialize, JsonSchema, Serialize, Time, skip_serializing_none},
    meta::{Condition, GardenerInfo, LastError, LastOperation, LastOperationState},
};

use super::{
    FormerSeed, MigrationApproval, MigrationPreparation, Ownership, PendingWorkersRollout, SeedOwnerCheck,
    ShootCredentials, ZoneIsolation,
};

/// Observed state of the shoot and of the control plane.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShootStatus {
    /// Conditions of the shoot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Aspects that forbid operations, e.g. `ReadyForMigration`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Condition>,
    /// The gardenlet that acted last.
    pub gardener: Option<GardenerInfo>,
    /// Whether the shoot is hibernated. Default: false.
    #[serde(default)]
    pub hibernated: bool,
    /// Type, state and progress of the last operation on the shoot.
    pub last_operation: Option<LastOperation>,
    /// Errors of the last operation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_errors: Vec<LastError>,
    /// The generation that was acted on.
    pub observed_generation: Option<i64>,
    /// Hash of the specification, without `seedName`, that a seed reconciled last with success. A planned
    /// move begins once the present specification has this hash. Absent until a seed has reconciled the
    /// shoot.
    #[schemars(length(max = 64))]
    pub reconciled_spec_hash: Option<String>,
    /// Since when an operation is tried again and again.
    #[serde(default, deserialize_with = "crate::meta::time::writable_option")]
    pub retry_cycle_start_time: Option<Time>,
    /// The seed that hosts the shoot. Differs from `spec.seedName` while a move is wanted or running.
    pub seed_name: Option<String>,
    /// The name of the Seed in which the last creation, reconciliation or restoration of the control plane
    /// has succeeded. Removed when a move or a deletion begins. Equals the destination of a move only after
    /// the end of the move, so that `kubectl wait` can wait for this value.
    #[schemars(length(min = 1, max = 253))]
    pub settled_seed_name: Option<String>,
    /// Name of the namespace of the control plane in the seed. Empty until first reconciled.
    #[serde(rename = "technicalID", default, skip_serializing_if = "String::is_empty")]
    pub technical_id: String,
    /// Unique id of the shoot, the same after every move. Empty until first reconciled.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The `spec.dns.domain` that garden-controller-manager has reserved for this shoot alone. A gardenlet
    /// creates nothing for a domain before the reservation. Absent for a shoot without `spec.dns.domain`.
    #[schemars(length(max = 253))]
    pub reserved_domain: Option<String>,
    /// Unique identity of the cluster.
    pub cluster_identity: Option<String>,
    /// Addresses of the API server and further endpoints of the shoot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advertised_addresses: Vec<ShootAdvertisedAddress>,
    /// When the last move of the control plane began.
    pub migration_start_time: Option<Time>,
    /// Rotation and encryption of the shoot's credentials.
    pub credentials: Option<ShootCredentials>,
    /// When a schedule last hibernated the shoot or woke the shoot.
    pub last_hibernation_trigger_time: Option<Time>,
    /// Result of the last automatic maintenance.
    pub last_maintenance: Option<LastMaintenance>,
    /// Resources that are encrypted in etcd besides Secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub encrypted_resources: Vec<String>,
    /// Ranges of addresses in use.
    pub networking: Option<NetworkingStatus>,
    /// Pools that wait for an update in place.
    pub in_place_updates: Option<InPlaceUpdatesStatus>,
    /// Worker pools that wait for the user to replace the machines.
    pub manual_worker_pool_rollout: Option<ManualWorkerPoolRollout>,
    /// The preparation of a seed for the shoot, requested by annotation `migration.gardener.cloud/prepare`.
    /// Absent without a request. A move without downtime of the API does not exist yet.
    pub live_migration: Option<LiveMigrationStatus>,
    /// Ownership of the shoot: counts the hand-overs between seeds.
    pub ownership: Option<Ownership>,
    /// Seeds that hosted the shoot and still have leftovers to clean up. Each seed removes the own entry
    /// after the cleanup.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_seeds: Vec<FormerSeed>,
    /// Owner checks of the processes of each seed that may act for the shoot: the seed that has the shoot,
    /// and former seeds that may have left processes. The gardenlet of the seed that has the shoot writes an
    /// entry for the own seed, and removes entries of former seeds after the cleanup there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub owner_checks: Vec<SeedOwnerCheck>,
    /// The move that garden-controller-manager has approved, and the progress of this move. Absent while no
    /// move may begin, and removed after the end of the move.
    pub migration: Option<MigrationApproval>,
    /// The zone that was last cut off, or is, and how far that is. Absent while none ever was.
    pub zone_isolation: Option<ZoneIsolation>,
}

/// When a shoot was last looked after without being asked.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastMaintenance {
    /// Changes that the maintenance made.
    pub description: String,
    /// When the maintenance began.
    pub triggered_time: Time,
    /// Result of the maintenance.
    pub state: LastOperationState,
    /// Reason of a failed maintenance.
    pub failure_reason: Option<String>,
}

/// Networks in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkingStatus {
    /// Ranges of addresses of pods, in CIDR notation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<String>,
    /// Ranges of addresses of nodes, in CIDR notation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// Ranges of addresses of services, in CIDR notation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
    /// Source addresses of traffic from the shoot, in CIDR notation.
    #[serde(rename = "egressCIDRs", default, skip_serializing_if = "Vec::is_empty")]
    pub egress_cidrs: Vec<String>,
}

/// Pools that wait for an update in place.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InPlaceUpdatesStatus {
    /// Worker pools with machines that still wait for an update in place.
    pub pending_worker_updates: Option<PendingWorkerUpdates>,
}

/// Names of pools that wait for an update in place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingWorkerUpdates {
    /// Worker pools with an automatic update.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auto_in_place_update: Vec<String>,
    /// Worker pools with an update that the user begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manual_in_place_update: Vec<String>,
}

/// Worker pools that wait for the user to replace the machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManualWorkerPoolRollout {
    /// Worker pools with machines that still wait for a manual rollout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending_workers_rollouts: Vec<PendingWorkersRollout>,
}

/// The preparation of a seed for the shoot.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveMigrationStatus {
    /// The right of a seed to prepare. Absent while no seed may prepare.
    pub preparation: Option<MigrationPreparation>,
    /// Condition `Prepared`: the obstacle to a grant, or the parts that the seed has not prepared. Written by
    /// garden-controller-manager, and by the seed with the grant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// An address of an endpoint of the shoot.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShootAdvertisedAddress {
    /// Name of the address, such as `external`, `internal` or `service-account-issuer`.
    pub name: String,
    /// URL of the API server or of the issuer.
    pub url: String,
    /// The program that is found there.
    pub application: Option<String>,
}

impl ShootStatus {
    /// The epoch of the shoot's present history. A shoot that was never handed over is in the first epoch.
    #[must_use]
    pub fn epoch(&self) -> i64 {
        self.ownership.as_ref().map_or(1, |ownership| ownership.epoch)
    }

    /// The condition of that type.
    #[must_use]
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        crate::meta::find_condition(&self.conditions, type_)
    }

    /// The constraint of that type.
    #[must_use]
    pub fn constraint(&self, type_: &str) -> Option<&Condition> {
        crate::meta::find_condition(&self.constraints, type_)
    }
}

impl ShootStatus {
    /// The entry of a seed.
    #[must_use]
    pub fn owner_check_in(&self, seed: &str) -> Option<&SeedOwnerCheck> {
        self.owner_checks.iter().find(|entry| entry.seed_name == seed)
    }

    /// Whether a person has stated that no process of this former seed runs any more. A statement about an
    /// earlier residency does not cover a later residency.
    #[must_use]
    pub fn is_stated_off(&self, seed: &str) -> bool {
        let Some(ownership) = &self.ownership else {
            return false;
        };
        let stays = self.former_seeds.iter().chain(&ownership.source);
        let last = stays
            .filter(|stay| stay.name == seed)
            .map(|stay| stay.epoch)
            .max();
        last.is_some_and(|epoch| ownership.is_stated_off(seed, epoch))
    }

    /// All entries after a write of `entry`. Entries of seeds that neither have the shoot nor may have left
    /// processes of the shoot are removed.
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
