//! A hand-over in the name of a seed whose processes still run: a stolen certificate writes the same fields
//! as the gardenlet. Without a fence two control planes would write.

use api::gardencore::{Seed, Shoot};
use kube::Api;
use serde_json::{Value, json};

use crate::garden::{
    self, Garden, NAMESPACE, allowed, operation, refused, try_patch_status, until_allowed, until_refused,
};

/// The end of the epoch that the source has handed over.
fn end() -> Value {
    json!({"epoch": 1, "revision": 54, "snapshot": "Full-00000000-00000054-9.gz.final", "sha256": "a".repeat(64)})
}

/// The hand-over from this seed to seed-b, as drained.
fn hand_over(source: &str) -> Value {
    let source = json!({"name": source, "epoch": 1});
    let record = json!({"epoch": 2, "phase": "Claiming", "drained": true, "source": source, "sealed": end()});
    json!({"seedName": "seed-b", "ownership": record, "formerSeeds": [source],
        "lastOperation": operation("Migrate", "Succeeded")})
}

/// A Shoot on seed `guarded`, with an approved move to seed-b.
async fn moving(garden: &Garden, name: &str, phase: Value) {
    garden
        .shoot(name, "seed-b", Some("guarded"), ("Migrate", "Processing"))
        .await;
    let approved = json!({"source": "guarded", "destination": "seed-b", "generation": 1, "spec": {}});
    let status = json!({"migration": approved, "technicalID": "t", "uid": "u", "ownership": {"epoch": 1, "phase": phase}});
    garden
        .status(&garden.admin::<Shoot>(NAMESPACE), name, status)
        .await;
}

/// The step from phase Sealing is the only hand-over without a fence.
pub async fn a_seed_with_owner_checks_hands_over_from_phase_sealing_alone(garden: &Garden) {
    let mut guarded = garden::seed("guarded");
    guarded["spec"]["settings"] = json!({"ownerChecks": {"enabled": true}});
    garden.bring(&guarded).await.unwrap();
    let user = "gardener.cloud:system:seed:guarded";
    let client = garden.client(user, &["gardener.cloud:system:seeds"]).await;
    let source: Api<Shoot> = Api::namespaced(client, NAMESPACE);
    let manager: Api<Shoot> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    let words =
        |phase: &str| format!("in phase \"{phase}\" of status.ownership: Seed guarded has owner checks on");
    moving(garden, "unsealed", Value::Null).await;
    // The API server reads the new Seed a moment later.
    until_refused(&words(""), || {
        try_patch_status(&source, "unsealed", hand_over("guarded"))
    })
    .await;
    for phase in ["", "Held", "Leaving"] {
        if !phase.is_empty() {
            moving(garden, "unsealed", json!(phase)).await;
        }
        let written = garden
            .patch_status(&source, "unsealed", hand_over("guarded"))
            .await;
        refused(written, &words(phase));
    }
    moving(garden, "unsealed", json!("Sealing")).await;
    allowed(
        garden
            .patch_status(&source, "unsealed", hand_over("guarded"))
            .await,
    );
    // For a lost seed, in each phase. The destination fences the source then.
    moving(garden, "lost", json!("Held")).await;
    let mut taken = hand_over("guarded");
    taken["ownership"]["drained"] = Value::Null;
    taken["ownership"]["sealed"] = Value::Null;
    taken["lastOperation"] = operation("Migrate", "Aborted");
    allowed(garden.patch_status(&manager, "lost", taken).await);
    // A seed without owner checks records no phase while the shoot leaves. The phase is from before.
    let off = json!({"spec": {"settings": {"ownerChecks": {"enabled": false}}}});
    let seeds: Api<Seed> = Api::all(garden.administrator());
    allowed(garden.patch(&seeds, "guarded", off).await);
    moving(garden, "unguarded", json!("Held")).await;
    until_allowed(|| try_patch_status(&source, "unguarded", hand_over("guarded"))).await;
    allowed(
        garden
            .patch_status(&source, "unguarded", hand_over("guarded"))
            .await,
    );
}

/// The claimant fences a source whose owner record still stands, and changes no further report of the source.
pub async fn a_claimant_takes_back_that_the_source_is_drained(garden: &Garden) {
    let admin: Api<Shoot> = garden.admin(NAMESPACE);
    let [a, b] =
        [&garden.seed_a, &garden.seed_b].map(|client| Api::<Shoot>::namespaced(client.clone(), NAMESPACE));
    garden
        .shoot("doubted", "seed-b", Some("seed-b"), ("Restore", "Processing"))
        .await;
    let handed_over = hand_over("seed-a");
    let given = json!({"ownership": handed_over["ownership"], "formerSeeds": handed_over["formerSeeds"]});
    garden.status(&admin, "doubted", given).await;
    let write = |client: &Api<Shoot>, record: Value| {
        let client = client.clone();
        async move {
            garden
                .patch_status(&client, "doubted", json!({"ownership": record}))
                .await
        }
    };
    let doubt = json!({"drained": null, "sealed": null});
    let rest = "may not change source, drained or chain";
    let sealed = "may not change status.ownership.sealed";
    // By two policies, in no order.
    refused(write(&a, doubt.clone()).await, "the gardenlet of seed \"seed-a\"");
    for (record, words) in [
        (json!({"sealed": null}), sealed),
        (json!({"sealed": {"revision": 7}}), sealed),
        (json!({"drained": null, "sealed": {"revision": 7}}), sealed),
        (json!({"drained": null, "source": {"name": "seed-c"}}), rest),
        (json!({"drained": null, "chain": "Last"}), rest),
        (
            json!({"phase": "Opening", "chain": "Last", "drained": null}),
            rest,
        ),
    ] {
        refused(write(&b, record).await, words);
    }
    allowed(write(&b, doubt).await);
    refused(write(&b, json!({"drained": true})).await, rest);
    refused(write(&b, json!({"sealed": end()})).await, sealed);
    allowed(write(&b, json!({"phase": "Opening", "chain": "Last"})).await);
    // After the choice of the data the record stays.
    let drained = json!({"ownership": {"drained": true}});
    garden.status(&admin, "doubted", drained).await;
    refused(write(&b, json!({"drained": null})).await, rest);
}
