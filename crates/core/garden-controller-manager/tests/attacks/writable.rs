//! Every process can write back every value that the garden's API server accepts. A process that changes an
//! entry of a list writes the whole list, and writes each time in UTC. The API server refuses the whole write
//! if a single value has no accepted form. No takeover and no move could then change the Shoot.

use api::gardencore::{Seed, Shoot};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    garden::{Garden, NAMESPACE, allowed, refused},
    readable::{DEPTH, nasty},
};

/// All fields of a Shoot in sequence, as the types write the accepted values.
pub async fn what_is_written_back_is_taken(garden: &Garden) {
    let name = "written";
    garden
        .shoot(name, "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let fields = crate::fields_of_a_shoot();
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let (mut lost, mut taken) = (Vec::new(), 0);
    for part in ["spec", "status"] {
        for value in nasty(&fields[part], DEPTH) {
            // Scenario `what_is_taken_can_be_read` reports a value without a type.
            let Ok(read) = write(&shoots, name, &json!({part: value})).await else {
                continue;
            };
            taken += 1;
            let typed = json!(read);
            let body = json!({part: typed[part]});
            if let Err(error) = write(&shoots, name, &body).await {
                lost.push(format!("{value}: {error}"));
            }
        }
    }
    assert!(taken > 50, "only {taken} Shoots were taken: nothing is shown");
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

/// Without an effect on the stored Shoot.
async fn write(shoots: &Api<Shoot>, name: &str, body: &Value) -> Result<Shoot, kube::Error> {
    let dry = PatchParams::default().dry_run();
    let merge = Patch::Merge(body);
    if body.get("status").is_some() {
        shoots.patch_status(name, &dry, &merge).await
    } else {
        shoots.patch(name, &dry, &merge).await
    }
}

/// By a single write for each shoot, the thief of a certificate would keep all shoots in the seed of the
/// certificate.
pub async fn a_seed_writes_no_time_that_nobody_can_write_back(garden: &Garden) {
    let name = "timed";
    garden
        .shoot(name, "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let (shoots, seeds): (Api<Shoot>, Api<Seed>) = (
        Api::namespaced(garden.seed_a.clone(), NAMESPACE),
        Api::all(garden.seed_a.clone()),
    );
    let list = |type_: &str, time: &str| {
        json!([{"type": type_, "status": "True", "reason": "R", "message": "m", "lastTransitionTime": time,
            "lastUpdateTime": "2026-01-01T00:00:00Z"}])
    };
    let words = "should match";
    for time in ["8999-12-31T23:59:59-23:59", "0000-01-01T00:00:00+23:59"] {
        for status in [
            json!({"conditions": list("ObservabilityComponentsHealthy", time)}),
            json!({"constraints": list("ShootStateUpToDate", time)}),
            json!({"ownership": {"epoch": 1, "restored": {"epoch": 1, "fenced": time}}}),
            json!({"lastErrors": [{"description": "d", "lastUpdateTime": time}]}),
            json!({"retryCycleStartTime": time}),
        ] {
            refused(garden.patch_status(&shoots, name, status).await, words);
        }
        let status = json!({"conditions": list("X", time)});
        refused(garden.patch_status(&seeds, "seed-a", status).await, words);
    }
    for time in [
        "7999-12-31T23:59:59-23:59",
        "2026-01-01T00:00:00.5+01:00",
        "0000-01-01T00:00:00Z",
    ] {
        let status = json!({"conditions": list("ObservabilityComponentsHealthy", time)});
        allowed(garden.patch_status(&shoots, name, status).await);
        let read = shoots.get(name).await.unwrap().status.unwrap();
        // A list with the same value is no change.
        let mut conditions = json!(read.conditions);
        conditions[0]["message"] = json!("changed");
        let status = json!({"conditions": conditions});
        allowed(garden.patch_status(&shoots, name, status).await);
    }
}
