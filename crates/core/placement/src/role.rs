//! The role of a seed for a Shoot.

use api::gardencore::Shoot;

use crate::{hosting_seed, preparation::preparation_in, status, wanted_seed};

/// The role of a seed for a Shoot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The seed hosts the shoot, or has to create the shoot. Only the owner acts outside the seed and writes
    /// the Shoot.
    Owner,
    /// The specification names the seed and the status does not, or a valid grant names the seed
    /// ([`preparation_in`]). Only with a grant does the seed prepare, inside the seed. Of the Shoot, the seed
    /// writes condition `Prepared` alone.
    Incoming,
    /// The seed hosted the shoot in this epoch and cleans up the seed's own objects; the seed changes no
    /// external resource.
    Former {
        /// The newest epoch that the seed has not cleaned up yet.
        epoch: i64,
    },
    /// The seed has no relation to the Shoot.
    Nobody,
}

/// The role of the seed of that name. A seed that is to take over a shoot for the second time cleans up
/// first.
#[must_use]
pub fn role(shoot: &Shoot, seed: &str) -> Role {
    match hosting_seed(shoot) {
        Some(host) if host == seed => return Role::Owner,
        None if wanted_seed(shoot) == Some(seed) => return Role::Owner,
        _ => {}
    }
    let former = status(shoot).into_iter().flat_map(|status| &status.former_seeds);
    if let Some(epoch) = former
        .filter(|former| former.name == seed)
        .map(|former| former.epoch)
        .max()
    {
        return Role::Former { epoch };
    }
    if wanted_seed(shoot) == Some(seed) || preparation_in(shoot, seed).is_some() {
        Role::Incoming
    } else {
        Role::Nobody
    }
}
