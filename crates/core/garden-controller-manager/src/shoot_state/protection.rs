//! Whether a ShootState is still needed: a pure decision.

use api::{
    gardencore::Shoot,
    meta::{LastOperationState, LastOperationType},
};

/// The finalizer that keeps a ShootState.
pub use api::constants::finalizer::SHOOT_STATE as FINALIZER;

/// Needed from the beginning of a migration to the recorded success of the restore that follows. A deleted
/// shoot needs no protection.
#[must_use]
pub fn needs_protection(shoot: Option<&Shoot>) -> bool {
    let operation = shoot
        .and_then(|s| s.status.as_ref())
        .and_then(|s| s.last_operation.as_ref());
    operation.is_some_and(|operation| match operation.type_ {
        LastOperationType::Migrate => true,
        LastOperationType::Restore => operation.state != LastOperationState::Succeeded,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use LastOperationState::{Aborted, Error, Failed, Pending, Processing, Succeeded};
    use LastOperationType::{Create, Delete, Migrate, Reconcile, Restore};
    use api::{
        gardencore::{ShootSpec, ShootStatus},
        meta::LastOperation,
    };
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

    use super::*;

    fn shoot(type_: LastOperationType, state: LastOperationState) -> Shoot {
        let mut shoot = Shoot::new("s", ShootSpec::default());
        let operation = LastOperation {
            description: String::new(),
            last_update_time: Time(Timestamp::UNIX_EPOCH),
            progress: 0,
            state,
            type_,
        };
        shoot.status = Some(ShootStatus {
            last_operation: Some(operation),
            ..ShootStatus::default()
        });
        shoot
    }

    fn needed(type_: LastOperationType, state: LastOperationState) -> bool {
        needs_protection(Some(&shoot(type_, state)))
    }

    #[test]
    fn from_the_begin_of_the_migration_to_the_end_of_the_restore() {
        for state in [Pending, Processing, Error, Failed, Aborted, Succeeded] {
            assert!(needed(Migrate, state));
            assert_eq!(needed(Restore, state), state != Succeeded);
            assert!(!needed(Create, state) && !needed(Reconcile, state) && !needed(Delete, state));
        }
        assert!(!needs_protection(None));
        assert!(!needs_protection(Some(&Shoot::new("s", ShootSpec::default()))));
    }
}
