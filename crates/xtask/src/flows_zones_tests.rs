//! The order of opening and closing zones (GEP-21).

use anyhow::{Result, ensure};
use gardenlet::shoot::{Zones, delete_flow, reconcile_flow, sleep_flow};
use parts::{ClaimPlan, OwnerRecordPlan};

use super::super::{ASLEEP, DELETION, DESTINATION, Drawn, facts, page};

const RECONCILIATION: &str = "Creation and reconciliation";

/// RZ-11, RZ-12, RZ-14, RZ-35: a zone is closed after the machines are gone, and opened before a resource is
/// created in the zone.
#[test]
fn a_zone_is_closed_after_its_machines_and_opened_before_them() -> Result<()> {
    let page = page()?;
    let close = "Deploying isolation of the zone that is cut off";
    let opened = "Waiting until stale isolation of zones has been destroyed";
    for title in [DESTINATION, RECONCILIATION, ASLEEP] {
        let flow = Drawn::read(&page, title)?;
        flow.in_order(["Waiting until shoot worker nodes have been reconciled", close])?;
        flow.in_order([opened, "Deploying Shoot infrastructure"])?;
    }
    let deletion = Drawn::read(&page, DELETION)?;
    let gone = "Waiting until isolation of zones has been destroyed";
    deletion.in_order([
        "Waiting until extension resources have been deleted",
        "Destroying isolation of zones",
    ])?;
    deletion.in_order([gone, "Destroying shoot infrastructure"])
}

/// A shoot without an isolated zone is reconciled, hibernated and deleted as without GEP-21.
#[test]
fn without_a_zone_that_is_cut_off_nothing_of_it_runs() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let _context = runtime.enter();
    let facts = facts()?;
    let awake = reconcile_flow::ReconcileInputs {
        restoring: false,
        has_backup: true,
        copy_is_required: false,
        sleeps: false,
        owner_record: OwnerRecordPlan::Nothing,
        claim: ClaimPlan::Nothing,
        zones: Zones::default(),
    };
    let asleep = sleep_flow::SleepInputs {
        restoring: false,
        has_backup: true,
        copy_is_required: false,
        etcd_is_awake: false,
        owner_record: OwnerRecordPlan::Nothing,
        claim: ClaimPlan::Nothing,
        zones: Zones::default(),
    };
    let deleted = delete_flow::DeleteInputs {
        namespace_is_active: true,
        control_plane_is_up: true,
        control_plane_may_sleep: false,
        owner_record: false,
        zone_is_closed: false,
    };
    for (drawing, count) in [
        (reconcile_flow::build(&facts, awake).to_mermaid(), 4),
        (sleep_flow::build(&facts, asleep).to_mermaid(), 4),
        (delete_flow::build(&facts, deleted).to_mermaid(), 2),
    ] {
        let words = ["isolation of", "has been isolated"];
        let tasks: Vec<_> = drawing
            .lines()
            .filter(|line| words.iter().any(|word| line.contains(word)))
            .collect();
        ensure!(tasks.len() == count, "{tasks:?}");
        ensure!(tasks.iter().all(|task| task.ends_with(":::skipped")), "{tasks:?}");
    }
    Ok(())
}
