//! When a planned move may begin, and the same asked before any edit.

use api::{
    constants::{MIGRATION_DRY_RUN, SHOOT_FORCE_RESTORE, condition},
    gardencore::{Seed, Shoot},
    meta::ConditionStatus,
};
use garden_controller_manager::shoot_migration;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    garden::{Garden, NAMESPACE, allowed, operation},
    journey::{approval, as_seed, create, edit, is_for, make_ready, reason, reconcile, until},
};

/// With the controller at work, and with the rights that the chart gives to the controller.
pub async fn with_the_controller(garden: &Garden) {
    make_ready(garden, "seed-b").await;
    let context = garden.context(&[]);
    let mut controllers = JoinSet::new();
    controllers.spawn(shoot_migration::run(context.clone()));
    Box::pin(a_move_begins_when_the_source_has_reconciled_the_last_edit(garden)).await;
    Box::pin(force_moves_a_shoot_whose_reconciliation_fails(garden)).await;
    Box::pin(a_dry_run_is_answered_and_changes_nothing(garden)).await;
    context.shutdown.cancel();
    controllers.shutdown().await;
}

/// Two edits, each alone, pass admission.
async fn a_move_begins_when_the_source_has_reconciled_the_last_edit(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    create(garden, "hurried").await;
    allowed(edit(garden, "hurried", json!({"purpose": "testing"})).await);
    allowed(edit(garden, "hurried", json!({"seedName": "seed-b"})).await);
    let held = until(&shoots, "hurried", is_held).await;
    assert_eq!(approval(&held), None);
    reconcile(garden, "hurried").await;
    until(&shoots, "hurried", |shoot| is_for(shoot, "seed-b")).await;
    // An edit before the begin is reconciled by the source, too.
    allowed(edit(garden, "hurried", json!({"purpose": "evaluation"})).await);
    let held = until(&shoots, "hurried", is_held).await;
    assert_eq!(approval(&held), None);
    reconcile(garden, "hurried").await;
    until(&shoots, "hurried", |shoot| is_for(shoot, "seed-b")).await;
}

async fn force_moves_a_shoot_whose_reconciliation_fails(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    create(garden, "failing").await;
    allowed(edit(garden, "failing", json!({"purpose": "testing"})).await);
    let failed = json!({"observedGeneration": 2, "lastOperation": operation("Reconcile", "Error")});
    as_seed(garden, "failing", failed).await;
    allowed(edit(garden, "failing", json!({"seedName": "seed-b"})).await);
    until(&shoots, "failing", is_held).await;
    let force = json!({"metadata": {"annotations": {SHOOT_FORCE_RESTORE: "true"}}});
    allowed(garden.patch(&shoots, "failing", force).await);
    until(&shoots, "failing", |shoot| is_for(shoot, "seed-b")).await;
}

async fn a_dry_run_is_answered_and_changes_nothing(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let seeds: Api<Seed> = Api::all(garden.administrator());
    create(garden, "asker").await;
    let before = shoots.get("asker").await.unwrap();
    for (seed, status, reason) in [
        ("seed-b", ConditionStatus::True, "DestinationSeedReady"),
        ("seed-x", ConditionStatus::False, "DestinationSeedNotFound"),
        ("seed-a", ConditionStatus::False, "NoMove"),
    ] {
        assert_eq!(answer(garden, seed).await, (status, reason.to_owned()));
    }
    let room = |shoots: Value| json!({"allocatable": {"shoots": shoots}});
    garden.status(&seeds, "seed-b", room(json!("0"))).await;
    let full = answer(garden, "seed-b").await;
    assert_eq!(full, (ConditionStatus::False, "DestinationSeedFull".to_owned()));
    garden.status(&seeds, "seed-b", room(Value::Null)).await;
    let taint = |taints: Value| json!({"spec": {"taints": taints}});
    allowed(
        garden
            .patch(&seeds, "seed-b", taint(json!([{"key": "protected"}])))
            .await,
    );
    let tainted = answer(garden, "seed-b").await;
    assert_eq!(
        tainted,
        (ConditionStatus::False, "SeedTaintNotTolerated".to_owned())
    );
    allowed(garden.patch(&seeds, "seed-b", taint(Value::Null)).await);
    let after = shoots.get("asker").await.unwrap();
    assert_eq!(after.spec, before.spec);
    assert_eq!((approval(&after), reason(&after)), (None, None));
}

/// Asks about a move to the seed, and awaits the answer.
async fn answer(garden: &Garden, seed: &str) -> (ConditionStatus, String) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let ask = json!({"metadata": {"annotations": {MIGRATION_DRY_RUN: seed}}});
    allowed(garden.patch(&shoots, "asker", ask).await);
    let answered = until(&shoots, "asker", |shoot| {
        !shoot.annotations().contains_key(MIGRATION_DRY_RUN)
    })
    .await;
    let status = answered.status.unwrap();
    let answer = status.constraint(condition::MIGRATION_DRY_RUN).unwrap();
    (answer.status, answer.reason.clone())
}

fn is_held(shoot: &Shoot) -> bool {
    reason(shoot).as_deref() == Some(condition::SHOOT_NOT_RECONCILED)
}
