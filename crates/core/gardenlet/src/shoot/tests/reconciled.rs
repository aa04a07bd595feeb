//! The hash of the reconciled specification in the status.

use super::*;

#[test]
fn a_success_records_the_specification_of_the_operation() {
    let shoot = shoot(&json!({"spec": {"seedName": "b", "purpose": "testing"}}));
    let hash = placement::spec_hash(&shoot.spec);
    for (operation, recorded) in [
        (Operation::Create, json!(hash)),
        (Operation::Reconcile, json!(hash)),
        (Operation::Restore, json!(hash)),
        (Operation::Delete, json!(null)),
    ] {
        let patch = status::settled(&shoot, operation, Time(now()));
        assert_eq!(patch["reconciledSpecHash"], recorded, "{operation:?}");
    }
}
