//! The fence of a takeover relies on what former seeds have reported: no other seed changes their reports.

use api::gardencore::Shoot;
use kube::Api;
use serde_json::{Value, json};

use crate::garden::{Garden, NAMESPACE, allowed, refused};

pub async fn a_seed_writes_its_own_owner_check_alone(garden: &Garden) {
    garden
        .shoot("asked", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let entry = |seed: &str, server: &str| json!({"seedName": seed, "epoch": 1, "servers": [server], "serversNamed": true});
    let reported = [entry("seed-b", "192.0.2.2:53"), entry("seed-c", "192.0.2.3:53")];
    let status = json!({
        "ownership": {"epoch": 2}, "formerSeeds": [{"name": "seed-b", "epoch": 1}], "ownerChecks": reported,
    });
    garden
        .status(&garden.admin::<Shoot>(NAMESPACE), "asked", status)
        .await;
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let write = |entries: Value| garden.patch_status(&a, "asked", json!({"ownerChecks": entries}));
    let [b, c] = reported;
    let own = entry("seed-a", "192.0.2.1:53");
    let word = "may not change status.ownerChecks of Shoot asked";
    for entries in [
        // Of the seed that may still have running processes.
        json!([own, c]),
        json!([own, entry("seed-b", "192.0.2.1:53"), c]),
        json!([own, b, entry("seed-c", "192.0.2.1:53")]),
        json!([own, b, c, entry("seed-d", "192.0.2.1:53")]),
        Value::Null,
        // Repetitions would leave no room for the entry of a later host.
        json!([own, own, b, c]),
        json!([own, entry("seed-a", "192.0.2.9:53"), b, c]),
    ] {
        refused(write(entries).await, word);
    }
    allowed(write(json!([own, b, c])).await);
    // Of a seed that has cleaned up.
    allowed(write(json!([entry("seed-a", "192.0.2.4:53"), b])).await);
    // Repetitions from before the rule can be taken out.
    let many = json!([own, own, own, b]);
    let status = json!({"ownerChecks": many});
    garden
        .status(&garden.admin::<Shoot>(NAMESPACE), "asked", status)
        .await;
    refused(write(json!([own, own, b])).await, word);
    allowed(write(json!([own, b])).await);
}
