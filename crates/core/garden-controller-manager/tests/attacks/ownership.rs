//! The owner of a shoot: a seed that never got the shoot cannot write to it, and a seed that handed over the
//! shoot cannot write to it any more.

use api::gardencore::Shoot;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::garden::{Garden, NAMESPACE, allowed, operation, refused};

fn approval(source: &str, destination: &str) -> Value {
    json!({"source": source, "destination": destination, "generation": 2, "spec": {"purpose": "production"}})
}

/// A Shoot on seed-a that is meant for seed-b.
async fn moving(garden: &Garden, name: &str) {
    garden
        .shoot(name, "seed-b", Some("seed-a"), ("Migrate", "Processing"))
        .await;
    let ids = json!({"technicalID": format!("shoot--dev--{name}"), "uid": "u"});
    garden.status(&garden.admin::<Shoot>(NAMESPACE), name, ids).await;
}

fn hand_over(former: &[(&str, i64)], epoch: i64) -> Value {
    let former: Vec<_> = former
        .iter()
        .map(|(name, epoch)| json!({"name": name, "epoch": epoch}))
        .collect();
    json!({
        "seedName": "seed-b", "ownership": {"epoch": epoch}, "formerSeeds": former,
        "lastOperation": operation("Migrate", "Succeeded"),
    })
}

pub async fn the_destination_writes_nothing_before_it_has_the_shoot(garden: &Garden) {
    moving(garden, "early").await;
    let b: Api<Shoot> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    let word = "may not write Shoot early, which is on seed \"seed-a\" and meant for seed \"seed-b\"";
    for status in [
        json!({"observedGeneration": 1}),
        json!({"lastOperation": operation("Restore", "Succeeded")}),
        json!({"clusterIdentity": "stolen"}),
    ] {
        refused(garden.patch_status(&b, "early", status).await, word);
    }
    // Two policies refuse these writes: a policy for the seed, and a policy for all users.
    let theirs = "the gardenlet of seed \"seed-b\" may not";
    refused(
        garden
            .patch_status(&b, "early", json!({"technicalID": "shoot--dev--other"}))
            .await,
        theirs,
    );
    refused(
        garden.patch_status(&b, "early", json!({"uid": "v"})).await,
        theirs,
    );
    refused(
        garden
            .patch_status(&b, "early", json!({"seedName": "seed-b"}))
            .await,
        theirs,
    );
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    for ids in [json!({"technicalID": "shoot--dev--other"}), json!({"uid": "v"})] {
        refused(garden.patch_status(&a, "early", ids).await, "for ever");
    }
    for metadata in [
        json!({"finalizers": ["gardener"]}),
        json!({"labels": {"shoot.gardener.cloud/status": "healthy"}}),
        json!({"annotations": {"x": "y"}}),
    ] {
        refused(
            garden.patch(&b, "early", json!({"metadata": metadata})).await,
            word,
        );
    }
}

/// Hand-overs from seed-a in epoch 1 whose epoch or former seeds are wrong, and why each is refused.
fn wrong_histories() -> Vec<(Value, &'static str)> {
    let mut wrong = vec![(
        json!({"ownership": {"epoch": 2}}),
        "it rises by one with a hand-over",
    )];
    wrong.extend([1, 3].map(|epoch| {
        let refusal = "status.ownership.epoch must become 2 in the same write";
        (hand_over(&[("seed-a", 1)], epoch), refusal)
    }));
    let histories = [
        &[][..],
        &[("seed-a", 2)],
        &[("seed-c", 1)],
        &[("seed-a", 1), ("seed-c", 1)],
    ];
    wrong.extend(histories.map(|former| {
        let refusal = "without an entry of seed \"seed-a\" with epoch 1 in status.formerSeeds";
        (hand_over(former, 2), refusal)
    }));
    wrong
}

