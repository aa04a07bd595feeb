//! The report of a host decides for later hosts: `status.lastOperation` says whether the next seed restores
//! or creates the shoot, and `status.lastHibernationTriggerTime` says which times of schedules have come.
//! Further reports refuse each takeover of the shoot, keep the shoot from reconciliations, or end the wait of
//! an operator.

use api::{constants::SHOOT_ISOLATED_ZONE, gardencore::Shoot};
use kube::Api;
use placement::takeover::REASONS_OF_SEEDS;
use serde_json::{Value, json};

use crate::garden::{
    Garden, NAMESPACE, allowed, operation, refused, shoot_with_pools, try_patch, until_allowed,
};

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
        moving(garden, "not-over", last).await;
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

/// A shoot in phase Sealing is not reconciled. A user may cancel the move after the begin of the migration.
pub async fn a_host_seals_no_shoot_that_does_not_move(garden: &Garden) {
    const NAME: &str = "sealed-alone";
    garden
        .shoot(NAME, "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let write = |status: Value| garden.patch_status(&a, NAME, status);
    let migrate = |state: &str| json!({"lastOperation": operation("Migrate", state)});
    let record = |phase: &str| json!({"ownership": {"epoch": 1, "phase": phase}});
    let no_approval = "may not begin a migration of Shoot sealed-alone";
    let no_migration =
        |phase: &str| format!("may not record phase {phase} in status.ownership of Shoot sealed-alone");
    for state in ["Pending", "Processing", "Error", "Failed"] {
        refused(write(migrate(state)).await, no_approval);
    }
    refused(write(record("Leaving")).await, &no_migration("Leaving"));
    allowed(write(record("Held")).await);
    refused(write(record("Leaving")).await, &no_migration("Leaving"));
    // Phases from before this rule.
    garden.status(&admin, NAME, record("Leaving")).await;
    refused(write(record("Sealing")).await, &no_migration("Sealing"));
    garden.status(&admin, NAME, record("Held")).await;
    moving(garden, NAME, ("Reconcile", "Succeeded")).await;
    refused(write(record("Leaving")).await, &no_migration("Leaving"));
    allowed(write(migrate("Processing")).await);
    // The migration that has begun goes on after the approval is gone.
    let cancelled = json!({"spec": {"seedName": "seed-a"}});
    allowed(garden.patch(&admin, NAME, cancelled).await);
    garden.status(&admin, NAME, json!({"migration": null})).await;
    allowed(write(record("Leaving")).await);
    allowed(write(migrate("Error")).await);
    allowed(write(record("Sealing")).await);
    allowed(write(json!({"lastOperation": operation("Restore", "Processing")})).await);
}

/// Without that report no seed could take the shoot over.
pub async fn a_host_takes_back_no_report_of_a_saved_state(garden: &Garden) {
    garden
        .shoot("saved", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let constraint = |type_: &str, reason: &str| {
        json!({"type": type_, "status": "False", "reason": reason, "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"})
    };
    let state = |reason: &str| constraint("ShootStateUpToDate", reason);
    let report = |constraints: Value| garden.patch_status(&a, "saved", json!({"constraints": constraints}));
    let other = constraint("ShootStateComplete", "ShootStateNeverSynced");
    // Until the first keys are saved.
    let never = state("ShootStateNeverSynced");
    allowed(report(json!([never, other])).await);
    allowed(report(json!([other])).await);
    allowed(report(json!([never])).await);
    for reason in ["ShootStateSynced", "ShootStateNotSynced", "ShootStateSynced"] {
        allowed(report(json!([other, state(reason)])).await);
    }
    let words = "may not take back constraint ShootStateUpToDate of Shoot saved";
    for taken in [json!([other]), json!([other, never]), json!([]), Value::Null] {
        refused(report(taken).await, words);
    }
    allowed(report(json!([state("ShootStateNotSynced")])).await);
    allowed(
        garden
            .patch_status(&a, "saved", json!({"observedGeneration": 7}))
            .await,
    );
}

/// An operator waits for the destination in `status.settledSeedName`, and then switches the source off.
pub async fn a_seed_ends_no_move_in_the_name_of_the_destination(garden: &Garden) {
    moving(garden, "unsettled", ("Migrate", "Processing")).await;
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    let [a, b] =
        [&garden.seed_a, &garden.seed_b].map(|client| Api::<Shoot>::namespaced(client.clone(), NAMESPACE));
    let settled = |seed: Value| json!({"settledSeedName": seed});
    let words = "may not set status.settledSeedName of Shoot unsettled to \"seed-b\"";
    let write = |status: Value| garden.patch_status(&a, "unsettled", status);
    refused(write(settled(json!("seed-b"))).await, words);
    for seed in [json!("seed-a"), Value::Null, json!("seed-a")] {
        allowed(write(settled(seed)).await);
    }
    let hand_over = |seed: Value| {
        json!({"seedName": "seed-b", "ownership": {"epoch": 2}, "formerSeeds": [{"name": "seed-a", "epoch": 1}],
            "lastOperation": operation("Migrate", "Succeeded"), "settledSeedName": seed})
    };
    refused(write(hand_over(json!("seed-b"))).await, words);
    // A version without this rule let the seed write the name.
    garden.status(&admin, "unsettled", settled(json!("seed-b"))).await;
    allowed(write(json!({"observedGeneration": 7})).await);
    refused(write(hand_over(json!("seed-b"))).await, words);
    allowed(write(hand_over(Value::Null)).await);
    let end = settled(json!("seed-b"));
    allowed(garden.patch_status(&b, "unsettled", end).await);
}

/// Each destination needs a provider for the recorded zone, and closes the network of the zone.
pub async fn a_host_isolates_no_zone_that_no_user_names(garden: &Garden) {
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let pool =
        json!({"name": "a", "machine": {"type": "local"}, "minimum": 1, "maximum": 2, "zones": ["a", "b"]});
    let shoot = shoot_with_pools("zoned", "local", &json!([pool]));
    garden.apply(&admin, "zoned", shoot).await.unwrap();
    let host = json!({"seedName": "seed-a", "lastOperation": operation("Reconcile", "Succeeded")});
    garden.status(&admin, "zoned", host).await;
    let write = |id: &str, phase: &str, status: &str| {
        let zone = json!({"isolatedZoneID": id, "phase": phase, "status": status,
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        garden.patch_status(&a, "zoned", json!({"zoneIsolation": zone}))
    };
    let words = |id: &str| format!("may not record zone \"{id}\" in status.zoneIsolation of Shoot zoned");
    for (phase, status) in [
        ("Failover", "Done"),
        ("Failover", "Pending"),
        ("Failback", "InProgress"),
        ("Failback", "Done"),
    ] {
        for id in ["id-a", ""] {
            refused(write(id, phase, status).await, &words(id));
        }
    }
    let ask = |id: Value| json!({"metadata": {"annotations": {SHOOT_ISOLATED_ZONE: id}}});
    allowed(garden.patch(&admin, "zoned", ask(json!("id-a"))).await);
    refused(write("id-b", "Failover", "InProgress").await, &words("id-b"));
    for status in ["Pending", "InProgress", "Failed", "InProgress", "Done"] {
        allowed(write("id-a", "Failover", status).await);
    }
    // The user takes the zone back, and the gardenlet goes on with the recorded zone.
    allowed(garden.patch(&admin, "zoned", ask(Value::Null)).await);
    refused(write("id-b", "Failback", "InProgress").await, &words("id-b"));
    allowed(write("id-a", "Failover", "Aborting").await);
    for status in ["Pending", "InProgress", "Failed", "InProgress", "Done"] {
        allowed(write("id-a", "Failback", status).await);
    }
    // A zone that is back stays back until the user asks again.
    refused(write("id-a", "Failover", "Done").await, &words("id-a"));
    refused(write("id-a", "Failback", "InProgress").await, &words("id-a"));
    allowed(
        garden
            .patch_status(&a, "zoned", json!({"observedGeneration": 7}))
            .await,
    );
    allowed(
        garden
            .patch_status(&a, "zoned", json!({"zoneIsolation": null}))
            .await,
    );
    refused(write("id-a", "Failback", "Done").await, &words("id-a"));
}

/// An operator would plan a drain by a false answer, or edit a Shoot that is not too large.
pub async fn a_host_answers_nothing_in_the_name_of_the_garden(garden: &Garden) {
    garden
        .shoot("answered", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let manager: Api<Shoot> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    let now = "2026-01-01T00:00:00Z";
    let answer = |type_: &str, status: &str, message: &str| {
        json!({"type": type_, "status": status, "reason": "DestinationSeedFull", "message": message,
            "lastTransitionTime": now, "lastUpdateTime": now})
    };
    let answers = |answers: Value| json!({"constraints": answers});
    let words = "may not write constraints MigrationDryRun and TakeoverPossible of Shoot answered";
    for type_ in ["MigrationDryRun", "TakeoverPossible"] {
        let given = answer(type_, "False", "Seed b is full.");
        let planted = answers(json!([given]));
        refused(garden.patch_status(&a, "answered", planted.clone()).await, words);
        allowed(garden.patch_status(&manager, "answered", planted).await);
        for change in [
            json!([answer(type_, "True", "Seed b is full.")]),
            json!([answer(type_, "False", "Seed b is free.")]),
            json!([given, answer(type_, "True", "")]),
        ] {
            let changed = garden.patch_status(&a, "answered", answers(change)).await;
            refused(changed, words);
        }
        // By a new time, a former answer would be the answer to the next question.
        for time in [
            "2026-01-01T00:00:01Z",
            "2025-12-31T23:59:59Z",
            "2025-12-31T23:59:59.5Z",
        ] {
            for field in ["lastUpdateTime", "lastTransitionTime"] {
                let mut repeated = answer(type_, "False", "Seed b");
                repeated[field] = json!(time);
                let repeated = garden
                    .patch_status(&a, "answered", answers(json!([repeated])))
                    .await;
                refused(repeated, words);
            }
        }
        let mut coded = given.clone();
        coded["codes"] = json!(["ERR_CONFIGURATION_PROBLEM"]);
        refused(
            garden.patch_status(&a, "answered", answers(json!([coded]))).await,
            words,
        );
        // A gardenlet reports beside the answer, cuts a large status, and removes the answer in a hand-over.
        let own = answer("HibernationPossible", "True", "m");
        let cut = answer(type_, "False", "Seed b");
        for honest in [json!([given, own]), json!([cut, own]), json!([own])] {
            allowed(garden.patch_status(&a, "answered", answers(honest)).await);
        }
        // A hostile host wrote the answer before the rule. A gardenlet writes whole seconds, and each code once.
        let mut former = given.clone();
        former["lastUpdateTime"] = json!("2026-01-01T00:00:00.5Z");
        former["codes"] = json!(["ERR_CONFIGURATION_PROBLEM", "ERR_CONFIGURATION_PROBLEM"]);
        let former = answers(json!([former]));
        allowed(garden.patch_status(&manager, "answered", former).await);
        let mut bounded = given.clone();
        bounded["codes"] = json!(["ERR_CONFIGURATION_PROBLEM"]);
        let bounded = answers(json!([bounded]));
        allowed(garden.patch_status(&a, "answered", bounded).await);
    }
}
