//! The parts of a Shoot that tell an operator where the shoot is.

use api::{
    constants::SHOOT_STATUS,
    gardencore::{
        Shoot,
        shoot::{FormerSeed, MigrationProgress, OwnershipPhase},
    },
    meta::{Condition, ConditionStatus, LastError, LastOperation},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use placement::{Journey, journey};
use serde::Serialize;

/// The report of a shoot.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShootReport {
    /// Namespace of the Shoot.
    pub namespace: String,
    /// Name of the Shoot.
    pub name: String,
    /// The seed that acts for the shoot (`status.seedName`).
    pub acting_seed: Option<String>,
    /// The seed of the specification (`spec.seedName`).
    pub wanted_seed: Option<String>,
    /// The seed with the complete control plane (`status.settledSeedName`).
    pub settled_seed: Option<String>,
    /// The progress of the move: `Settled`, `Leaving`, `Arriving` or `Restoring`.
    pub journey: String,
    /// The last operation.
    pub operation: Option<LastOperation>,
    /// The step of a move that runs now.
    pub progress: Option<MigrationProgress>,
    /// The ownership epoch.
    pub epoch: i64,
    /// The phase of the ownership epoch.
    pub phase: Option<OwnershipPhase>,
    /// Seeds that still clean up.
    pub former_seeds: Vec<FormerSeed>,
    /// Constraints of the shoot.
    pub constraints: Vec<Condition>,
    /// Conditions that do not hold.
    pub failing_conditions: Vec<Condition>,
    /// The last errors, with codes.
    pub errors: Vec<LastError>,
    /// The label that takes all conditions together.
    pub health: Option<String>,
    /// The time of the creation.
    pub created: Option<Time>,
}

impl ShootReport {
    /// The report of a Shoot.
    #[must_use]
    pub fn new(shoot: &Shoot) -> Self {
        let status = shoot.status.clone().unwrap_or_default();
        let fails = |condition: &Condition| condition.status != ConditionStatus::True;
        Self {
            namespace: shoot.namespace().unwrap_or_default(),
            name: shoot.name_any(),
            wanted_seed: shoot.spec.seed_name.clone(),
            journey: format!("{:?}", journey(shoot)),
            epoch: status.epoch(),
            phase: status.ownership.as_ref().and_then(|ownership| ownership.phase),
            acting_seed: status.seed_name,
            settled_seed: status.settled_seed_name,
            operation: status.last_operation,
            progress: status
                .migration
                .and_then(|migration| migration.progress)
                .filter(|_| journey(shoot) != Journey::Settled),
            former_seeds: status.former_seeds,
            constraints: status.constraints,
            failing_conditions: status.conditions.into_iter().filter(fails).collect(),
            errors: status.last_errors,
            health: shoot.labels().get(SHOOT_STATUS).cloned(),
            created: shoot.creation_timestamp(),
        }
    }

    /// Whether the specification names a different seed than the status.
    #[must_use]
    pub fn is_to_move(&self) -> bool {
        self.wanted_seed.is_some() && self.acting_seed.is_some() && self.wanted_seed != self.acting_seed
    }
}
