//! The tasks of flows for the owner record, by the settings of the Seed.

use anyhow::{Result, ensure};
use gardenlet::shoot::{Zones, delete_flow, migrate_flow, reconcile_flow, sleep_flow};
use parts::{ClaimPlan, OwnerRecordPlan};

use super::{ASLEEP, DESTINATION, Drawn, facts};

/// A seed without owner checks behaves as before the setting existed.
#[test]
fn without_owner_checks_no_owner_record_is_touched() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let _context = runtime.enter();
    let (facts, owner_record) = (facts()?, OwnerRecordPlan::Nothing);
    let reconcile = reconcile_flow::ReconcileInputs {
        restoring: true,
        has_backup: true,
        copy_is_required: true,
        sleeps: false,
        owner_record,
        claim: ClaimPlan::Nothing,
        zones: Zones::default(),
    };
    let sleep = sleep_flow::SleepInputs {
        restoring: true,
        has_backup: true,
        copy_is_required: true,
        etcd_is_awake: true,
        owner_record,
        claim: ClaimPlan::Nothing,
        zones: Zones::default(),
    };
    let migrate = migrate_flow::MigrateInputs {
        control_plane_is_up: true,
        keeps_phases: owner_record.may_be_there(),
    };
    let delete = delete_flow::DeleteInputs {
        namespace_is_active: true,
        control_plane_is_up: true,
        control_plane_may_sleep: true,
        owner_record: owner_record.may_be_there(),
        zone_is_closed: false,
    };
    let drawings = [
        reconcile_flow::build(&facts, reconcile).to_mermaid(),
        sleep_flow::build(&facts, sleep).to_mermaid(),
        migrate_flow::build(&facts, migrate).to_mermaid(),
        delete_flow::build(&facts, delete).to_mermaid(),
    ];
    for drawing in drawings {
        let tasks: Vec<_> = drawing
            .lines()
            .filter(|line| line.contains("owner domain"))
            .collect();
        ensure!(tasks.len() >= 2, "{drawing}");
        ensure!(tasks.iter().all(|task| task.ends_with(":::skipped")), "{tasks:?}");
    }
    Ok(())
}

/// An etcd that checks while both names are removed may read the epoch without an owner. The result would be
/// a final loss, caused by a mere setting (R17-50).
#[test]
fn an_owner_record_that_nobody_wants_goes_after_the_check_of_etcd() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let _context = runtime.enter();
    let (facts, owner_record) = (facts()?, OwnerRecordPlan::Drop);
    let awake = reconcile_flow::ReconcileInputs {
        restoring: false,
        has_backup: true,
        copy_is_required: false,
        sleeps: false,
        owner_record,
        claim: ClaimPlan::Nothing,
        zones: Zones::default(),
    };
    let asleep = sleep_flow::SleepInputs {
        restoring: false,
        has_backup: true,
        copy_is_required: false,
        etcd_is_awake: true,
        owner_record,
        claim: ClaimPlan::Nothing,
        zones: Zones::default(),
    };
    for (title, drawing) in [
        (DESTINATION, reconcile_flow::build(&facts, awake).to_mermaid()),
        (ASLEEP, sleep_flow::build(&facts, asleep).to_mermaid()),
    ] {
        let flow = Drawn::read(&format!("\n## {title}\n{drawing}"), title)?;
        flow.in_order([
            "Waiting until main and event etcd report readiness",
            "Destroying owner domain DNS record",
        ])?;
        let skipped = "Destroying owner domain DNS record\"]:::skipped";
        ensure!(!drawing.contains(skipped), "{title}: it is not wanted, and stays");
    }
    Ok(())
}
