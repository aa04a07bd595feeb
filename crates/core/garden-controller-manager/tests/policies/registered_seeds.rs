//! Fields of a registered Seed that only administrators change: the place of the backups, labels, taints and
//! annotations.

use api::{
    constants::{EMERGENCY_STOP, LEFTOVER_NAMESPACES},
    gardencore::Seed,
};
use kube::Api;
use serde_json::{Value, json};

use crate::garden::{self, Garden, allowed, refused};

/// The Seed as the gardenlet of the seed and as an administrator write the Seed.
async fn writers(garden: &Garden, name: &str) -> (Api<Seed>, Api<Seed>) {
    let user = format!("gardener.cloud:system:seed:{name}");
    let gardenlet = garden.client(&user, &["gardener.cloud:system:seeds"]).await;
    (Api::all(gardenlet), Api::all(garden.administrator()))
}

/// Moves and takeovers from the seed would pass their checks, and wait for the backups after the hand-over.
pub async fn a_gardenlet_changes_no_place_of_its_backups(garden: &Garden) {
    let (gardenlet, seeds) = writers(garden, "stored").await;
    let backup = |change: Value| json!({"spec": {"backup": change}});
    let reference = json!({"kind": "Secret", "namespace": "seed-stored", "name": "backup"});
    let config = json!({"kind": "Config", "endpoint": "https://one.test"});
    let place = json!({"provider": "local", "credentialsRef": reference, "providerConfig": config});
    // The gardenlet registers its Seed, at first without backups.
    allowed(garden.apply(&gardenlet, "stored", garden::seed("stored")).await);
    for first in [json!({"provider": "local"}), place.clone()] {
        allowed(garden.patch(&gardenlet, "stored", backup(first)).await);
    }
    let words = "may not change spec.backup.credentialsRef and spec.backup.providerConfig of Seed stored";
    for change in [
        json!({"credentialsRef": {"name": "none"}}),
        json!({"credentialsRef": {"kind": "ConfigMap"}}),
        json!({"credentialsRef": null}),
        json!({"providerConfig": {"endpoint": "https://two.test"}}),
        json!({"providerConfig": {"more": 1}}),
        json!({"providerConfig": null}),
    ] {
        refused(garden.patch(&gardenlet, "stored", backup(change)).await, words);
    }
    // The namespace of the seed is the default.
    for same in [
        place.clone(),
        json!({"credentialsRef": {"namespace": null}}),
        place,
    ] {
        allowed(garden.patch(&gardenlet, "stored", backup(same)).await);
    }
    // After the administrator, the gardenlet registers the same place.
    let changed = backup(
        json!({"credentialsRef": {"name": "rotated"}, "providerConfig": {"endpoint": "https://two.test"}}),
    );
    allowed(garden.patch(&seeds, "stored", changed.clone()).await);
    allowed(garden.patch(&gardenlet, "stored", changed).await);
    let version = json!({"kubernetesVersion": "v9"});
    allowed(garden.patch_status(&gardenlet, "stored", version).await);
}

/// Selectors and tolerations of Shoots and CloudProfiles choose seeds by these fields.
pub async fn a_gardenlet_changes_no_labels_and_removes_no_taint(garden: &Garden) {
    let (gardenlet, seeds) = writers(garden, "chosen").await;
    let marks = |tier: &str, taints: Value| {
        let mut seed = garden::seed("chosen");
        seed["metadata"]["labels"] = json!({"tier": tier});
        seed["spec"]["taints"] = taints;
        seed
    };
    let gold = json!({"key": "tier", "value": "gold"});
    let registered = marks("edge", json!([gold, {"key": "protected"}]));
    for _ in 0..2 {
        allowed(garden.apply(&gardenlet, "chosen", registered.clone()).await);
    }
    let labels = |labels: Value| json!({"metadata": {"labels": labels}});
    for change in [
        json!({"tier": "pci"}),
        json!({"tier": null}),
        json!({"other": "x"}),
        Value::Null,
    ] {
        let words = "may not change the labels of Seed chosen";
        refused(garden.patch(&gardenlet, "chosen", labels(change)).await, words);
    }
    let taints = |taints: Value| json!({"spec": {"taints": taints}});
    for (change, taint) in [
        (Value::Null, "tier=gold"),
        (json!([]), "tier=gold"),
        (json!([gold]), "protected"),
        (
            json!([{"key": "tier", "value": "iron"}, {"key": "protected"}]),
            "tier=gold",
        ),
        (json!([{"key": "tier"}, {"key": "protected"}]), "tier=gold"),
    ] {
        let words = format!("may not remove taint {taint} of Seed chosen");
        refused(garden.patch(&gardenlet, "chosen", taints(change)).await, &words);
    }
    // A gardenlet may keep further shoots away.
    let more = taints(json!([{"key": "x"}, {"key": "protected"}, gold]));
    allowed(garden.patch(&gardenlet, "chosen", more).await);
    // After the administrator, the gardenlet registers the same Seed.
    let moved = marks("core", json!([{"key": "protected"}]));
    let change =
        json!({"metadata": {"labels": {"tier": "core"}}, "spec": {"taints": [{"key": "protected"}]}});
    allowed(garden.patch(&seeds, "chosen", change).await);
    allowed(garden.apply(&gardenlet, "chosen", moved).await);
}

