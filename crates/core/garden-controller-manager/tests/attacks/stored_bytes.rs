//! An attacker fills objects with characters that etcd stores as several bytes. In JSON, the API server
//! writes six bytes for `<`, and for a control character. A sign outside of ASCII has up to four bytes.

use api::gardencore::{SecretBinding, Shoot, ShootState};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    garden::{self, Garden, NAMESPACE, allowed, operation, refused},
    large::{confirmation, largest, shoot, shoots},
    managed_fields::{entry, with_text},
    room::hand_over,
};

const SIGNS: [&str; 5] = ["a", "<", "&", "\u{1f980}", "\u{7}"];
/// The bound of policy `shoot-size`, with room for the fields that do not count.
const LARGEST_SPEC: usize = 65_536 + 128;
/// The largest request that etcd takes.
const LARGEST_REQUEST: usize = 1_572_864;
const VERSION: &str = "core.gardener.cloud/v1beta1";

/// The bytes of a value in etcd: the API server writes JSON with an escape sequence for signs of HTML.
fn stored(value: &Value) -> usize {
    let text = value.to_string();
    text.len() + 5 * text.matches(['<', '>', '&']).count()
}

pub async fn a_shoot_is_bounded_in_bytes(garden: &Garden) {
    let tenant = shoots(&garden.editor_of_shoots(NAMESPACE).await.unwrap());
    let filled = |sign: &str, length: usize| shoot("in-bytes", &json!({"x": sign.repeat(length)}));
    garden::until_allowed(|| garden::try_create(&tenant, filled("a", 1))).await;
    for sign in SIGNS {
        let length = largest(&tenant, |length| filled(sign, length)).await;
        let bytes = stored(&filled(sign, length).data["spec"]);
        assert!((64_000..=LARGEST_SPEC).contains(&bytes), "{sign:?}: {bytes}");
    }
    for (sign, length) in [("<", 11_000), ("\u{1f980}", 16_500)] {
        let mut annotated = shoot("in-bytes", &json!({}));
        annotated
            .annotations_mut()
            .insert("a".to_owned(), sign.repeat(length));
        refused(
            garden::try_create(&tenant, annotated).await,
            "bytes together, and those of a Shoot may have 65536",
        );
    }
}

/// The approval copies the specification into the status, and the API server records each key of the copy.
pub async fn the_largest_shoot_is_approved_and_handed_over(garden: &Garden) {
    let tenant = shoots(&garden.editor_of_shoots(NAMESPACE).await.unwrap());
    let filled = |length: usize| shoot("largest", &json!({("<".repeat(length)): ""}));
    garden::until_allowed(|| garden::try_create(&tenant, filled(1))).await;
    let mut object = filled(largest(&tenant, filled).await);
    object
        .annotations_mut()
        .insert("a".to_owned(), "<".repeat(10_900));
    let created = tenant.create(&PostParams::default(), &object).await;
    allowed(created.map(drop));
    let forged = with_text(VERSION, "f:spec", &"<".repeat(21_000));
    allowed(garden.patch(&tenant, "largest", forged).await);

    let operator: Api<Shoot> = garden.admin(NAMESPACE);
    let hosted = json!({"seedName": "seed-a", "technicalID": "shoot--dev--largest", "uid": "u",
        "lastOperation": operation("Create", "Succeeded")});
    garden.status(&operator, "largest", hosted).await;
    let to_b = json!({"spec": {"seedName": "seed-b"}});
    allowed(garden.patch(&operator, "largest", to_b).await);
    let spec = operator.get("largest").await.unwrap().spec;
    let approved = json!({"source": "seed-a", "destination": "seed-b", "generation": 2, "spec": spec});
    let [manager, a, b] = [&garden.manager, &garden.seed_a, &garden.seed_b]
        .map(|client| Api::<Shoot>::namespaced(client.clone(), NAMESPACE));
    let approval = json!({"migration": approved});
    allowed(garden.patch_status(&manager, "largest", approval).await);
    let leaving = json!({"lastOperation": operation("Migrate", "Processing")});
    garden.status(&operator, "largest", leaving).await;
    allowed(garden.patch_status(&a, "largest", hand_over()).await);
    let restoring = json!({"lastOperation": operation("Restore", "Processing")});
    allowed(garden.patch_status(&b, "largest", restoring).await);

    let whole = shoots(&garden.administrator()).get("largest").await.unwrap();
    let bytes = stored(&serde_json::to_value(&whole).unwrap());
    assert!((300_000..LARGEST_REQUEST / 2).contains(&bytes), "{bytes}");
    garden.patch(&operator, "largest", confirmation()).await.unwrap();
    let deleted = operator.delete("largest", &DeleteParams::default()).await;
    allowed(deleted.map(drop));
}

