//! A tool applies the manifest of a Shoot again, as its user has stored the manifest, after an operator has
//! moved the shoot. The policy about moves must leave this user a path.

use api::gardencore::Shoot;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    garden::{self, Garden, NAMESPACE, allowed, operation, refused},
    large::{shoot, shoots},
};

const MOVED: &str = "from-manifest";
const STAYS: &str = "from-manifest-too";

/// The user may edit Shoots and may not move Shoots.
pub async fn a_manifest_without_the_seed_stays_valid_after_a_move(garden: &Garden) {
    let verbs = ["get", "create", "update", "patch"];
    let customer = garden.user_of_shoots("customer", NAMESPACE, &verbs).await;
    let customer = shoots(&customer.unwrap());
    let operator: Api<Shoot> = garden.admin(NAMESPACE);
    for name in [MOVED, STAYS] {
        garden::until_allowed(|| garden::try_apply(&customer, name, manifest(name, Some("seed-a"), "x")))
            .await;
        let created = garden.apply(&customer, name, manifest(name, Some("seed-a"), "x"));
        allowed(created.await);
        let hosted = json!({"seedName": "seed-a", "lastOperation": operation("Create", "Succeeded")});
        garden.status(&operator, name, hosted).await;
    }
    let to_b = json!({"spec": {"seedName": "seed-b"}});
    allowed(garden.patch(&operator, MOVED, to_b).await);

    let stored = manifest(MOVED, Some("seed-a"), "y");
    refused(
        garden.apply(&customer, MOVED, stored).await,
        "the shoot stays on seed seed-b, so write this name into the manifest, or leave the field to the garden",
    );
    allowed(
        garden
            .apply(&customer, MOVED, manifest(MOVED, Some("seed-b"), "y"))
            .await,
    );
    let kept = operator.get(MOVED).await.unwrap();
    assert_eq!(kept.spec.seed_name.as_deref(), Some("seed-b"));

    // A field without a second manager goes with the manifest, so a second manager holds the name first.
    let without = manifest(STAYS, None, "y");
    refused(
        garden.apply(&customer, STAYS, without.clone()).await,
        "seedName cannot be removed once set",
    );
    let held = json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": STAYS},
        "spec": {"seedName": "seed-a"}});
    let params = PatchParams::apply("seed-name");
    let held = customer.patch(STAYS, &params, &Patch::Apply(held)).await;
    allowed(held.map(drop));
    allowed(garden.apply(&customer, STAYS, without).await);
    let to_b = json!({"spec": {"seedName": "seed-b"}});
    allowed(garden.patch(&operator, STAYS, to_b).await);
    allowed(garden.apply(&customer, STAYS, manifest(STAYS, None, "z")).await);
    let kept = operator.get(STAYS).await.unwrap();
    assert_eq!(kept.spec.seed_name.as_deref(), Some("seed-b"));
}

fn manifest(name: &str, seed: Option<&str>, config: &str) -> Value {
    let mut manifest = serde_json::to_value(shoot(name, &json!({"x": config}))).unwrap();
    manifest["spec"]["seedName"] = json!(seed);
    if seed.is_none()
        && let Some(spec) = manifest["spec"].as_object_mut()
    {
        spec.remove("seedName");
    }
    manifest
}
