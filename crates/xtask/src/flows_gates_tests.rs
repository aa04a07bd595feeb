//! The tasks that wait for the gates of docs/understand/ownership.md, by kind of move.

use anyhow::{Context, Result, ensure};
use gardenlet::shoot::{Zones, reconcile_flow};
use parts::{ClaimPlan, OwnerRecordPlan};

use super::{ASLEEP, DESTINATION, Drawn, SOURCE, facts, page};

#[path = "flows_zones_tests.rs"]
mod zones;

const WRITTEN: &str = "Waiting until owner domain DNS record is ready";
const HELD: &str = "Recording that the seed holds the shoot";

/// R17-31, I3, the cloud condition: while the source may still act, the flow touches no resource that the
/// source might touch.
#[test]
fn nothing_outside_is_touched_before_the_shoot_is_held() -> Result<()> {
    let page = page()?;
    let outside = [
        "infrastructure",
        "dns record",
        "worker",
        "network",
        "extensions",
        "container runtime",
        "operating system",
        "shoot control plane",
        "isolat",
    ];
    for (title, at_least) in [(DESTINATION, 20), (ASLEEP, 10)] {
        let flow = Drawn::read(&page, title)?;
        let touches = |name: &&String| {
            let name = name.to_lowercase();
            outside.iter().any(|word| name.contains(word)) && !name.contains("owner domain")
        };
        let tasks: Vec<_> = flow.names.keys().filter(touches).collect();
        ensure!(tasks.len() >= at_least, "{tasks:?}");
        for task in tasks {
            flow.in_order([HELD, task])?;
        }
    }
    Ok(())
}

/// R17-21: if a zone refuses the owner record, the task fails, and the tasks that wait for the record do not
/// begin. All further tasks act in this seed, and hold up no further shoot.
#[test]
fn only_what_is_in_the_seed_itself_is_begun_without_the_owner_record() -> Result<()> {
    let page = page()?;
    let in_the_seed = [
        "Deploying Shoot namespace in Seed",
        // The owner record of this epoch exists: the shoot was not handed over.
        "Recording that the seed keeps the shoot",
        "Deploying owner domain DNS record",
        WRITTEN,
        "Ensuring Shoot cluster identity",
        "Deploying cloud provider account secret",
        "Initializing secrets management",
        "Deploying events etcd while backups are copied",
        "Deploying tunnel to the nodes of the Shoot",
        "Waiting until tunnel to the nodes of the Shoot rolled out",
    ];
    for title in [DESTINATION, "Creation and reconciliation", ASLEEP] {
        let flow = Drawn::read(&page, title)?;
        ensure!(flow.names.len() > 50, "{title}: {} tasks", flow.names.len());
        for task in flow
            .names
            .keys()
            .filter(|task| !in_the_seed.contains(&task.as_str()))
        {
            flow.in_order([WRITTEN, task])?;
        }
    }
    Ok(())
}

/// The owner of a reserved name creates the Secret first, and no extension restores without the Secrets that
/// the extension carried.
#[test]
fn secrets_of_extensions_come_between_reserved_secrets_and_extensions() -> Result<()> {
    let page = page()?;
    let restored = "Restoring carried Secrets";
    for title in [DESTINATION, ASLEEP] {
        let flow = Drawn::read(&page, title)?;
        for reserved in [
            "Initializing secrets management",
            "Deploying cloud provider account secret",
            "Waiting until the backup entry has been reconciled",
            "Waiting until the source backup entry has been reconciled",
        ] {
            flow.in_order([reserved, restored])?;
        }
        flow.in_order([restored, HELD])?;
    }
    Ok(())
}

/// Decision 36: kube-apiserver is led to the gate for Events, or away from there, after etcd-main runs with
/// or without the gate.
#[test]
fn kube_apiserver_is_written_after_etcd_is_ready() -> Result<()> {
    let page = page()?;
    let order = [
        "Waiting until main and event etcd report readiness",
        "Deploying Kubernetes API server",
    ];
    for title in [DESTINATION, "Creation and reconciliation", "Deletion"] {
        Drawn::read(&page, title)?.in_order(order)?;
    }
    Ok(())
}

