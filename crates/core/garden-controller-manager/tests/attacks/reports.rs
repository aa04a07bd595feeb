//! The report of a host decides for later hosts: `status.lastOperation` says whether the next seed restores
//! or creates the shoot, and `status.lastHibernationTriggerTime` says which times of schedules have come.

use api::gardencore::Shoot;
use kube::Api;
use placement::takeover::REASONS_OF_SEEDS;
use serde_json::{Value, json};

use crate::garden::{Garden, NAMESPACE, allowed, operation, refused, try_patch, until_allowed};

/// A Shoot on seed-a with this last operation, and an approved move to seed-b.
pub async fn moving(garden: &Garden, name: &str, last: (&str, &str)) {
    garden.shoot(name, "seed-b", Some("seed-a"), last).await;
    let approved = json!({"source": "seed-a", "destination": "seed-b", "generation": 2, "spec": {}});
    let status = json!({"migration": approved, "technicalID": format!("shoot--dev--{name}"), "uid": "u"});
    garden
        .status(&garden.admin::<Shoot>(NAMESPACE), name, status)
        .await;
}

/// The destination would create the shoot anew: with an empty etcd, beside the running machines.
pub async fn a_hand_over_leaves_a_shoot_to_restore(garden: &Garden) {
    let last = ("Migrate", "Processing");
    moving(garden, "restorable", last).await;
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let hand_over = |last: Value| {
        let former = json!([{"name": "seed-a", "epoch": 1}]);
        let status = json!({"seedName": "seed-b", "ownership": {"epoch": 2}, "formerSeeds": former, "lastOperation": last});
        garden.patch_status(&a, "restorable", status)
    };
    let words = "it must be Migrate Succeeded in the same write";
    for (type_, state) in [
        ("Create", "Processing"),
        ("Create", "Succeeded"),
        ("Reconcile", "Succeeded"),
        ("Restore", "Succeeded"),
        ("Migrate", "Pending"),
        ("Migrate", "Processing"),
    ] {
        refused(hand_over(operation(type_, state)).await, words);
    }
    refused(hand_over(Value::Null).await, words);
    allowed(hand_over(operation("Migrate", "Succeeded")).await);
    // The next seed has no reason to create the shoot either.
    let b: Api<Shoot> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    let write = |last: Value| garden.patch_status(&b, "restorable", json!({"lastOperation": last}));
    refused(
        write(operation("Create", "Processing")).await,
        "a shoot is created once",
    );
    allowed(write(operation("Restore", "Processing")).await);
}

/// A host that reports a creation holds each move and takeover back.
pub async fn a_shoot_is_created_once(garden: &Garden) {
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let words = "a shoot is created once, and keeps a last operation";
    let write =
        |name: &'static str, last: Value| garden.patch_status(&a, name, json!({"lastOperation": last}));
    for last in [
        ("Reconcile", "Succeeded"),
        ("Migrate", "Pending"),
        ("Restore", "Error"),
    ] {
        garden.shoot("made-once", "seed-a", Some("seed-a"), last).await;
        for other in [
            operation("Create", "Processing"),
            operation("Create", "Succeeded"),
            Value::Null,
        ] {
            refused(write("made-once", other).await, words);
        }
        allowed(write("made-once", operation("Reconcile", "Processing")).await);
    }
    garden
        .shoot("being-made", "seed-a", Some("seed-a"), ("Create", "Processing"))
        .await;
    for state in ["Error", "Processing", "Succeeded"] {
        allowed(write("being-made", operation("Create", state)).await);
    }
    allowed(write("being-made", operation("Reconcile", "Processing")).await);
}

/// garden-controller-manager would hand the shoot on without an approval, and the next seed would wait for no
/// fence.
pub async fn a_host_reports_no_end_of_a_move_without_a_hand_over(garden: &Garden) {
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let write = |last: Value| garden.patch_status(&a, "not-over", json!({"lastOperation": last}));
    for last in [("Reconcile", "Succeeded"), ("Migrate", "Processing")] {
        garden.shoot("not-over", "seed-b", Some("seed-a"), last).await;
        for state in ["Succeeded", "Aborted"] {
            let words = format!("may not report status.lastOperation \"Migrate {state}\"");
            refused(write(operation("Migrate", state)).await, &words);
        }
        for state in ["Processing", "Error", "Failed"] {
            allowed(write(operation("Migrate", state)).await);
        }
    }
    // After the hand-over the next seed writes other fields beside the last operation.
    garden
        .shoot("over", "seed-a", Some("seed-a"), ("Migrate", "Aborted"))
        .await;
    let other = json!({"observedGeneration": 1});
    allowed(garden.patch_status(&a, "over", other).await);
}

