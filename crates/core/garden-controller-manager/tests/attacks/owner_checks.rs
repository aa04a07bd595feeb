//! The fence of a takeover relies on what former seeds have reported: no other seed changes their reports.

use api::gardencore::Shoot;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
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
    // Repetitions of a different entry leave as little room.
    refused(write(json!([own, b, b])).await, word);
    allowed(write(json!([own, b])).await);
}

/// The next host reads the entries into types, and writes null and empty lists back as absent fields.
pub async fn an_entry_that_loses_its_form_can_be_repeated(garden: &Garden) {
    let name = "repeated";
    garden
        .shoot(name, "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let admin = garden.admin::<Shoot>(NAMESPACE);
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let own = json!({"seedName": "seed-a", "epoch": 2, "servers": ["192.0.2.1:53"], "serversNamed": true});
    for (field, value) in forms_that_are_lost() {
        let mut entry = json!({"seedName": "seed-b", "epoch": 1, "name": "owner.x", "zone": "x", "serversNamed": true,
            "servers": ["192.0.2.2:53"], "fenceSeconds": 24, "hostClock": "Rtc", "terms": "t", "unchecked": ["Deployment x"]});
        entry[field] = value;
        let status = json!({"ownership": {"epoch": 2}, "formerSeeds": [{"name": "seed-b", "epoch": 1}]});
        garden.status(&admin, name, status).await;
        allowed(set(&admin, name, json!([entry])).await);
        let shoot = a.get(name).await.unwrap();
        let check = serde_json::from_value(own.clone()).unwrap();
        let written = json!(shoot.status.unwrap().owner_checks_with(check));
        assert_eq!(written[1].get(field), None, "the typed form has no {field}");
        // A different value is refused.
        let mut changed = written.clone();
        changed[1][field] = match field {
            "serversNamed" => json!(false),
            "fenceSeconds" => json!(25),
            "servers" => json!(["192.0.2.9:53"]),
            "unchecked" => json!(["Deployment y"]),
            _ => json!("y"),
        };
        let word = "may not change status.ownerChecks of Shoot repeated";
        refused(set(&a, name, changed).await, word);
        allowed(set(&a, name, written).await);
    }
}

/// Otherwise no later host could repeat the entry, or ask the server.
pub async fn a_seed_writes_its_entry_as_a_later_host_reads_the_entry(garden: &Garden) {
    let name = "formed";
    garden
        .shoot(name, "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let entry = json!({"seedName": "seed-a", "epoch": 1, "serversNamed": true});
    let write = async |field: &'static str, value: Value| {
        let mut entry = entry.clone();
        entry[field] = value;
        set(&a, name, json!([entry])).await
    };
    let word = "may not write its entry in status.ownerChecks of Shoot formed";
    for (field, value) in forms_that_are_lost() {
        refused(write(field, value).await, word);
    }
    for server in [
        "ns.example.test:53",
        "192.0.2.1",
        "",
        "[::1]",
        "999.1:53",
        "192.0.2.1:99999",
    ] {
        refused(write("servers", json!([server])).await, word);
    }
    allowed(write("servers", json!(["192.0.2.1:53", "[2001:db8::1]:53"])).await);
    // A server from before the rule stops no write of the honest gardenlet, as in a hibernated shoot.
    let mut earlier = entry.clone();
    earlier["servers"] = json!(["ns.example.test:53"]);
    allowed(set(&garden.admin(NAMESPACE), name, json!([earlier])).await);
    earlier["terms"] = json!("t");
    allowed(set(&a, name, json!([earlier])).await);
    refused(write("servers", json!(["x", "ns.example.test:53"])).await, word);
}

/// Writes the list. A merge patch would remove `null`.
async fn set(api: &Api<Shoot>, name: &str, entries: Value) -> Result<(), kube::Error> {
    let operations = json!([{"op": "add", "path": "/status/ownerChecks", "value": entries}]);
    let body: Patch<()> = Patch::Json(serde_json::from_value(operations).unwrap());
    let written = api.patch_status(name, &PatchParams::default(), &body).await;
    written.map(drop)
}

/// Values of an entry that the typed form does not have.
fn forms_that_are_lost() -> [(&'static str, Value); 8] {
    let null = [
        "name",
        "zone",
        "serversNamed",
        "fenceSeconds",
        "hostClock",
        "terms",
    ];
    let [name, zone, named, fence, clock, terms] = null.map(|field| (field, Value::Null));
    let [servers, unchecked] = ["servers", "unchecked"].map(|field| (field, json!([])));
    [name, zone, named, fence, clock, terms, servers, unchecked]
}
