//! The order of opening and closing zones (GEP-21).

use std::collections::BTreeSet;

use parts::{ClaimPlan, Deploy, Destroy, OwnerRecordPlan, SubnetIsolation};

use super::{
    ASLEEP, Checked, DELETION, DESTINATION, NO_ZONES, RECONCILIATION, orders_of_drawn_flows, sample_inputs,
    samples::{RESTORATION, RESTORATION_ASLEEP},
};
use crate::shoot::flows::{
    delete_flow::{self, DeleteInputs},
    reconcile_flow::{self, ReconcileInputs},
    sleep_flow::{self, SleepInputs},
};

/// RZ-11, RZ-12, RZ-14, RZ-35: a zone is closed after the machines are gone, and opened before a resource is
/// created in the zone.
#[tokio::test]
async fn a_zone_is_closed_after_its_machines_and_opened_before_them() -> Checked {
    let inputs = sample_inputs();
    let flows = orders_of_drawn_flows(&inputs);
    let close = "Deploying isolation of the zone that is cut off";
    let opened = "Waiting until stale isolation of zones has been destroyed";
    for title in [DESTINATION, RECONCILIATION, ASLEEP] {
        let flow = &flows[title];
        flow.require(["Waiting until shoot worker nodes have been reconciled", close])?;
        flow.require([opened, "Deploying Shoot infrastructure"])?;
    }
    let deletion = &flows[DELETION];
    let gone = "Waiting until isolation of zones has been destroyed";
    deletion.require([
        "Waiting until extension resources have been deleted",
        "Destroying isolation of zones",
    ])?;
    deletion.require([gone, "Destroying shoot infrastructure"])
}

/// A shoot without an isolated zone is reconciled, hibernated and deleted as without GEP-21.
#[tokio::test]
async fn without_a_zone_that_is_cut_off_nothing_of_it_runs() {
    let inputs = sample_inputs();
    let awake = ReconcileInputs {
        restoring: false,
        copy_is_required: false,
        owner_record: OwnerRecordPlan::Nothing,
        claim: ClaimPlan::Nothing,
        hooks: &NO_ZONES,
        ..RESTORATION
    };
    let asleep = SleepInputs {
        restoring: false,
        copy_is_required: false,
        etcd_is_awake: false,
        owner_record: OwnerRecordPlan::Nothing,
        claim: ClaimPlan::Nothing,
        hooks: &NO_ZONES,
        ..RESTORATION_ASLEEP
    };
    let deleted = DeleteInputs {
        namespace_is_active: true,
        control_plane_is_up: true,
        control_plane_may_sleep: false,
        owner_record: false,
        hooks: &NO_ZONES,
    };
    let stale = SubnetIsolation::DESTROY_STALE.map(|task| task.name());
    let of_zones = [
        <SubnetIsolation as Deploy>::TASKS,
        <SubnetIsolation as Destroy>::TASKS,
        stale,
    ];
    for (flow, count) in [
        (
            reconcile_flow::build(&inputs.facts, &inputs.findings.claim, awake),
            4,
        ),
        (
            sleep_flow::build(&inputs.facts, &inputs.findings.claim, asleep),
            4,
        ),
        (delete_flow::build(&inputs.facts, deleted), 2),
    ] {
        let flow = flow.into_flow();
        let skipped: BTreeSet<_> = flow.skipped().collect();
        let tasks = flow.tasks().filter(|task| of_zones.as_flattened().contains(task));
        let tasks: BTreeSet<_> = tasks.collect();
        assert_eq!(tasks.len(), count, "{tasks:?}");
        assert!(tasks.is_subset(&skipped), "{tasks:?}");
    }
}
