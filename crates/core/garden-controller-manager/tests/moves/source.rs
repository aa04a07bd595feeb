//! A source that is alive and fails in a loop, and a source that a person states to be off.

use std::time::Duration;

use api::{
    constants::{FORCE_RESTORE_SOURCE_IS_OFF, SHOOT_FORCE_RESTORE},
    gardencore::{
        Shoot,
        shoot::{ApprovedBy, OwnershipApproval},
    },
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use runtime::clock;
use serde_json::{Value, json};
use testkit::eventually;

use crate::{
    garden::{self, Garden, NAMESPACE, allowed},
    journey::{create, create_on, edit, until},
    renewal::until_event,
    servers,
    takeover::{ask_for, beside_the_gardenlet_of, check_owners, tells, unasked},
};

const LOOPS: &str = "loops";
const OFF: &str = "off";
/// A minute without progress, and as much again as a busy machine needs.
const STUCK_WITHIN: Duration = Duration::from_secs(240);
/// Between two writes of the status.
const WRITTEN_EVERY: Duration = Duration::from_millis(500);

/// Each attempt of the gardenlet is cut off, and writes the status again, so that the status changes all the
/// time; the gardenlet renews its Lease all the while. The operator requests the takeover during an attempt
/// that gets further than before.
pub async fn a_source_that_fails_in_a_loop_loses_its_shoot(garden: &Garden) {
    garden.bring(&garden::seed("seed-d")).await.unwrap();
    check_owners(garden, "seed-d", true).await;
    create_on(garden, LOOPS, "seed-d").await;
    servers::all_processes_ask(garden, LOOPS, "seed-d").await;
    tells(garden, LOOPS, "constraints", "ShootStateUpToDate").await;
    allowed(edit(garden, LOOPS, json!({"seedName": "seed-b"})).await);
    let lives = Box::pin(beside_the_gardenlet_of(
        garden,
        "seed-d",
        until_taken_over(garden),
    ));
    let approval = tokio::select! {
        approval = lives => approval,
        () = fails_in_a_loop(garden) => unreachable!("it never ends"),
    };
    assert_eq!(
        (approval.by, approval.source_is_off),
        (ApprovedBy::Operator, false)
    );
    assert!(
        approval
            .reason
            .contains("its migration fails and had made no progress for"),
        "{}",
        approval.reason
    );
}

async fn until_taken_over(garden: &Garden) -> OwnershipApproval {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let progress = |shoot: &Shoot| {
        let status = shoot.status.as_ref();
        status
            .and_then(|status| status.last_operation.as_ref())
            .map_or(0, |last| last.progress)
    };
    until(&shoots, LOOPS, |shoot| progress(shoot) >= 30).await;
    ask_for(garden, LOOPS, (SHOOT_FORCE_RESTORE, "true")).await;
    eventually("it is taken over", STUCK_WITHIN, || async {
        let shoot = shoots.get(LOOPS).await.map_err(|error| error.to_string())?;
        let status = shoot.status.clone().unwrap_or_default();
        if status.seed_name.as_deref() != Some("seed-b") {
            let annotations = &shoot.metadata.annotations;
            return Err(format!(
                "it is {:?}, and asked for: {annotations:?}",
                status.last_operation
            ));
        }
        status
            .ownership
            .and_then(|record| record.approval)
            .ok_or_else(|| "nobody consented".to_owned())
    })
    .await
    .unwrap()
}

/// Successive attempts that reach the same point.
async fn fails_in_a_loop(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let attempt = [
        ("Processing", 0),
        ("Processing", 15),
        ("Processing", 30),
        ("Error", 30),
    ];
    for (state, progress) in attempt.into_iter().cycle() {
        let shoot = shoots.get(LOOPS).await.unwrap();
        // The gardenlet writes only while its seed owns the shoot.
        if shoot
            .status
            .as_ref()
            .and_then(|status| status.seed_name.as_deref())
            == Some("seed-d")
        {
            let version = shoot.metadata.resource_version.clone();
            write(&shoots, attempted(state, progress), version).await;
        }
        tokio::time::sleep(WRITTEN_EVERY).await;
    }
}

fn attempted(state: &str, progress: i32) -> Value {
    json!({"lastOperation": {"type": "Migrate", "state": state, "progress": progress, "description": "Deleting machines",
        "lastUpdateTime": clock::now_k8s()}, "retryCycleStartTime": "2026-01-01T00:00:00Z",
        "lastErrors": [{"taskID": "Deleting machines", "description": "task \"Deleting machines\" failed: not done after 600s",
            "lastUpdateTime": clock::now_k8s()}]})
}

/// Writes like a gardenlet: conditional on the version that was read.
async fn write(shoots: &Api<Shoot>, status: Value, version: Option<String>) {
    let body = json!({"metadata": {"resourceVersion": version}, "status": status});
    let written = shoots
        .patch_status(LOOPS, &PatchParams::default(), &Patch::Merge(body))
        .await;
    match written {
        Ok(_) => {}
        // A concurrent write came first.
        Err(kube::Error::Api(answer)) if answer.is_conflict() => {}
        Err(error) => allowed(Err(error)),
    }
}

/// No process of the source ever reported whether it has an owner check.
pub async fn a_source_that_is_stated_to_be_off_needs_no_fence(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    create(garden, OFF).await;
    tells(garden, OFF, "constraints", "ShootStateUpToDate").await;
    allowed(edit(garden, OFF, json!({"seedName": "seed-b"})).await);
    ask_for(garden, OFF, (SHOOT_FORCE_RESTORE, "true")).await;
    let shoot = unasked(garden, OFF).await;
    assert_eq!(shoot.status.unwrap().ownership, None);
    ask_for(garden, OFF, (SHOOT_FORCE_RESTORE, FORCE_RESTORE_SOURCE_IS_OFF)).await;
    let shoot = until(&shoots, OFF, |shoot| {
        let status = shoot.status.as_ref();
        status.and_then(|status| status.seed_name.as_deref()) == Some("seed-b")
    })
    .await;
    let record = shoot.status.unwrap().ownership.unwrap();
    assert_eq!((record.epoch, record.seed_that_is_off()), (2, Some("seed-a")));
    let approval = record.approval.unwrap();
    assert_eq!((approval.epoch, approval.by), (1, ApprovedBy::Operator));
    assert!(
        approval
            .reason
            .contains("stated that no process of seed seed-a runs any more"),
        "{}",
        approval.reason
    );
    // While seed-b claims the shoot, the same is stated of a seed that had the shoot before.
    garden.bring(&garden::seed("seed-f")).await.unwrap();
    let formers = json!({"formerSeeds": [{"name": "seed-a", "epoch": 1}, {"name": "seed-f", "epoch": 1}]});
    garden.status(&shoots, OFF, formers).await;
    ask_for(garden, OFF, (SHOOT_FORCE_RESTORE, FORCE_RESTORE_SOURCE_IS_OFF)).await;
    let shoot = unasked(garden, OFF).await;
    let record = shoot.status.unwrap().ownership.unwrap();
    let stated: Vec<_> = record
        .seeds_stated_off
        .iter()
        .map(|seed| (seed.name.as_str(), seed.epoch))
        .collect();
    assert_eq!((record.epoch, stated), (2, vec![("seed-a", 1), ("seed-f", 1)]));
    until_event(garden, "FormerSeedsStatedOff", "seed-a, seed-f").await;
}
