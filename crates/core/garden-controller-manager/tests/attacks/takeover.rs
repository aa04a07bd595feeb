//! The users that may request a takeover, and the gain of a seed that writes into the ownership record.

use api::gardencore::Shoot;
use kube::{Api, api::DeleteParams};
use serde_json::{Value, json};

use crate::garden::{Garden, NAMESPACE, allowed, operation, refused, try_patch, until_allowed};

const ASK: &str = "shoot.gardener.cloud/force-restore";

fn asks(value: &Value) -> Value {
    json!({"metadata": {"annotations": {(ASK): value}}})
}

/// The Shoots for a user who may edit and move each Shoot.
async fn mover(garden: &Garden) -> Api<Shoot> {
    let editor = garden.editor_of_shoots(NAMESPACE).await.unwrap();
    garden.allow_moves_to_editor(NAMESPACE).await.unwrap();
    let shoots: Api<Shoot> = Api::namespaced(editor, NAMESPACE);
    garden
        .shoot("movable", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let move_shoot = json!({"spec": {"seedName": "seed-b"}});
    until_allowed(|| try_patch(&shoots, "movable", &move_shoot)).await;
    shoots
}

/// A user who may edit every Shoot still has no right to lose its data.
pub async fn it_takes_a_verb_of_its_own(garden: &Garden) {
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    for (name, seed) in [("stays", "seed-a"), ("goes", "seed-b")] {
        garden
            .shoot(name, seed, Some("seed-a"), ("Reconcile", "Succeeded"))
            .await;
    }
    let theirs = mover(garden).await;
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    until_allowed(|| try_patch(&theirs, "goes", &label)).await;
    let yes = asks(&json!("true"));
    let word = "that takes the verb force-restore on shoots";
    refused(garden.patch(&theirs, "goes", yes.clone()).await, word);
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    // By two policies, in no order.
    refused(garden.patch(&a, "goes", yes.clone()).await, "Shoot goes");
    let manager: Api<Shoot> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    refused(garden.patch(&manager, "goes", yes.clone()).await, "may not");
    refused(
        garden.patch(&admin, "goes", asks(&json!("yes"))).await,
        "force-restore=yes is unknown; supported are true, and source-is-off",
    );
    refused(
        garden.patch(&admin, "stays", yes.clone()).await,
        "shoot stays is to move nowhere",
    );
    refused(
        garden.patch(&admin, "stays", asks(&json!("source-is-off"))).await,
        "shoot stays is to move nowhere",
    );
    // A seed that claims the shoot waits for former seeds; an operator may state that these are off.
    garden
        .shoot("claimed", "seed-a", Some("seed-a"), ("Restore", "Processing"))
        .await;
    let claiming =
        json!({"ownership": {"epoch": 2, "phase": "Claiming", "source": {"name": "seed-b", "epoch": 1}}});
    garden.status(&admin, "claimed", claiming).await;
    refused(
        garden.patch(&admin, "claimed", asks(&json!("true"))).await,
        "shoot claimed is to move nowhere",
    );
    let states = asks(&json!("source-is-off"));
    refused(garden.patch(&theirs, "claimed", states.clone()).await, word);
    allowed(garden.patch(&admin, "claimed", states).await);
    // Destination and annotation in a single edit.
    let mut both = yes.clone();
    both["spec"] = json!({"seedName": "seed-b"});
    allowed(garden.patch(&admin, "stays", both).await);
    allowed(garden.patch(&admin, "goes", yes).await);
    // A user without the verb must not redirect a request to a different destination.
    let elsewhere = json!({"spec": {"seedName": "seed-c"}});
    refused(garden.patch(&theirs, "goes", elsewhere).await, word);
    allowed(garden.patch(&theirs, "goes", label).await);
    // Nor may such a user state more than the requester.
    let off = asks(&json!("source-is-off"));
    refused(garden.patch(&theirs, "goes", off.clone()).await, word);
    allowed(garden.patch(&admin, "goes", off).await);
    refused(garden.patch(&theirs, "goes", asks(&json!("true"))).await, word);
    // Of the metadata garden-controller-manager may remove only this annotation.
    let more = json!({"metadata": {"annotations": {(ASK): null, "x": "y"}}});
    refused(
        garden.patch(&manager, "goes", more).await,
        "may not change Shoot goes",
    );
    allowed(garden.patch(&manager, "goes", asks(&Value::Null)).await);
    // A tenant must not keep an operator from a takeover.
    let replace =
        "on shoots; where a replace of the Shoot removes the annotation, keep the annotation in the manifest";
    refused(garden.patch(&theirs, "stays", asks(&Value::Null)).await, replace);
    allowed(garden.patch(&admin, "stays", asks(&Value::Null)).await);
}

/// All processes of a shoot stop for the duration of a fence: the right to edit a Shoot is not enough.
pub async fn a_new_epoch_takes_a_verb_of_its_own(garden: &Garden) {
    const RENEW: &str = "shoot.gardener.cloud/renew-ownership";
    let renews = |value: &Value| json!({"metadata": {"annotations": {(RENEW): value}}});
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    for (name, seed) in [("kept", "seed-a"), ("leaves", "seed-b"), ("dies", "seed-a")] {
        garden
            .shoot(name, seed, Some("seed-a"), ("Reconcile", "Succeeded"))
            .await;
    }
    garden.shoot("nowhere", "seed-a", None, ("", "")).await;
    garden.finalizer(&admin, "dies").await;
    let confirmed = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}});
    allowed(garden.patch(&admin, "dies", confirmed).await);
    admin.delete("dies", &DeleteParams::default()).await.unwrap();
    let theirs: Api<Shoot> = Api::namespaced(garden.editor_of_shoots(NAMESPACE).await.unwrap(), NAMESPACE);
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    until_allowed(|| try_patch(&theirs, "kept", &label)).await;
    let yes = renews(&json!("true"));
    let word = "that takes the verb renew-ownership on shoots";
    refused(garden.patch(&theirs, "kept", yes.clone()).await, word);
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    // By two policies, in no order.
    refused(garden.patch(&a, "kept", yes.clone()).await, "Shoot kept");
    let manager: Api<Shoot> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    refused(garden.patch(&manager, "kept", yes.clone()).await, "may not");
    refused(
        garden
            .patch(&admin, "kept", renews(&json!("source-is-off")))
            .await,
        "renew-ownership=source-is-off is unknown; supported is true",
    );
    for (name, why) in [
        (
            "leaves",
            "while the shoot is to move to seed seed-b: set spec.seedName back to seed-a",
        ),
        ("dies", "the shoot is being deleted"),
        ("nowhere", "no seed has the shoot yet"),
    ] {
        refused(garden.patch(&admin, name, yes.clone()).await, why);
    }
    allowed(garden.patch(&admin, "kept", yes.clone()).await);
    // The annotation stays: users who may edit the Shoot can continue to edit.
    allowed(garden.patch(&theirs, "kept", label).await);
    let more = json!({"metadata": {"annotations": {(RENEW): null, "x": "y"}}});
    refused(
        garden.patch(&manager, "kept", more).await,
        "may not change Shoot kept",
    );
    allowed(garden.patch(&manager, "kept", renews(&Value::Null)).await);
    allowed(garden.patch(&admin, "kept", yes).await);
    refused(
        garden.patch(&theirs, "kept", renews(&Value::Null)).await,
        "on shoots; where a replace of the Shoot removes the annotation, keep the annotation in the manifest",
    );
    allowed(garden.patch(&admin, "kept", renews(&Value::Null)).await);
}

