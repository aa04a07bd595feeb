//! The tasks of flows for the owner record, by the settings of the Seed.

use std::collections::BTreeSet;

use parts::{ClaimPlan, OwnerRecordPlan};

use super::{
    Checked, NO_ZONES, TaskOrder, sample_inputs,
    samples::{RESTORATION, RESTORATION_ASLEEP},
    systems::OF_OWNER_RECORD,
};
use crate::shoot::flows::{
    delete_flow::{self, DeleteInputs},
    migrate_flow::{self, MigrateInputs},
    reconcile_flow::{self, ReconcileInputs},
    sleep_flow::{self, SleepInputs},
};

/// A seed without owner checks behaves as before the setting existed.
#[tokio::test]
async fn without_owner_checks_no_owner_record_is_touched() {
    let (inputs, owner_record) = (sample_inputs(), OwnerRecordPlan::Nothing);
    let reconcile = ReconcileInputs {
        owner_record,
        claim: ClaimPlan::Nothing,
        hooks: &NO_ZONES,
        ..RESTORATION
    };
    let sleep = SleepInputs {
        owner_record,
        claim: ClaimPlan::Nothing,
        hooks: &NO_ZONES,
        ..RESTORATION_ASLEEP
    };
    let migrate = MigrateInputs {
        control_plane_is_up: true,
        keeps_phases: owner_record.may_be_there(),
    };
    let delete = DeleteInputs {
        namespace_is_active: true,
        control_plane_is_up: true,
        control_plane_may_sleep: true,
        owner_record: owner_record.may_be_there(),
        hooks: &NO_ZONES,
    };
    for flow in [
        reconcile_flow::build(&inputs.facts, &inputs.findings.claim, reconcile),
        sleep_flow::build(&inputs.facts, &inputs.findings.claim, sleep),
        migrate_flow::build(&inputs.facts, &inputs.findings.end, migrate),
        delete_flow::build(&inputs.facts, delete),
    ] {
        let flow = flow.into_flow();
        let skipped: BTreeSet<_> = flow.skipped().collect();
        let tasks = flow
            .tasks()
            .filter(|task| OF_OWNER_RECORD.as_flattened().contains(task));
        let tasks: BTreeSet<_> = tasks.collect();
        assert!(tasks.len() >= 2, "{flow:?}");
        assert!(tasks.is_subset(&skipped), "{tasks:?}");
        let named = flow.tasks().filter(|task| task.contains("owner domain"));
        assert_eq!(named.collect::<BTreeSet<_>>(), tasks);
    }
}

/// An etcd that checks while both names are removed may read the epoch without an owner. The result would be
/// a final loss, caused by a mere setting (R17-50).
#[tokio::test]
async fn an_owner_record_that_nobody_wants_goes_after_the_check_of_etcd() -> Checked {
    let (inputs, owner_record) = (sample_inputs(), OwnerRecordPlan::Drop);
    let awake = ReconcileInputs {
        restoring: false,
        copy_is_required: false,
        owner_record,
        claim: ClaimPlan::Nothing,
        hooks: &NO_ZONES,
        ..RESTORATION
    };
    let asleep = SleepInputs {
        restoring: false,
        copy_is_required: false,
        owner_record,
        claim: ClaimPlan::Nothing,
        hooks: &NO_ZONES,
        ..RESTORATION_ASLEEP
    };
    for flow in [
        reconcile_flow::build(&inputs.facts, &inputs.findings.claim, awake),
        sleep_flow::build(&inputs.facts, &inputs.findings.claim, asleep),
    ] {
        let flow = flow.into_flow();
        let removal = "Destroying owner domain DNS record";
        TaskOrder::read(&flow).require(["Waiting until main and event etcd report readiness", removal])?;
        assert!(
            flow.skipped().all(|task| task != removal),
            "{}: it is not wanted, and stays",
            flow.name()
        );
    }
    Ok(())
}
