//! The acting seed of a shoot, the roles of seeds, and the derived names. Pure: no client, no clock.
//!
//! This crate promises:
//! - At most one seed is [`Role::Owner`] of a Shoot, for every specification and status (I1). No code derives
//!   the role a second time.
//! - The wanted operation follows from the object alone ([`wanted`]), so that a restarted process continues
//!   with the same operation.
//! - Every name of a shoot that must be the same on every seed is derived in [`names`].
//!
//! | file | purpose |
//! |---|---|
//! | `role` | owner, incoming, former, nobody |
//! | `journey` | the progress of a Shoot between two seeds, and the approval of the move |
//! | `reconciled` | whether the present specification was reconciled |
//! | `bounded_status` | the status of a Shoot that leaves the next seed room for its own writes |
//! | `last_errors` | the errors in the status of a Shoot: builds, extends and bounds the list |
//! | `traveller` | the Shoot that an operation works with |
//! | `ownership_status` | the recorded ownership in the status |
//! | `operation` | the operations on a Shoot, and the wanted operation |
//! | `extensions` | the further extensions of a shoot, and the phase of each |
//! | `registered` | the extensions that a shoot needs, and missing registrations |
//! | `isolation` | the isolated zone of a shoot |
//! | `pause` | whether new reconciliations are held back |
//! | `preparation` | the grant by which a seed prepares for a shoot of a different seed |
//! | `trim` | the part of a Shoot that a watch of all Shoots keeps |
//! | `owner_terms` | the hash of the owner terms of a Seed |
//! | `seed_choice` | whether a seed may host a shoot |
//! | `seed_use` | whether a Shoot or a BackupEntry needs a Seed |
//! | `takeover` | the conditions of a takeover that the status of the Shoot reports |
//! | `credentials` | the Secrets of the garden that a seed reads |
//! | `domain` | the domain of a Shoot before the reservation |
//! | `release` | finalizer `gardener`, and Shoots in deletion without the finalizer |
//! | `names` | technical id, uid, domains, networks, BackupEntry |

pub mod bounded_status;
pub mod credentials;
pub mod domain;
pub mod extensions;
pub mod isolation;
pub mod journey;
pub mod last_errors;
pub mod names;
pub mod operation;
pub mod owner_terms;
pub mod ownership_status;
pub mod pause;
pub mod preparation;
pub mod reconciled;
pub mod registered;
pub mod release;
pub mod role;
pub mod seed_choice;
pub mod seed_use;
pub mod takeover;
pub mod traveller;
pub mod trim;

pub use domain::{is_hosted, unreserved_domain};
pub use extensions::Extensions;
pub use isolation::Isolation;
pub use journey::{Journey, approval, has_earlier_epoch, is_move_wanted, journey};
pub use names::Names;
pub use operation::{Operation, OwnerAction, is_claimed, is_confirmed, is_half_created, wanted};
pub use pause::{Pause, pause};
pub use preparation::{
    entry_of_preparation, grant_id, preparation, preparation_entry_name, preparation_in,
    preparation_state_name, recorded_preparation, shoot_of_preparation_state,
};
pub use reconciled::{is_reconciled, spec_hash};
pub use release::{is_kept, is_released};
pub use role::{Role, role};
pub use traveller::traveller;
pub use trim::{seed_name_alone, trim_spec};

use api::gardencore::{Shoot, shoot::ShootStatus};

/// Whether the Shoot's user wants the shoot to hibernate.
#[must_use]
pub fn is_to_sleep(shoot: &Shoot) -> bool {
    let hibernation = shoot.spec.hibernation.as_ref();
    hibernation.and_then(|hibernation| hibernation.enabled) == Some(true)
}

/// Whether the whole shoot hibernates: no machines exist, and no part of the control plane runs.
#[must_use]
pub fn is_asleep(shoot: &Shoot) -> bool {
    status(shoot).is_some_and(|status| status.hibernated)
}

/// Whether the shoot hibernates, and a user wants so. The seed alone reports hibernation, and no seed writes
/// the specification.
#[must_use]
pub fn is_asleep_on_request(shoot: &Shoot) -> bool {
    is_asleep(shoot) && is_to_sleep(shoot)
}

/// The name, if present and not empty.
fn named(name: Option<&str>) -> Option<&str> {
    name.filter(|name| !name.is_empty())
}

/// The seed in the specification.
fn wanted_seed(shoot: &Shoot) -> Option<&str> {
    named(shoot.spec.seed_name.as_deref())
}

/// The seed in the status.
fn hosting_seed(shoot: &Shoot) -> Option<&str> {
    named(status(shoot)?.seed_name.as_deref())
}

fn status(shoot: &Shoot) -> Option<&ShootStatus> {
    shoot.status.as_ref()
}

#[cfg(test)]
mod tests;