/// The emergency stop of an operator holds back each planned move from and to the seed, and stays after the
/// certificate of the gardenlet was withdrawn.
pub async fn a_gardenlet_holds_no_move_back_by_an_annotation(garden: &Garden) {
    let (gardenlet, seeds) = writers(garden, "stopping").await;
    let annotated = |annotations: Value| json!({"metadata": {"annotations": annotations}});
    let mut registered = garden::seed("stopping");
    registered["metadata"]["annotations"] = json!({"team": "edge"});
    for _ in 0..2 {
        allowed(garden.apply(&gardenlet, "stopping", registered.clone()).await);
    }
    let words = "may not change the annotations of Seed stopping";
    for change in [
        json!({EMERGENCY_STOP: "true"}),
        json!({"team": "core"}),
        json!({"team": null}),
        json!({"other": "x", LEFTOVER_NAMESPACES: "x"}),
        Value::Null,
    ] {
        refused(
            garden.patch(&gardenlet, "stopping", annotated(change)).await,
            words,
        );
    }
    // The report of the gardenlet about earlier control planes.
    for report in [json!("shoot--dev--x"), json!("shoot--dev--y"), Value::Null] {
        let report = annotated(json!({LEFTOVER_NAMESPACES: report}));
        allowed(garden.patch(&gardenlet, "stopping", report).await);
    }
    // An operator stops the seed, and the gardenlet does not lift the stop.
    let stop = annotated(json!({EMERGENCY_STOP: "true"}));
    allowed(garden.patch(&seeds, "stopping", stop).await);
    for change in [json!({EMERGENCY_STOP: null}), json!({EMERGENCY_STOP: "false"})] {
        refused(
            garden.patch(&gardenlet, "stopping", annotated(change)).await,
            words,
        );
    }
    allowed(garden.apply(&gardenlet, "stopping", registered).await);
    let version = json!({"kubernetesVersion": "v9"});
    allowed(garden.patch_status(&gardenlet, "stopping", version).await);
}

/// Owner records name the seed by the identity. A takeover compares the identity, and a zone isolation takes
/// a shoot with the identity for a seed.
pub async fn a_gardenlet_keeps_the_identity_of_its_cluster(garden: &Garden) {
    let (gardenlet, seeds) = writers(garden, "identified").await;
    allowed(
        garden
            .apply(&gardenlet, "identified", garden::seed("identified"))
            .await,
    );
    let identity = |identity: Value| json!({"clusterIdentity": identity, "kubernetesVersion": "v9"});
    for _ in 0..2 {
        let first = identity(json!("uid-1"));
        allowed(garden.patch_status(&gardenlet, "identified", first).await);
    }
    let words = "may not change status.clusterIdentity of Seed identified";
    for change in [json!("uid-2"), json!(""), Value::Null] {
        refused(
            garden
                .patch_status(&gardenlet, "identified", identity(change))
                .await,
            words,
        );
    }
    allowed(
        garden
            .patch_status(&gardenlet, "identified", json!({"kubernetesVersion": "v10"}))
            .await,
    );
    // An administrator removes the identity after the cluster was built anew.
    let removed = json!({"clusterIdentity": null});
    allowed(garden.patch_status(&seeds, "identified", removed).await);
    let rebuilt = identity(json!("uid-2"));
    allowed(garden.patch_status(&gardenlet, "identified", rebuilt).await);
}
