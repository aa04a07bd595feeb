//! The Shoot that an operation works with: a move keeps the approved specification.

use api::gardencore::{
    Shoot, ShootSpec,
    shoot::{DNS, MigrationApproval},
};

use crate::{hosting_seed, journey::approval, operation::Operation, status};

/// The Shoot that an operation works with. A move keeps the approved specification from the begin to the end
/// of the restoration, so that an edit in the middle does not become an upgrade. The wanted seed, the
/// credentials and the DNS providers come from the present Shoot, because the rights of a seed to Secrets
/// follow the present Shoot. The generation is the generation of the approved specification.
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
            dns: with_present_providers(spec.dns, shoot),
            ..spec
        };
        traveller.metadata.generation = Some(recorded.generation);
    }
    Ok(traveller)
}

/// The approved domain with the present providers. An approved specification without `dns` needs no provider.
fn with_present_providers(approved: Option<DNS>, shoot: &Shoot) -> Option<DNS> {
    let present = shoot.spec.dns.as_ref();
    let providers = present.map(|dns| dns.providers.clone()).unwrap_or_default();
    approved.map(|approved| DNS {
        providers,
        ..approved
    })
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