pub async fn a_status_is_bounded_in_bytes(garden: &Garden) {
    garden
        .shoot("escaped", "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    let host: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let failed = |sign: &str, length: usize| json!({"lastErrors": [{"description": sign.repeat(length)}]});
    for (sign, fits, exceeds) in [
        ("<", 10_800, 11_000),
        ("\u{1f980}", 16_200, 16_500),
        ("\u{7}", 10_800, 11_000),
    ] {
        refused(
            garden.patch_status(&host, "escaped", failed(sign, exceeds)).await,
            "may not write a status of",
        );
        allowed(garden.patch_status(&host, "escaped", failed(sign, fits)).await);
    }
}

/// The author of a binding may also write `metadata.managedFields`.
pub async fn a_binding_is_bounded_in_bytes(garden: &Garden) {
    garden.secret("in-bytes", "Opaque").await;
    let author = garden.writer_of_bindings(NAMESPACE).await.unwrap();
    let bindings: Api<SecretBinding> = Api::namespaced(author, NAMESPACE);
    let annotated = |length: usize| -> SecretBinding {
        let mut binding = garden::secret_binding("in-bytes", "", "in-bytes");
        binding
            .annotations_mut()
            .insert("a".to_owned(), "<".repeat(length));
        binding
    };
    let recorded = |length: usize| -> SecretBinding {
        let mut binding = garden::secret_binding("in-bytes", "", "in-bytes");
        let field = format!("f:{}", "<".repeat(length));
        let entries = json!([entry(VERSION, "m", &json!({"f:provider": {field: {}}}))]);
        *binding.managed_fields_mut() = serde_json::from_value(entries).unwrap();
        binding
    };
    garden::until_allowed(|| garden::try_create(&bindings, annotated(1))).await;
    for (binding, words) in [
        (annotated(1400), "bytes, and a binding may have 8192"),
        (recorded(5600), "bytes, and that of a binding may have 32768"),
    ] {
        refused(garden::try_create(&bindings, binding).await, words);
    }
    for binding in [annotated(1300), recorded(5000)] {
        allowed(garden::try_create(&bindings, binding).await);
    }
}

/// A ShootState of the largest size that etcd takes could be neither replaced nor deleted.
pub async fn a_shoot_state_leaves_room_for_the_next_write(garden: &Garden) {
    let name = "brimful";
    garden
        .shoot(name, "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    garden.state(name).await;
    garden
        .grant_gardenlets("core.gardener.cloud", "shootstates", "patch")
        .await;
    let states: Api<ShootState> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let operator: Api<ShootState> = garden.admin(NAMESPACE);
    let filled = |sign: &str, length: usize| {
        let data = json!({"d": sign.repeat(length)});
        json!({"spec": {"resources": [{"kind": "ConfigMap", "name": "x", "data": data}]}})
    };
    garden::until_allowed(|| garden::try_patch(&states, name, &filled("a", 1))).await;
    let words = "may not write a specification of";

    // A state from before the bound takes the claim of the attempt that replaces the state, and does not
    // grow.
    let early = filled("a", 1_200_000);
    garden.patch(&operator, name, early).await.unwrap();
    let claim = json!({"spec": {"chunkAttempt": {"number": 1, "unfinished": [1]}}});
    allowed(garden.patch(&states, name, claim).await);
    for grown in [filled("a", 1_210_000), filled("<", 230_000)] {
        refused(garden.patch(&states, name, grown).await, words);
    }
    allowed(garden.patch(&states, name, filled("a", 1)).await);

    for (sign, length) in [
        ("a", 1_120_000),
        ("<", 187_000),
        ("<", 800_000),
        ("\u{7}", 187_000),
        ("\u{1f980}", 280_000),
    ] {
        refused(garden.patch(&states, name, filled(sign, length)).await, words);
    }
    // The policy reads -0.000000, and etcd stores 24 signs.
    let floats = |count: usize| {
        let data = json!({"d": vec![-f64::MIN_POSITIVE; count]});
        json!({"spec": {"resources": [{"kind": "ConfigMap", "name": "x", "data": data}]}})
    };
    refused(garden.patch(&states, name, floats(42_000)).await, words);
    allowed(garden.patch(&states, name, floats(41_000)).await);
    for (sign, length) in [
        ("a", 1_113_000),
        ("\u{7}", 185_000),
        ("\u{1f980}", 278_000),
        ("<", 185_000),
    ] {
        allowed(garden.patch(&states, name, filled(sign, length)).await);
    }
    let forged = with_text(VERSION, "f:spec", &"<".repeat(60_000));
    allowed(garden.patch(&states, name, forged).await);
    let whole = operator.get(name).await.unwrap();
    let bytes = stored(&serde_json::to_value(&whole).unwrap());
    assert!(bytes < LARGEST_REQUEST - 32_768, "{bytes}");
    let note = json!({"metadata": {"annotations": {"note": "x"}}});
    allowed(garden.patch(&operator, name, note).await);
    garden.finalizer(&operator, name).await;
    let deleted = operator.delete(name, &DeleteParams::default()).await;
    allowed(deleted.map(drop));
    let released = json!({"metadata": {"finalizers": null}});
    allowed(garden.patch(&operator, name, released).await);
}

/// A member uses up each bound of the quota with objects of the largest size.
#[test]
fn the_objects_of_a_project_take_the_documented_room() {
    let values = include_str!("../../../../../charts/garden-controller-manager/values.yaml");
    let values = garden::documents_in(values);
    let quotas = values[0]["projectQuotas"].as_array().unwrap();
    let largest = |quota: &Value| -> usize {
        let (resource, count) = quota.as_str().unwrap().split_once('=').unwrap();
        let size = match resource {
            // Specification, metadata with the room of operators, and managed fields.
            "count/shoots.core.gardener.cloud" => 65_536 + 69_632 + 131_072,
            "count/secretbindings.core.gardener.cloud"
            | "count/credentialsbindings.security.gardener.cloud" => 8192 + 32_768,
            // Members write no InternalSecrets.
            "count/internalsecrets.core.gardener.cloud" => 0,
            _ => 65_536,
        };
        size * count.parse::<usize>().unwrap()
    };
    let sum: usize = quotas.iter().map(largest).sum();
    assert!(sum < 80 << 20, "{sum}");
    let page = include_str!("../../../../../docs/look-up/admission.md");
    assert!(page.contains("at most 80 MiB of the garden's etcd"));
}