fn consent(to: &str) -> Value {
    json!({"uid": "u", "from": "seed-a", "to": to, "epoch": 1, "acceptedLoss": "SinceLastSnapshot",
        "expiry": "2099-01-01T00:00:00Z", "by": "Operator", "reason": "r"})
}

pub async fn no_seed_consents_to_a_takeover(garden: &Garden) {
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let b: Api<Shoot> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    let manager: Api<Shoot> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    garden
        .shoot("coveted", "seed-b", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let given = json!({"ownership": {"epoch": 1, "approval": consent("seed-b")}});
    refused(
        garden.patch_status(&a, "coveted", given.clone()).await,
        "may not change status.ownership.approval",
    );
    refused(
        garden.patch_status(&b, "coveted", given.clone()).await,
        "the gardenlet of seed \"seed-b\" may not",
    );
    allowed(garden.patch_status(&manager, "coveted", given).await);
    for change in [
        json!({"ownership": {"approval": null}}),
        json!({"ownership": {"approval": {"to": "seed-c"}}}),
        json!({"ownership": {"approval": {"expiry": "2100-01-01T00:00:00Z"}}}),
        json!({"ownership": null}),
    ] {
        refused(
            garden.patch_status(&a, "coveted", change).await,
            "may not change status.ownership.approval",
        );
    }
    let off = json!({"ownership": {"seedsStatedOff": [{"name": "seed-b", "epoch": 1}]}});
    refused(
        garden.patch_status(&a, "coveted", off.clone()).await,
        "may not change status.ownership.seedsStatedOff",
    );
    allowed(garden.patch_status(&manager, "coveted", off).await);
    refused(
        garden
            .patch_status(&a, "coveted", json!({"ownership": {"seedsStatedOff": null}}))
            .await,
        "may not change status.ownership.seedsStatedOff",
    );
    // The seed does not get the shoot by that either: the hand-over is a write of the garden.
    let taken = json!({"seedName": "seed-b", "ownership": {"epoch": 2}, "formerSeeds": [{"name": "seed-a", "epoch": 1}]});
    refused(
        garden.patch_status(&b, "coveted", taken).await,
        "the gardenlet of seed \"seed-b\" may not",
    );
}

/// Steps that are not the owner's, steps back, and data that were chosen twice.
pub async fn a_record_goes_on_step_by_step(garden: &Garden) {
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    let b: Api<Shoot> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    garden
        .shoot("stepped", "seed-b", Some("seed-b"), ("Restore", "Processing"))
        .await;
    let source = json!({"name": "seed-a", "epoch": 1});
    let claiming = json!({"ownership": {"epoch": 2, "phase": "Claiming", "source": source}});
    garden.status(&admin, "stepped", claiming).await;
    third_seeds_are_named_by_those_who_may(garden, &admin).await;
    let write = |record: Value| garden.patch_status(&b, "stepped", json!({"ownership": record}));
    let (phase, rest) = (
        "may not change status.ownership.phase",
        "may not change source, drained or chain",
    );
    for other in ["Held", "Leaving", "Sealing"] {
        refused(write(json!({"phase": other})).await, phase);
    }
    refused(write(json!({"phase": null})).await, phase);
    for change in [
        json!({"phase": "Opening"}),
        json!({"chain": "Last"}),
        json!({"drained": true}),
        json!({"source": {"name": "seed-c"}}),
        json!({"source": null}),
        json!({"phase": "Opening", "chain": "Last", "drained": true}),
    ] {
        refused(write(change).await, rest);
    }
    allowed(write(json!({"phase": "Opening", "chain": "Last"})).await);
    refused(write(json!({"chain": "Final"})).await, rest);
    refused(write(json!({"phase": "Claiming"})).await, phase);
    hands_over_only_what_it_has(garden, &admin, &b).await;
}

async fn third_seeds_are_named_by_those_who_may(garden: &Garden, admin: &Api<Shoot>) {
    let theirs = mover(garden).await;
    let to = |seed: &str| json!({"spec": {"seedName": seed}});
    refused(
        garden.patch(&theirs, "stepped", to("seed-c")).await,
        "spec.seedName cannot be changed while seed seed-b restores the shoot",
    );
    for seed in ["seed-c", "seed-b"] {
        allowed(garden.patch(admin, "stepped", to(seed)).await);
    }
}

async fn hands_over_only_what_it_has(garden: &Garden, admin: &Api<Shoot>, b: &Api<Shoot>) {
    garden
        .patch(admin, "stepped", json!({"spec": {"seedName": "seed-b"}}))
        .await
        .unwrap();
    garden
        .status(
            admin,
            "stepped",
            json!({"lastOperation": operation("Restore", "Succeeded")}),
        )
        .await;
    allowed(
        garden
            .patch(admin, "stepped", json!({"spec": {"seedName": "seed-c"}}))
            .await,
    );
    let approved = json!({"source": "seed-b", "destination": "seed-c", "generation": 2, "spec": {}});
    garden
        .status(
            admin,
            "stepped",
            json!({"migration": approved, "technicalID": "t", "uid": "u"}),
        )
        .await;
    let hand_over = |record: Value| {
        let former = json!([{"name": "seed-b", "epoch": 2}]);
        let last = operation("Migrate", "Succeeded");
        let status =
            json!({"seedName": "seed-c", "ownership": record, "formerSeeds": former, "lastOperation": last});
        garden.patch_status(b, "stepped", status)
    };
    let good =
        json!({"epoch": 3, "phase": "Claiming", "source": {"name": "seed-b", "epoch": 2}, "chain": null});
    let word = "with this status.ownership";
    // The shoot is opened, but not yet held by the seed.
    refused(hand_over(good.clone()).await, word);
    allowed(
        garden
            .patch_status(b, "stepped", json!({"ownership": {"phase": "Held"}}))
            .await,
    );
    for bad in [
        json!({"epoch": 3}),
        json!({"epoch": 3, "phase": "Claiming", "chain": null}),
        json!({"epoch": 3, "phase": "Claiming", "source": {"name": "seed-b", "epoch": 2}}),
        json!({"epoch": 3, "phase": "Held", "source": {"name": "seed-b", "epoch": 2}, "chain": null}),
    ] {
        refused(hand_over(bad).await, word);
    }
    allowed(hand_over(good).await);
}

/// R17-46: the report of a loss comes from a seed that is not trusted any more. The seed may report once,
/// about its own residency, and write no other field.
pub async fn a_former_seed_tells_its_own_loss_once(garden: &Garden) {
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let b: Api<Shoot> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    garden
        .shoot("bereft", "seed-c", Some("seed-c"), ("Reconcile", "Succeeded"))
        .await;
    let source = json!({"name": "seed-a", "epoch": 1});
    let restored = json!({"epoch": 2, "lastRevision": 832, "saved": "2026-01-01T00:00:00Z", "fenced": "2026-01-01T00:01:30Z",
        "source": source});
    let taken = json!({"formerSeeds": [source, {"name": "seed-b", "epoch": 1}],
        "ownership": {"epoch": 2, "phase": "Held", "source": source, "chain": "Last", "restored": restored}});
    garden.status(&admin, "bereft", taken).await;
    let told = |lost: i64| json!({"ownership": {"restored": {"lostRevisions": lost}}});
    let word = "may only take its own entry out of status.formerSeeds, and add status.ownership.restored.lostRevisions once";
    refused(garden.patch_status(&b, "bereft", told(7)).await, word);
    for more in [
        json!({"ownership": {"restored": {"lostRevisions": 7, "lastRevision": 1}}}),
        json!({"ownership": {"restored": {"lostRevisions": 7, "source": null}}}),
        json!({"ownership": {"restored": {"lostRevisions": 7, "unknown": "Nothing, perhaps."}}}),
        json!({"ownership": {"restored": {"lostRevisions": 7, "fenced": "2026-01-01T00:00:00Z"}}}),
        json!({"ownership": {"restored": {"lostRevisions": 7}, "approval": consent("seed-a")}}),
        json!({"ownership": {"restored": {"lostRevisions": 7}, "phase": "Claiming"}}),
        json!({"ownership": {"restored": {"lostRevisions": 7}, "seedsStatedOff": [{"name": "seed-b", "epoch": 1}]}}),
        json!({"ownership": {"restored": {"lostRevisions": 7}}, "formerSeeds": []}),
        json!({"ownership": {"restored": {"lostRevisions": 7}}, "observedGeneration": 9}),
        json!({"ownership": {"restored": null}}),
        // Without a number, each write would still be a new version of the Shoot, and the host conflicts.
        json!({}),
        json!({"ownership": {"restored": {"lostRevisions": null}}}),
    ] {
        let written = garden.patch_status(&a, "bereft", more.clone()).await;
        refused(written, "the gardenlet of seed \"seed-a\"");
    }
    allowed(garden.patch_status(&a, "bereft", told(7)).await);
    for again in [
        told(8),
        told(0),
        json!({"ownership": {"restored": {"lostRevisions": null}}}),
    ] {
        refused(garden.patch_status(&a, "bereft", again).await, word);
    }
    let left = json!({"formerSeeds": [{"name": "seed-b", "epoch": 1}]});
    allowed(garden.patch_status(&a, "bereft", left).await);
    // The seed opened epoch 1, took the shoot back in epoch 3, and lost the shoot before etcd was opened. A
    // residency that began after the loss has other data.
    let source = json!({"name": "seed-a", "epoch": 1});
    for (former, may_report) in [(5, false), (4, false), (3, true)] {
        let restored = json!({"epoch": 4, "lastRevision": 832, "fenced": "2026-01-01T00:01:30Z", "source": source,
            "lostRevisions": null});
        let taken = json!({"formerSeeds": [{"name": "seed-a", "epoch": former}],
            "ownership": {"epoch": 6, "phase": "Held", "source": source, "chain": "Last", "restored": restored}});
        garden.status(&admin, "bereft", taken).await;
        let written = garden.patch_status(&a, "bereft", told(7)).await;
        if may_report {
            allowed(written);
        } else {
            refused(written, word);
        }
    }
}
