//! The size of a state that a seed restores. A restore writes the whole state into the etcd of the seed, so a
//! hostile or broken source must not fill that etcd. The size is checked before a planned move stops the
//! first process. A restore of a larger state takes the keys of the shoot alone: the keys stand in the
//! ShootState, because this content is small.

use api::gardencore::{Shoot, StateInChunks};
use kube::ResourceExt as _;
use placement::Operation;
use runtime::{Error, Result, client::Garden};

use super::place::StateStore;
use crate::configuration_problem;

/// The most bytes that this operation may restore in a seed with this limit. The flows of a seed that has the
/// state already have no limit, so that a large state blocks neither a reconciliation nor a deletion.
pub(super) fn of_operation(operation: Operation, limit: u64) -> Option<u64> {
    (operation == Operation::Restore).then_some(limit)
}

/// Fails if the state is too large.
pub(super) fn check(shoot_state: &str, bytes: u64, limit: Option<u64>) -> Result<()> {
    match limit {
        Some(limit) if bytes > limit => Err(too_large(shoot_state, bytes, limit)),
        _ => Ok(()),
    }
}

/// Fails if the ShootState declares a larger state than a seed with this limit restores.
pub(super) async fn check_declared(garden: &Garden, shoot: &Shoot, limit: u64) -> Result<()> {
    let place = StateStore::new(garden, &shoot.namespace().unwrap_or_default(), &shoot.name_any());
    let state = place.state(&shoot.uid().unwrap_or_default()).await?;
    let chunks = state.and_then(|state| state.spec.in_chunks.clone());
    chunks.map_or(Ok(()), |chunks| {
        check(&place.name, declared_size(&chunks), Some(limit))
    })
}

/// The size according to the ShootState.
pub(super) fn declared_size(chunks: &StateInChunks) -> u64 {
    u64::try_from(chunks.size).unwrap_or_default()
}

fn too_large(shoot_state: &str, bytes: u64, limit: u64) -> Error {
    configuration_problem(format!(
        "ShootState {shoot_state} has at least {bytes} bytes, and a restore in this seed writes at most {limit} bytes into the etcd of the \
         seed: only the keys of the shoot are restored. Remove Secrets with the label persist=true and states of extensions that the shoot \
         does not need, or raise --shoot-state-limit-mebibytes of the gardenlets if the etcd of each seed has the room"
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_state_up_to_the_limit_is_restored() {
        assert!(check("web", 100, Some(100)).is_ok());
        assert!(check("web", u64::MAX, None).is_ok());
        let refused = check("web", 101, Some(100)).unwrap_err();
        assert_eq!(refused.class(), "Config");
        assert!(
            refused.to_string().contains("--shoot-state-limit-mebibytes"),
            "{refused}"
        );
    }

    #[test]
    fn a_negative_size_is_no_size() {
        let size = |size| StateInChunks {
            size,
            ..StateInChunks::default()
        };
        assert_eq!(declared_size(&size(-1)), 0);
        assert_eq!(declared_size(&size(7)), 7);
    }
}