pub async fn a_shoot_is_handed_over_as_it_was_approved(garden: &Garden) {
    moving(garden, "web").await;
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let manager: Api<Shoot> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    let write = |status: Value| garden.patch_status(&a, "web", status);
    let good = hand_over(&[("seed-a", 1)], 2);
    let not_approved = "has not approved a move from seed \"seed-a\" to it";
    refused(write(good.clone()).await, not_approved);
    // The seed does not approve its own move.
    let word = "status.migration of Shoot web";
    refused(
        write(json!({"migration": approval("seed-a", "seed-b")})).await,
        word,
    );
    let mut both = good.clone();
    both["migration"] = approval("seed-a", "seed-b");
    refused(write(both).await, "Shoot web");
    let now = "2026-01-01T00:00:00Z";
    let ready = json!({"type": "ReadyForMigration", "status": "True", "reason": "R", "message": "m",
        "lastTransitionTime": now, "lastUpdateTime": now});
    refused(
        write(json!({"constraints": [ready]})).await,
        "constraint ReadyForMigration of Shoot web",
    );
    allowed(
        garden
            .patch_status(&manager, "web", json!({"constraints": [ready]}))
            .await,
    );
    refused(
        write(json!({"constraints": []})).await,
        "constraint ReadyForMigration of Shoot web",
    );
    // An approval of a different source, or for a different destination, does not count.
    for (source, destination) in [("seed-c", "seed-b"), ("seed-a", "seed-c")] {
        let other = json!({"migration": approval(source, destination)});
        allowed(garden.patch_status(&manager, "web", other).await);
        refused(write(good.clone()).await, not_approved);
    }
    let approved = json!({"migration": approval("seed-a", "seed-b")});
    allowed(garden.patch_status(&manager, "web", approved).await);
    // The seed reports the progress of the move beside the approval, and cannot change the approval itself.
    let progress =
        |seed: &str| json!({"migration": {"progress": {"seedName": seed, "step": "s", "startTime": now}}});
    allowed(write(progress("seed-a")).await);
    refused(
        write(progress("seed-b")).await,
        "may not change status.migration.progress of Shoot web",
    );
    let mut spec = progress("seed-a");
    spec["migration"]["spec"] = json!({"region": "elsewhere"});
    refused(write(spec).await, word);
    for (status, refusal) in wrong_histories() {
        refused(write(status).await, refusal);
    }
    let mut elsewhere = good.clone();
    elsewhere["seedName"] = json!("seed-c");
    refused(
        write(elsewhere).await,
        "may not give Shoot web to seed \"seed-c\": it is meant for seed \"seed-b\"",
    );
    refused(
        write(json!({"seedName": null})).await,
        "the gardenlet of seed \"seed-a\" may not",
    );
    allowed(write(good).await);
}

/// A gardenlet that was stopped between its check and its write, and resumed when another gardenlet of its
/// seed has handed over the shoot.
pub async fn a_hand_over_that_comes_late_is_refused(garden: &Garden) {
    moving(garden, "late").await;
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let b: Api<Shoot> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    let approved = json!({"migration": approval("seed-a", "seed-b")});
    garden.status(&admin, "late", approved.clone()).await;
    let read = admin.get("late").await.unwrap().resource_version();
    let write = |mut status: Value, of: Option<&String>| {
        status["lastOperation"] = operation("Migrate", "Succeeded");
        let mut body = json!({"status": status});
        if let Some(version) = of {
            body["metadata"] = json!({"resourceVersion": version});
        }
        let a = a.clone();
        async move {
            let (params, body) = (PatchParams::default(), Patch::Merge(body));
            a.patch_status("late", &params, &body).await.map(|_| ())
        }
    };
    let hand_over = hand_over(&[("seed-a", 1)], 2);
    allowed(write(hand_over.clone(), read.as_ref()).await);
    // Gardenlets write conditionally on the Shoot that they have read: the same hand-over, and a hand-over
    // with a different epoch.
    let changed = "the object has been modified";
    refused(write(hand_over.clone(), read.as_ref()).await, changed);
    refused(
        write(json!({"ownership": {"epoch": 1}}), read.as_ref()).await,
        changed,
    );
    // Without that condition the rules for seeds refuse the hand-over: while the destination restores the
    // shoot, after this seed is removed from the former seeds, and after the shoot is back.
    let restoring = json!({"lastOperation": operation("Restore", "Processing")});
    allowed(garden.patch_status(&b, "late", restoring.clone()).await);
    // By two policies, in no order.
    refused(
        write(hand_over.clone(), None).await,
        "the gardenlet of seed \"seed-a\"",
    );
    garden
        .status(&admin, "late", json!({"formerSeeds": [], "migration": null}))
        .await;
    refused(
        write(hand_over.clone(), None).await,
        "the gardenlet of seed \"seed-a\" may not",
    );
    let back = json!({"seedName": "seed-a", "ownership": {"epoch": 3}, "migration": approved["migration"]});
    garden.status(&admin, "late", back).await;
    refused(
        write(hand_over, None).await,
        "status.ownership.epoch must become 4 in the same write",
    );
}

