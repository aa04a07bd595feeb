//! The Shoot that an operation works with: a move keeps the approved specification.

use api::gardencore::{Shoot, ShootSpec, shoot::MigrationApproval};

use crate::{hosting_seed, journey::approval, operation::Operation, status};

/// The Shoot that an operation works with. A move keeps the approved specification from the begin to the end
/// of the restoration, so that an edit in the middle does not become an upgrade. The wanted seed and the
/// credentials come from the present Shoot. The generation is the generation of the approved specification.
///
/// # Errors
/// The approved specification is invalid.
pub fn traveller(shoot: &Shoot, operation: Operation) -> Result<Shoot, Unreadable> {
    let mut traveller = shoot.clone();
    if let Some(recorded) = recorded(shoot, operation) {
        let spec: ShootSpec = recorded
            .spec
            .decode()
            .map_err(|error| Unreadable(error.to_string()))?;
        traveller.spec = ShootSpec {
            seed_name: shoot.spec.seed_name.clone(),
            credentials_binding_name: shoot.spec.credentials_binding_name.clone(),
            secret_binding_name: shoot.spec.secret_binding_name.clone(),
            ..spec
        };
        traveller.metadata.generation = Some(recorded.generation);
    }
    Ok(traveller)
}

/// The approval of the move that the operation belongs to. A cancelled move no longer counts.
fn recorded(shoot: &Shoot, operation: Operation) -> Option<&MigrationApproval> {
    match operation {
        Operation::Migrate => approval(shoot),
        Operation::Restore => {
            let recorded = status(shoot)?.migration.as_ref()?;
            (Some(recorded.destination.as_str()) == hosting_seed(shoot)).then_some(recorded)
        }
        _ => None,
    }
}

/// `status.migration.spec` is not a valid specification of a Shoot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "status.migration.spec is not the specification of a Shoot: {0}; set spec.seedName back and name the destination again"
)]
pub struct Unreadable(String);
