//! Who acts on a shoot, as what, and under which names. Pure: no client, no clock.
//!
//! Promises
//! - Of one Shoot at most one seed is [`Role::Owner`], whatever its specification and status say (I1). Nobody
//!   derives that a second time.
//! - What is wanted of the owner follows from the object alone ([`wanted`]), so that a process that was
//!   killed goes on where it was.
//! - Every name of a shoot that must be the same on every seed is made in [`names`].
//!
//! | file | what |
//! |---|---|
//! | `role` | owner, incoming, former, nobody |
//! | `journey` | where a Shoot is between two seeds, and the approval of its move |
//! | `reconciled` | whether the present specification was reconciled |
//! | `traveller` | the Shoot with which an operation works |
//! | `record` | what its status says of its ownership |
//! | `operation` | what is done with a Shoot, and what is wanted of its owner |
//! | `extensions` | which further extensions a shoot has, and when each is handled |
//! | `registered` | which extensions a shoot needs, and which are not registered |
//! | `isolation` | which zone of a shoot is cut off |
//! | `pause` | whether new reconciliations are held back |
//! | `remembered` | what is kept of a Shoot by whoever watches all of them |
//! | `owner_terms` | the hash of the owner terms of a Seed |
//! | `names` | technical id, uid, domains, networks, BackupEntry |

pub mod extensions;
pub mod isolation;
pub mod journey;
pub mod names;
pub mod operation;
pub mod owner_terms;
pub mod pause;
pub mod reconciled;
pub mod record;
pub mod registered;
pub mod remembered;
pub mod role;
pub mod traveller;

pub use extensions::Extensions;
pub use isolation::Isolation;
pub use journey::{Journey, approval, is_move_wanted, journey};
pub use names::Names;
pub use operation::{Operation, Wanted, is_claimed, is_confirmed, wanted};
pub use pause::{Pause, pause};
pub use reconciled::{is_reconciled, spec_hash};
pub use remembered::{its_place_alone, remembered};
pub use role::{Role, role};
pub use traveller::traveller;

use api::gardencore::{Shoot, shoot::ShootStatus};

/// Whether the Shoot's user wants it to sleep.
#[must_use]
pub fn is_to_sleep(shoot: &Shoot) -> bool {
    let hibernation = shoot.spec.hibernation.as_ref();
    hibernation.and_then(|hibernation| hibernation.enabled) == Some(true)
}

/// Whether all of it sleeps: it has no machines, and nothing of its control plane runs.
#[must_use]
pub fn is_asleep(shoot: &Shoot) -> bool {
    status(shoot).is_some_and(|status| status.hibernated)
}

/// The name that is there and not empty.
fn named(name: Option<&str>) -> Option<&str> {
    name.filter(|name| !name.is_empty())
}

/// The seed that the specification names.
fn wanted_seed(shoot: &Shoot) -> Option<&str> {
    named(shoot.spec.seed_name.as_deref())
}

/// The seed that the status names.
fn hosting_seed(shoot: &Shoot) -> Option<&str> {
    named(status(shoot)?.seed_name.as_deref())
}

fn status(shoot: &Shoot) -> Option<&ShootStatus> {
    shoot.status.as_ref()
}

#[cfg(test)]
mod tests;