pub async fn a_former_seed_takes_only_its_own_entry_away(garden: &Garden) {
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let b: Api<Shoot> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    moving(garden, "handed").await;
    let approved = json!({"migration": approval("seed-a", "seed-b")});
    garden.status(&admin, "handed", approved).await;
    let done = hand_over(&[("seed-a", 1)], 2);
    allowed(garden.patch_status(&a, "handed", done).await);
    let two = json!([{"name": "seed-c", "epoch": 1}, {"name": "seed-a", "epoch": 1}]);
    garden.status(&admin, "handed", json!({"formerSeeds": two})).await;
    let word = "may only take its own entry out of status.formerSeeds";
    let rest = json!([{"name": "seed-c", "epoch": 1}]);
    for status in [
        json!({"observedGeneration": 9}),
        json!({"formerSeeds": rest, "observedGeneration": 9}),
        json!({"formerSeeds": rest, "lastOperation": operation("Reconcile", "Failed")}),
    ] {
        refused(garden.patch_status(&a, "handed", status).await, word);
    }
    for change in [
        json!({"metadata": {"finalizers": []}}),
        json!({"metadata": {"labels": {"shoot.gardener.cloud/status": "x"}}}),
    ] {
        refused(garden.patch(&a, "handed", change).await, word);
    }
    let theirs = "its own entry out";
    for left in [json!([]), json!([{"name": "seed-a", "epoch": 1}])] {
        refused(
            garden
                .patch_status(&a, "handed", json!({"formerSeeds": left}))
                .await,
            theirs,
        );
    }
    refused(
        garden
            .patch_status(&b, "handed", json!({"formerSeeds": rest}))
            .await,
        theirs,
    );
    refused(
        garden
            .patch_status(&b, "handed", json!({"ownership": null}))
            .await,
        "may not change status.ownership.epoch of Shoot handed from 2 to 1",
    );
    allowed(
        garden
            .patch_status(&b, "handed", json!({"observedGeneration": 3}))
            .await,
    );
    allowed(
        garden
            .patch_status(&a, "handed", json!({"formerSeeds": rest}))
            .await,
    );
    refused(
        garden
            .patch_status(&a, "handed", json!({"observedGeneration": 9}))
            .await,
        "may not write Shoot handed, which is on seed \"seed-b\"",
    );
}

pub async fn the_source_writes_no_metadata_but_that_of_its_work(garden: &Garden) {
    moving(garden, "meta").await;
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    let write = |metadata: Value| garden.patch(&a, "meta", json!({"metadata": metadata}));
    for (metadata, words) in [
        (
            json!({"labels": {"x": "y"}}),
            "may not change label x of Shoot meta",
        ),
        (
            json!({"annotations": {"confirmation.gardener.cloud/deletion": "true"}}),
            "annotation confirmation.gardener.cloud/deletion",
        ),
        (
            json!({"annotations": {"gardener.cloud/operation": "retry"}}),
            "annotation gardener.cloud/operation",
        ),
        (json!({"finalizers": ["x/y"]}), "finalizer x/y"),
        // Thousands would leave no room for annotations.
        (
            json!({"finalizers": ["gardener", "gardener"]}),
            "may not write a finalizer of Shoot meta more than once",
        ),
    ] {
        refused(write(metadata).await, words);
    }
    let asked = json!({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}});
    allowed(garden.patch(&admin, "meta", asked).await);
    allowed(write(json!({"annotations": {"gardener.cloud/operation": null}})).await);
    allowed(write(json!({"finalizers": ["gardener"]})).await);
    allowed(write(json!({"labels": {"shoot.gardener.cloud/status": "healthy"}})).await);
    allowed(write(json!({"finalizers": null})).await);
    let held = json!({"metadata": {"finalizers": ["x/y", "gardener"]}});
    allowed(garden.patch(&admin, "meta", held).await);
    refused(
        write(json!({"finalizers": ["x/y", "x/y"]})).await,
        "may not write a finalizer of Shoot meta more than once",
    );
    allowed(write(json!({"finalizers": ["x/y"]})).await);
    // A user must not stop the gardenlet by a repetition.
    let repeated = json!({"metadata": {"finalizers": ["gardener", "gardener"]}});
    allowed(garden.patch(&admin, "meta", repeated).await);
    allowed(write(json!({"labels": {"shoot.gardener.cloud/status": "unhealthy"}})).await);
    let released = json!({"metadata": {"finalizers": null}});
    allowed(garden.patch(&admin, "meta", released).await);
}

/// garden-controller-manager may write for a dead source, and follows the same epoch rules.
pub async fn garden_controller_manager_hands_over_by_one_epoch(garden: &Garden) {
    moving(garden, "dead").await;
    let manager: Api<Shoot> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    let write = |status: Value| garden.patch_status(&manager, "dead", status);
    refused(
        write(json!({"seedName": "seed-b"})).await,
        "status.ownership.epoch must become 2",
    );
    refused(
        write(json!({"ownership": {"epoch": 3}})).await,
        "may not change status.ownership.epoch of Shoot dead from 1 to 3",
    );
    allowed(write(json!({"ownership": {"epoch": 2}})).await);
    allowed(write(hand_over(&[("seed-a", 2)], 3)).await);
    // Only entries of deleted Seeds may be removed; garden-controller-manager adds no entries.
    let more = json!([{"name": "seed-a", "epoch": 2}, {"name": "seed-c", "epoch": 1}]);
    refused(
        write(json!({"formerSeeds": more})).await,
        "garden-controller-manager those of Seeds that are gone",
    );
    allowed(write(json!({"formerSeeds": []})).await);
    // Only the seed itself takes a Shoot that is on no seed.
    garden.shoot("nowhere", "seed-a", None, ("", "")).await;
    let uid = manager.get("nowhere").await.unwrap().uid();
    let status = json!({"seedName": "seed-a", "technicalID": "shoot--dev--nowhere", "uid": uid});
    refused(
        garden.patch_status(&manager, "nowhere", status).await,
        "only that seed takes a shoot that is nowhere",
    );
}
