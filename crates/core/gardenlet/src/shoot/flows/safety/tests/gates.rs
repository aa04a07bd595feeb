//! The tasks that wait for the gates of docs/understand/ownership.md, by kind of move.

use std::collections::BTreeSet;

use parts::{
    ClaimPlan, ClaimSteps, Departure, Deploy, EndedEtcd, ExternalSystem, ExternalSystems, Fence, OwnerRecord,
    PartTask,
};

use super::{
    ASLEEP, Checked, DELETION, DESTINATION, NO_ZONES, RECONCILIATION, SOURCE, TaskOrder,
    orders_of_drawn_flows, sample_inputs,
    samples::{self, CLAIMS, RESTORATION},
    systems::OF_OWNER_RECORD,
};
use crate::shoot::flows::reconcile_flow::{self, ReconcileInputs};

const HELD: &str = ClaimSteps::HOLD.name();

/// Ready: the owner record is published.
const PUBLISHED: &str = <OwnerRecord as Deploy>::TASKS[1];

/// R17-31, I3, the cloud condition: while the source may still act, the flow touches no resource that the
/// source might touch.
#[tokio::test]
async fn nothing_outside_is_touched_before_the_shoot_is_held() -> Checked {
    let inputs = sample_inputs();
    let drawn = samples::drawn(&inputs);
    for (title, at_least) in [(DESTINATION, 20), (ASLEEP, 10)] {
        let sample = drawn.iter().find(|sample| sample.title == title).unwrap();
        let is_outside = |systems: ExternalSystems| {
            systems.contains(&ExternalSystem::Cloud) || systems.contains(&ExternalSystem::Dns)
        };
        let outside = sample.flow.touches().filter(|(_, systems)| is_outside(*systems));
        let outside: BTreeSet<_> = outside
            .map(|(task, _)| task)
            .filter(|task| !OF_OWNER_RECORD.as_flattened().contains(task))
            .collect();
        assert!(outside.len() >= at_least, "{title}: {outside:?}");
        let order = TaskOrder::read(sample.flow.flow());
        for task in outside {
            order.require([HELD, task])?;
        }
    }
    Ok(())
}

/// R17-21: if a zone refuses the owner record, the task fails, and the tasks that wait for the record do not
/// begin. All further tasks act in this seed, and hold up no further shoot.
#[tokio::test]
async fn only_what_is_in_the_seed_itself_is_begun_without_the_owner_record() -> Checked {
    let inputs = sample_inputs();
    let flows = orders_of_drawn_flows(&inputs);
    let in_the_seed = [
        "Deploying Shoot namespace in Seed",
        // The owner record of this epoch exists: the shoot was not handed over.
        "Recording that the seed keeps the shoot",
        "Deploying owner domain DNS record",
        PUBLISHED,
        "Ensuring Shoot cluster identity",
        "Deploying cloud provider account secret",
        "Initializing secrets management",
        "Deploying events etcd while backups are copied",
        "Deploying tunnel to the nodes of the Shoot",
        "Waiting until tunnel to the nodes of the Shoot rolled out",
    ];
    for title in [DESTINATION, RECONCILIATION, ASLEEP] {
        let flow = &flows[title];
        assert!(flow.tasks().len() > 50, "{title}: {} tasks", flow.tasks().len());
        for task in flow.tasks().filter(|task| !in_the_seed.contains(task)) {
            flow.require([PUBLISHED, task])?;
        }
    }
    Ok(())
}

/// The owner of a reserved name creates the Secret first, and no extension restores without the Secrets that
/// the extension carried.
#[tokio::test]
async fn secrets_of_extensions_come_between_reserved_secrets_and_extensions() -> Checked {
    let inputs = sample_inputs();
    let flows = orders_of_drawn_flows(&inputs);
    let restored = "Restoring carried Secrets";
    for title in [DESTINATION, ASLEEP] {
        let flow = &flows[title];
        for reserved in [
            "Initializing secrets management",
            "Deploying cloud provider account secret",
            "Waiting until the backup entry has been reconciled",
            "Waiting until the source backup entry has been reconciled",
        ] {
            flow.require([reserved, restored])?;
        }
        flow.require([restored, HELD])?;
    }
    Ok(())
}