/// R17-51: the source hands the shoot over at the end of the flow, after the task that waits for the final
/// snapshot. The removal of the namespace begins afterwards.
#[test]
fn the_namespace_of_the_source_goes_after_its_final_snapshot() -> Result<()> {
    let source = Drawn::read(&page()?, SOURCE)?;
    source.in_order([
        "Creating ETCD Snapshot",
        "Making sure that nothing writes to the shoot any more",
    ])?;
    let early = "Deleting shoot namespace in Seed";
    ensure!(!source.names.contains_key(early), "{early}");
    Ok(())
}

/// A move whose source has handed the shoot over waits for no fence, and a move without recorded phases
/// behaves as before.
#[test]
fn only_a_shoot_that_is_taken_is_fenced() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let _context = runtime.enter();
    let facts = facts()?;
    let skipped = |claim, task: &str| {
        let given = reconcile_flow::ReconcileInputs {
            restoring: true,
            has_backup: true,
            copy_is_required: true,
            sleeps: false,
            owner_record: OwnerRecordPlan::Keep,
            claim,
            zones: Zones::default(),
        };
        let drawing = reconcile_flow::build(&facts, given).to_mermaid();
        let line = drawing.lines().find(|line| line.contains(task));
        line.map(|line| line.ends_with(":::skipped"))
            .context("no such task")
    };
    for (claim, fences, records, returns) in [
        (ClaimPlan::Nothing, false, false, false),
        (ClaimPlan::DepartureCancelled, false, false, false),
        (ClaimPlan::AfterHandOver, false, true, false),
        (ClaimPlan::AfterTakeover, true, true, false),
        (ClaimPlan::NewEpochSameSeed, true, true, true),
    ] {
        for task in ["every witness shows", "former seed cannot act"] {
            ensure!(skipped(claim, task)? != fences, "{claim:?}: {task}");
        }
        for task in ["Recording with which backups", HELD] {
            ensure!(skipped(claim, task)? != records, "{claim:?}: {task}");
        }
        let task = "Stopping etcd of the epoch that has ended";
        ensure!(skipped(claim, task)? != returns, "{claim:?}: {task}");
        let task = "Recording that the seed keeps the shoot";
        ensure!(
            skipped(claim, task)? != (claim == ClaimPlan::DepartureCancelled),
            "{claim:?}: {task}"
        );
    }
    Ok(())
}

/// A cancelled move finds out from the record whether etcd may serve again in the epoch of that etcd.
#[test]
fn what_ends_an_epoch_is_recorded_before_it_happens() -> Result<()> {
    let page = page()?;
    let source = Drawn::read(&page, SOURCE)?;
    let (leaving, sealing) = (
        "Recording that the seed begins to leave the shoot",
        "Recording that etcd will not serve again in this epoch",
    );
    for order in [
        ["Checking that backups can be taken", leaving],
        [
            "Checking that no DNS server contradicts the owner record",
            leaving,
        ],
        [
            "Refreshing credentials of DNS records",
            "Deleting kube-apiserver deployment",
        ],
        [
            leaving,
            "Configuring Managed Resources objects to be kept in the Shoot",
        ],
        ["Waiting until kube-apiserver has been deleted", sealing],
        [sealing, "Migrating owner domain DNS record"],
    ] {
        source.in_order(order)?;
    }
    for title in [DESTINATION, ASLEEP] {
        let flow = Drawn::read(&page, title)?;
        for order in [
            [
                "Recording that the seed keeps the shoot",
                "Deploying owner domain DNS record",
            ],
            [
                "Waiting until etcd of the epoch that has ended has stopped",
                "Recording with which backups the shoot begins",
            ],
        ] {
            flow.in_order(order)?;
        }
    }
    Ok(())
}
