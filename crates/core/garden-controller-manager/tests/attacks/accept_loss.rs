//! The end of an epoch that a hand-over records, and the users that may accept a restore with less data.

use api::gardencore::Shoot;
use kube::Api;
use serde_json::{Value, json};

use crate::garden::{Garden, NAMESPACE, allowed, operation, refused, try_patch, until_allowed};

const ACCEPT: &str = "shoot.gardener.cloud/accept-loss";

fn accepts(value: &Value) -> Value {
    json!({"metadata": {"annotations": {(ACCEPT): value}}})
}

fn end(epoch: i64) -> Value {
    json!({"epoch": epoch, "revision": 54, "snapshot": "Full-00000000-00000054-9.gz.final", "sha256": "a".repeat(64)})
}

/// A user who may edit every Shoot still has no right to lose its data, and an approval applies to the
/// running copy.
pub async fn to_accept_a_loss_takes_a_verb_of_its_own(garden: &Garden) {
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    garden
        .shoot("lossy", "seed-b", Some("seed-b"), ("Restore", "Processing"))
        .await;
    let source = json!({"name": "seed-a", "epoch": 1});
    let claiming =
        json!({"ownership": {"epoch": 2, "phase": "Claiming", "source": source, "sealed": end(1)}});
    garden.status(&admin, "lossy", claiming).await;
    let editor = garden.editor_of_shoots(NAMESPACE).await.unwrap();
    let theirs: Api<Shoot> = Api::namespaced(editor, NAMESPACE);
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    until_allowed(|| try_patch(&theirs, "lossy", &label)).await;
    let some = accepts(&json!("17"));
    let word = "that takes the verb force-restore on shoots";
    refused(garden.patch(&theirs, "lossy", some.clone()).await, word);
    let b: Api<Shoot> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    // By two policies, in no order.
    refused(garden.patch(&b, "lossy", some.clone()).await, "Shoot lossy");
    let manager: Api<Shoot> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    refused(garden.patch(&manager, "lossy", some.clone()).await, "may not");
    for value in ["0", "-17", "017", "1.5", "all", "", "1000000000000000000000"] {
        refused(
            garden.patch(&admin, "lossy", accepts(&json!(value))).await,
            "is not a positive number of revisions",
        );
    }
    refused(
        garden.patch(&admin, "lossy", accepts(&json!("unknown"))).await,
        "has a recorded end of its source",
    );
    allowed(garden.patch(&admin, "lossy", some.clone()).await);
    refused(garden.patch(&theirs, "lossy", accepts(&json!("18"))).await, word);
    allowed(garden.patch(&theirs, "lossy", label).await);
    // The seed whose etcd runs removes the annotation, and so may every editor of the Shoot.
    allowed(garden.patch(&b, "lossy", accepts(&Value::Null)).await);
    allowed(garden.patch(&admin, "lossy", some.clone()).await);
    allowed(garden.patch(&theirs, "lossy", accepts(&Value::Null)).await);
    // There is no copy, or the end of the copied epoch is unknown.
    for ownership in [
        json!({"phase": "Opening"}),
        json!({"phase": "Held"}),
        json!({"phase": "Claiming", "sealed": {"epoch": 2}}),
        json!({"phase": null, "source": null, "sealed": {"epoch": 1}}),
    ] {
        let status = json!({"ownership": ownership, "lastOperation": operation("Reconcile", "Succeeded")});
        garden.status(&admin, "lossy", status).await;
        refused(
            garden.patch(&admin, "lossy", some.clone()).await,
            "there is no loss to accept",
        );
    }
    // Without recorded phases, the operation decides.
    garden
        .status(
            &admin,
            "lossy",
            json!({"lastOperation": operation("Restore", "Error")}),
        )
        .await;
    allowed(garden.patch(&admin, "lossy", some.clone()).await);
    a_copy_tells_where_no_end_is_recorded(garden, &some, &source).await;
}

async fn a_copy_tells_where_no_end_is_recorded(garden: &Garden, some: &Value, source: &Value) {
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    // A source gardenlet that is older than the record of the end: the copy tells whether the backups are
    // complete.
    for (ownership, operation_state, is_allowed) in [
        (
            json!({"phase": null, "source": null, "sealed": null}),
            ("Restore", "Error"),
            true,
        ),
        (json!({"phase": null}), ("Migrate", "Processing"), false),
        (json!({"phase": null}), ("Restore", "Succeeded"), false),
        (
            json!({"phase": "Claiming", "drained": true, "source": source}),
            ("Restore", "Error"),
            true,
        ),
        (
            json!({"phase": "Claiming", "drained": false}),
            ("Restore", "Error"),
            false,
        ),
    ] {
        allowed(garden.patch(&admin, "lossy", accepts(&Value::Null)).await);
        let (type_, state) = operation_state;
        let status = json!({"ownership": ownership, "lastOperation": operation(type_, state)});
        garden.status(&admin, "lossy", status).await;
        for value in [some.clone(), accepts(&json!("unknown"))] {
            let accepted = garden.patch(&admin, "lossy", value).await;
            if is_allowed {
                allowed(accepted);
            } else {
                refused(accepted, "there is no loss to accept");
            }
        }
    }
}

/// Otherwise a destination would begin with less than the source had, without a report.
pub async fn the_end_of_an_epoch_is_recorded_by_its_seed_in_the_hand_over(garden: &Garden) {
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    let [a, b, manager] = [&garden.seed_a, &garden.seed_b, &garden.manager]
        .map(|client| Api::<Shoot>::namespaced(client.clone(), NAMESPACE));
    garden
        .shoot("ended", "seed-b", Some("seed-a"), ("Migrate", "Processing"))
        .await;
    let approved = json!({"source": "seed-a", "destination": "seed-b", "generation": 1, "spec": {}});
    let status = json!({"ownership": {"epoch": 1, "phase": "Sealing"}, "migration": approved, "technicalID": "t", "uid": "u"});
    garden.status(&admin, "ended", status).await;
    let word = "may not change status.ownership.sealed";
    let early = json!({"ownership": {"sealed": end(1)}});
    for client in [&a, &manager] {
        refused(garden.patch_status(client, "ended", early.clone()).await, word);
    }
    let hand_over = |sealed: Value| {
        let source = json!({"name": "seed-a", "epoch": 1});
        let record =
            json!({"epoch": 2, "phase": "Claiming", "drained": true, "source": source, "sealed": sealed});
        let last = operation("Migrate", "Succeeded");
        let status = json!({"seedName": "seed-b", "ownership": record, "formerSeeds": [source], "lastOperation": last});
        garden.patch_status(&a, "ended", status)
    };
    for other in [0, 2] {
        let refusal = hand_over(end(other)).await;
        assert!(refusal.is_err(), "the end of epoch {other}");
    }
    allowed(hand_over(end(1)).await);
    for change in [
        json!({"ownership": {"sealed": {"revision": 37}}}),
        json!({"ownership": {"sealed": {"sha256": "b".repeat(64)}}}),
        json!({"ownership": {"sealed": null}}),
    ] {
        for client in [&b, &manager] {
            refused(garden.patch_status(client, "ended", change.clone()).await, word);
        }
        assert!(garden.patch_status(&a, "ended", change).await.is_err());
    }
}