/// Decision 36: kube-apiserver is led to the gate for Events, or away from there, after etcd-main runs with
/// or without the gate.
#[tokio::test]
async fn kube_apiserver_is_written_after_etcd_is_ready() -> Checked {
    let inputs = sample_inputs();
    let flows = orders_of_drawn_flows(&inputs);
    let order = [
        "Waiting until main and event etcd report readiness",
        "Deploying Kubernetes API server",
    ];
    for title in [DESTINATION, RECONCILIATION, DELETION] {
        flows[title].require(order)?;
    }
    Ok(())
}

/// R17-51: the source hands the shoot over at the end of the flow, after the task that waits for the final
/// snapshot. The removal of the namespace begins afterwards.
#[tokio::test]
async fn the_namespace_of_the_source_goes_after_its_final_snapshot() -> Checked {
    let inputs = sample_inputs();
    let flows = orders_of_drawn_flows(&inputs);
    let source = &flows[SOURCE];
    source.require([
        "Creating ETCD Snapshot",
        "Making sure that nothing writes to the shoot any more",
    ])?;
    let early = "Deleting shoot namespace in Seed";
    assert!(source.tasks().all(|task| task != early), "{early}");
    Ok(())
}

/// A move whose source has handed the shoot over waits for no fence, and a move without recorded phases
/// behaves as before.
#[tokio::test]
async fn only_a_shoot_that_is_taken_is_fenced() {
    let inputs = sample_inputs();
    let skipped_tasks = |claim| {
        let given = ReconcileInputs {
            claim,
            hooks: &NO_ZONES,
            ..RESTORATION
        };
        let flow = reconcile_flow::build(&inputs.facts, &inputs.findings.claim, given);
        let order = TaskOrder::read(flow.flow());
        let skipped: BTreeSet<_> = flow.flow().skipped().collect();
        (order, skipped)
    };
    assert_eq!(CLAIMS.len(), 5);
    for (claim, fences, records, returns) in [
        (ClaimPlan::Nothing, false, false, false),
        (ClaimPlan::DepartureCancelled, false, false, false),
        (ClaimPlan::AfterHandOver, false, true, false),
        (ClaimPlan::AfterTakeover, true, true, false),
        (ClaimPlan::NewEpochSameSeed, true, true, true),
    ] {
        let (order, skipped) = skipped_tasks(claim);
        let runs = |task: &str| {
            assert!(order.tasks().any(|name| name == task), "{task}");
            !skipped.contains(task)
        };
        for task in [Fence::BEGIN.name(), Fence::PASS.name()] {
            assert_eq!(runs(task), fences, "{claim:?}: {task}");
        }
        for task in [ClaimSteps::OPEN.name(), HELD] {
            assert_eq!(runs(task), records, "{claim:?}: {task}");
        }
        for task in EndedEtcd::STOP.each_ref().map(PartTask::name) {
            assert_eq!(runs(task), returns, "{claim:?}: {task}");
        }
        let task = Departure::CANCEL.name();
        assert_eq!(
            runs(task),
            claim == ClaimPlan::DepartureCancelled,
            "{claim:?}: {task}"
        );
    }
}

/// A cancelled move finds out from the record whether etcd may serve again in the epoch of that etcd.
#[tokio::test]
async fn what_ends_an_epoch_is_recorded_before_it_happens() -> Checked {
    let inputs = sample_inputs();
    let flows = orders_of_drawn_flows(&inputs);
    let source = &flows[SOURCE];
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
        source.require(order)?;
    }
    for title in [DESTINATION, ASLEEP] {
        let flow = &flows[title];
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
            flow.require(order)?;
        }
    }
    Ok(())
}
