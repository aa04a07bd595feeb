//! The deletion of Shoots and their backups.

use api::gardencore::{BackupEntry, Shoot};
use kube::{Api, api::DeleteParams};
use serde_json::{Value, json};

use crate::garden::{self, Garden, NAMESPACE, allowed, refused};

/// And the backups stay until the shoot is taken down.
pub async fn a_deletion_is_confirmed(garden: &Garden) {
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let making = ("Create", "Processing");
    garden.shoot("ended", "seed-a", Some("seed-a"), making).await;
    let annotate = |key: &str, value: &str| {
        garden.patch(
            &shoots,
            "ended",
            json!({"metadata": {"annotations": {key: value}}}),
        )
    };
    let force = "confirmation.gardener.cloud/force-deletion";
    let delete = || async { shoots.delete("ended", &DeleteParams::default()).await.map(|_| ()) };
    garden.finalizer(&shoots, "ended").await;
    refused(
        delete().await,
        "annotate it with confirmation.gardener.cloud/deletion=true",
    );
    refused(
        annotate(force, "true").await,
        "only on a shoot that is being deleted",
    );
    allowed(annotate("confirmation.gardener.cloud/deletion", "true").await);
    // The backups are safe while the shoot lives.
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    garden
        .status(
            &shoots,
            "ended",
            json!({"technicalID": "shoot--dev--ended", "uid": "u1"}),
        )
        .await;
    garden.entry("shoot--dev--ended--u1", "seed-a", "bucket-a").await;
    garden.entry("shoot--dev--ended--u0", "seed-a", "bucket-a").await;
    let forget = |name: &'static str| {
        let entries = entries.clone();
        async move { entries.delete(name, &DeleteParams::default()).await.map(|_| ()) }
    };
    let (entry, lives) = (
        "shoot--dev--ended--u1",
        "holds the backups of shoot ended, which lives",
    );
    garden::until_refused(lives, || garden::try_delete(&entries, entry)).await;
    refused(forget(entry).await, lives);
    allowed(forget("shoot--dev--ended--u0").await);
    garden
        .entry("source-shoot--dev--ended--u1", "seed-a", "bucket-a")
        .await;
    allowed(delete().await);
    // And while any process still writes the backups: also before the garbage collector, which a foreground
    // deletion triggers.
    let source = "source-shoot--dev--ended--u1";
    let needed = "may have to be restored from";
    garden::until_refused(needed, || garden::try_delete(&entries, source)).await;
    refused(forget(source).await, needed);
    refused(forget(entry).await, "is being deleted: its backups follow");
    let of_seed: Api<BackupEntry> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let without = DeleteParams::default();
    allowed(of_seed.delete(source, &without).await.map(|_| ()));
    refused(
        garden
            .patch(&shoots, "ended", json!({"spec": {"seedName": "seed-b"}}))
            .await,
        "the shoot is being deleted",
    );
    let early = "only after a deletion failed with one of the codes";
    refused(annotate(force, "true").await, early);
    let error = |code: &str| json!({"lastErrors": [{"description": "no", "codes": [code]}]});
    garden
        .status(&shoots, "ended", error("ERR_INFRA_QUOTA_EXCEEDED"))
        .await;
    refused(annotate(force, "true").await, early);
    garden
        .status(&shoots, "ended", error("ERR_INFRA_UNAUTHORIZED"))
        .await;
    allowed(annotate(force, "true").await);
    refused(annotate(force, "false").await, "cannot be taken back");
    confirmation(garden, &shoots).await;
}

/// Without the confirmation, the deletion would neither go on nor end, and the shoot could not be moved.
async fn confirmation(garden: &Garden, shoots: &Api<Shoot>) {
    let confirm = "confirmation.gardener.cloud/deletion";
    let set = |value: Value| json!({"metadata": {"annotations": {confirm: value}}});
    let editor = garden.editor_of_shoots(NAMESPACE).await.unwrap();
    let theirs: Api<Shoot> = Api::namespaced(editor, NAMESPACE);
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    garden::until_allowed(|| garden::try_patch(&theirs, "ended", &label)).await;
    let words = "annotation confirmation.gardener.cloud/deletion=true cannot be taken back";
    let removed = set(Value::Null);
    garden::until_refused(words, || garden::try_patch(&theirs, "ended", &removed)).await;
    refused(garden.patch(&theirs, "ended", set(json!("false"))).await, words);
    // An administrator.
    allowed(garden.patch(shoots, "ended", set(Value::Null)).await);
    allowed(garden.patch(shoots, "ended", set(json!("true"))).await);
}
