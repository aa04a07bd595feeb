//! What a seed is to a Shoot.

use api::gardencore::Shoot;

use crate::{hosting_seed, status, wanted_seed};

/// What a seed is to a Shoot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It hosts the shoot, or is to create it: it alone acts outside of itself and writes the Shoot.
    Owner,
    /// It is named by the specification and not by the status. It may prepare in itself, and writes nothing
    /// else.
    Incoming,
    /// It hosted the shoot in this epoch and cleans up what is its own; nothing outside of itself.
    Former {
        /// The newest of the epochs that it has not cleaned up yet.
        epoch: i64,
    },
    /// It has nothing to do with the Shoot.
    Nobody,
}

/// The role of the seed of that name. One that is to take over a shoot for the second time cleans up first.
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
    if wanted_seed(shoot) == Some(seed) {
        Role::Incoming
    } else {
        Role::Nobody
    }
}