/// A hostile host could report a creation before the policy, and a dead host never ends a creation.
pub async fn a_reported_creation_keeps_no_operator_from_another_seed(garden: &Garden) {
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    let editor = garden.editor_of_shoots(NAMESPACE).await.unwrap();
    garden.allow_moves_to_editor(NAMESPACE).await.unwrap();
    let mover: Api<Shoot> = Api::namespaced(editor, NAMESPACE);
    let to = |seed: &str| json!({"spec": {"seedName": seed}});
    garden
        .shoot("told-new", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    until_allowed(|| try_patch(&mover, "told-new", &to("seed-b"))).await;
    for state in ["Processing", "Error", "Failed"] {
        let last = json!({"lastOperation": operation("Create", state)});
        garden.status(&admin, "told-new", last).await;
        refused(
            garden.patch(&mover, "told-new", to("seed-b")).await,
            "before the shoot was created",
        );
        for seed in ["seed-b", "seed-a"] {
            allowed(garden.patch(&admin, "told-new", to(seed)).await);
        }
    }
    // Phase Sealing beside a restore: a host that has no data to restore.
    garden.patch(&admin, "told-new", to("seed-b")).await.unwrap();
    let sealing = json!({"ownership": {"epoch": 1, "phase": "Sealing"}, "lastOperation": operation("Restore", "Processing")});
    garden.status(&admin, "told-new", sealing).await;
    let words = "while seed seed-a restores the shoot";
    refused(garden.patch(&mover, "told-new", to("seed-c")).await, words);
    allowed(garden.patch(&admin, "told-new", to("seed-c")).await);
}

/// A time in the future switches the schedules of the shoot off, on each later seed too.
pub async fn a_seed_records_no_time_of_a_schedule(garden: &Garden) {
    garden
        .shoot("sleepy", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let [a, manager] =
        [&garden.seed_a, &garden.manager].map(|client| Api::<Shoot>::namespaced(client.clone(), NAMESPACE));
    let at = |time: Value| json!({"lastHibernationTriggerTime": time});
    let words = "may not change status.lastHibernationTriggerTime of Shoot sleepy";
    let future = at(json!("8999-01-01T00:00:00Z"));
    refused(garden.patch_status(&a, "sleepy", future.clone()).await, words);
    let told = at(json!("2026-01-01T00:00:00Z"));
    allowed(garden.patch_status(&manager, "sleepy", told).await);
    for other in [future, at(Value::Null)] {
        refused(garden.patch_status(&a, "sleepy", other).await, words);
    }
}

/// The statement of an operator replaces the report of etcd, and a takeover waits for no fence of etcd.
pub async fn a_seed_states_nothing_in_the_name_of_an_operator(garden: &Garden) {
    garden
        .shoot("stated", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let condition = |type_: &str, reason: &str, second: &str| {
        let time = format!("2026-01-01T00:00:{second}Z");
        json!({"type": type_, "status": "Unknown", "reason": reason, "message": "m", "lastTransitionTime": time,
            "lastUpdateTime": time})
    };
    let report = |conditions: Value| garden.patch_status(&a, "stated", json!({"conditions": conditions}));
    let verified = |reason: &str, second: &str| condition("OwnershipVerified", reason, second);
    for reason in REASONS_OF_SEEDS {
        allowed(report(json!([verified(reason, "00")])).await);
    }
    let words = "may not report condition OwnershipVerified of Shoot stated with reason \"SeedIsOff\"";
    refused(report(json!([verified("SeedIsOff", "00")])).await, words);
    // The seed keeps the statement of an operator beside its own reports, or replaces the statement.
    let stated = json!({"conditions": [verified("SeedIsOff", "00")]});
    garden
        .status(&garden.admin::<Shoot>(NAMESPACE), "stated", stated)
        .await;
    let other = condition("EveryNodeReady", "SeedIsOff", "01");
    allowed(report(json!([verified("SeedIsOff", "00"), other])).await);
    refused(report(json!([verified("SeedIsOff", "01"), other])).await, words);
    allowed(report(json!([verified("Owner", "01"), other])).await);
    refused(report(json!([verified("SeedIsOff", "00"), other])).await, words);
}
