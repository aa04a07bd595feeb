//! What a tenant makes a Shoot of to end processes that serve all tenants: it is too large for their memory,
//! has too many parts, or is nested deeper than their decoders follow. Large bindings have the same purpose.

use api::{
    gardencore::{SecretBinding, Shoot},
    security::CredentialsBinding,
};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, PostParams},
};
use runtime::client::{Connection, Permit};
use serde_json::{Value, json};

use crate::garden::{self, Garden, NAMESPACE, allowed, refused};

const POLICY: &str = "shoot-size";
const TOO_LARGE: &str = "bytes, and a Shoot may have 65536";
const TOO_MANY: &str = "fields and entries, and a Shoot may have 3000";
const TOO_DEEP: &str = "nested deeper than 20 levels";
const TOO_MANY_TOLERATIONS: &str = "spec.tolerations has 65 entries, and a Shoot may have 64";
const TOO_MANY_FINALIZERS: &str = "17 entries beside finalizer gardener, and a Shoot may have 16";
const TOO_MUCH_BESIDE: &str = "bytes together, and those of a Shoot may have 65536";

pub fn shoot(name: &str, config: &Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": name},
        "spec": {
            "cloudProfile": {"name": "local", "kind": "CloudProfile"}, "region": "local", "seedName": "seed-a",
            "provider": {"type": "local", "infrastructureConfig": config}, "kubernetes": {"version": "1.34.4"},
        },
    }))
    .unwrap()
}

fn nested(levels: usize) -> Value {
    (1..levels).fold(json!({}), |inner, level| match level % 2 {
        0 => json!({"a": inner, "b": []}),
        _ => json!({"a": [], "b": [inner, {}]}),
    })
}

pub fn shoots(client: &Client) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), NAMESPACE, &ApiResource::erase::<Shoot>(&()))
}

/// The largest object that the API server admits, by the length of a text in the object.
pub async fn largest(api: &Api<DynamicObject>, object: impl Fn(usize) -> DynamicObject) -> usize {
    let (mut length, mut too_long) = (1, 70_000);
    while too_long - length > 1 {
        let middle = usize::midpoint(length, too_long);
        match garden::try_create(api, object(middle)).await {
            Ok(()) => length = middle,
            Err(_) => too_long = middle,
        }
    }
    length
}

pub async fn a_shoot_is_small_enough_for_everybody(garden: &Garden) {
    let tenant = shoots(&garden.editor_of_shoots(NAMESPACE).await.unwrap());
    garden::until_allowed(|| garden::try_create(&tenant, shoot("x", &json!({})))).await;
    for (config, words) in [
        (json!({"x": "a".repeat(66_000)}), TOO_LARGE),
        (json!({"x": vec![0; 3000]}), TOO_MANY),
        (json!({"x": vec![json!({}); 1500]}), TOO_MANY),
        (nested(30), TOO_DEEP),
        (nested(250), TOO_DEEP),
        // Brackets in texts neither hide levels nor are any.
        (json!({"a": "]}}]", "b": nested(13), "c": "[{{["}), TOO_DEEP),
        (
            json!({"a": r#"\"]}}]"#, "b": nested(13), "c": r#"\"[{{["#}),
            TOO_DEEP,
        ),
        (json!({r#"}"}}"#: nested(13)}), TOO_DEEP),
    ] {
        let told = config.to_string();
        println!("{} of {}", words, told.get(..60).unwrap_or(&told));
        refused(garden::try_create(&tenant, shoot("x", &config)).await, words);
    }
    for config in [
        json!({"x": "a".repeat(65_000)}),
        json!({"x": vec![0; 2900]}),
        json!({"x": "a{2,3}[b] \n{{}}\\", "y": "{", "z": "][", "}}": ["\\\"{", "ü\u{1}"]}),
        json!({"a": "[".repeat(1000), "b": nested(10), "c": "\"\\".repeat(1000)}),
        nested(12),
    ] {
        allowed(garden::try_create(&tenant, shoot("x", &config)).await);
    }
    let mut labelled = shoot("x", &json!({}));
    labelled
        .annotations_mut()
        .insert("a".to_owned(), "b".repeat(66_000));
    refused(garden::try_create(&tenant, labelled).await, TOO_MUCH_BESIDE);
    whoever_fills_it_keeps_nobody_from_his_work(garden, &tenant).await;
    from_before_the_bounds(garden, &tenant).await;
    what_its_writer_says_of_it_is_read_over(garden, &tenant).await;
}

/// Its seed, and an operator who has a shoot taken over, write into metadata that a tenant has filled; the
/// tenant does not.
async fn whoever_fills_it_keeps_nobody_from_his_work(garden: &Garden, tenant: &Api<DynamicObject>) {
    garden
        .shoot("full", "seed-a", Some("seed-a"), ("Create", "Succeeded"))
        .await;
    let annotated =
        |key: &str, length: usize| json!({"metadata": {"annotations": {key: "b".repeat(length)}}});
    allowed(garden.patch(tenant, "full", annotated("a", 65_450)).await);
    refused(
        garden.patch(tenant, "full", annotated("b", 100)).await,
        TOO_MUCH_BESIDE,
    );
    let gardenlet: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let works = json!({"metadata": {"finalizers": ["gardener"], "labels": {"shoot.gardener.cloud/status": "progressing"}}});
    allowed(garden.patch(&gardenlet, "full", works).await);
    let operator: Api<Shoot> = garden.admin(NAMESPACE);
    allowed(garden.patch(&operator, "full", annotated("b", 1000)).await);
    refused(
        garden.patch(&operator, "full", annotated("b", 5000)).await,
        TOO_MUCH_BESIDE,
    );
    garden.patch(&operator, "full", confirmation()).await.unwrap();
    let emptied = json!({"metadata": {"finalizers": null}});
    allowed(garden.patch(&operator, "full", emptied).await);
    operator.delete("full", &DeleteParams::default()).await.unwrap();
}

/// A tenant who has filled the specification holds up neither a move or a takeover by an operator, nor a
/// schedule: the fields of these writes do not count.
pub async fn a_full_specification_takes_the_writes_of_others(garden: &Garden) {
    let tenant = shoots(&garden.editor_of_shoots(NAMESPACE).await.unwrap());
    let config = |length: usize| json!({"x": "a".repeat(length)});
    let filled = |length: usize| {
        let mut filled = shoot("brim", &config(length));
        filled.data["spec"]["kubernetes"]["version"] = json!("1.34");
        filled.data["spec"]["hibernation"] = json!({"schedules": [{"start": "0 20 * * *"}]});
        filled
    };
    garden::until_allowed(|| garden::try_create(&tenant, filled(1))).await;
    let length = largest(&tenant, filled).await;
    let too_long = length + 1;
    refused(garden::try_create(&tenant, filled(too_long)).await, TOO_LARGE);
    let created = tenant.create(&PostParams::default(), &filled(length)).await;
    allowed(created.map(drop));
    let operator: Api<Shoot> = garden.admin(NAMESPACE);
    let hosted = json!({"seedName": "seed-a", "lastOperation": garden::operation("Create", "Succeeded")});
    garden.status(&operator, "brim", hosted).await;
    let manager: Api<Shoot> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    for spec in [
        json!({"hibernation": {"enabled": true}}),
        json!({"hibernation": {"enabled": false}}),
        json!({"kubernetes": {"version": "1.34.4"}}),
    ] {
        allowed(garden.patch(&manager, "brim", json!({"spec": spec})).await);
    }
    let moved = json!({"spec": {"seedName": "s".repeat(63)}});
    allowed(garden.patch(&operator, "brim", moved).await);
    // The tenant gets no room by these fields.
    let configured =
        |length: usize| json!({"spec": {"provider": {"infrastructureConfig": {"x": "b".repeat(length)}}}});
    refused(
        garden.patch(&tenant, "brim", configured(too_long)).await,
        TOO_LARGE,
    );
    allowed(garden.patch(&tenant, "brim", configured(length)).await);
    garden.patch(&operator, "brim", confirmation()).await.unwrap();
    operator.delete("brim", &DeleteParams::default()).await.unwrap();
}

/// Policies compare each entry with each former entry, and no limit of the API server bounds that work.
pub async fn a_shoot_has_few_finalizers_and_tolerations(garden: &Garden) {
    let tenant = shoots(&garden.editor_of_shoots(NAMESPACE).await.unwrap());
    let tolerating = |count: usize| {
        let mut shoot = shoot("few-lists", &json!({}));
        shoot.data["spec"]["tolerations"] = tolerations(count);
        shoot
    };
    garden::until_allowed(|| garden::try_create(&tenant, tolerating(1))).await;
    refused(
        garden::try_create(&tenant, tolerating(65)).await,
        TOO_MANY_TOLERATIONS,
    );
    let held = |count: usize| {
        let mut shoot = tolerating(64);
        shoot.metadata.finalizers = Some(finalizers(count));
        shoot
    };
    refused(garden::try_create(&tenant, held(17)).await, TOO_MANY_FINALIZERS);
    let created = tenant.create(&PostParams::default(), &held(16)).await;
    allowed(created.map(drop));
    refused(
        garden.patch(&tenant, "few-lists", with_tolerations(65)).await,
        TOO_MANY_TOLERATIONS,
    );
    refused(
        garden.patch(&tenant, "few-lists", with_finalizers(17, &[])).await,
        TOO_MANY_FINALIZERS,
    );
    // The gardenlet of the seed has room for its finalizer, and the user for no second one.
    let gardenlet: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let own = with_finalizers(16, &["gardener"]);
    allowed(garden.patch(&gardenlet, "few-lists", own).await);
    for more in [
        with_finalizers(17, &["gardener"]),
        with_finalizers(16, &["gardener", "gardener"]),
    ] {
        refused(
            garden.patch(&tenant, "few-lists", more).await,
            TOO_MANY_FINALIZERS,
        );
    }
    let label = json!({"metadata": {"labels": {"shoot.gardener.cloud/status": "healthy"}}});
    allowed(garden.patch(&gardenlet, "few-lists", label).await);
    let ended = json!({"metadata": {"finalizers": null}});
    allowed(garden.patch(&tenant, "few-lists", ended).await);
    garden.patch(&tenant, "few-lists", confirmation()).await.unwrap();
    tenant
        .delete("few-lists", &DeleteParams::default())
        .await
        .unwrap();
}

fn tolerations(count: usize) -> Value {
    (0..count)
        .map(|number| json!({"key": "x", "value": format!("v{number}")}))
        .collect()
}

fn with_tolerations(count: usize) -> Value {
    json!({"spec": {"tolerations": tolerations(count)}})
}

fn finalizers(count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("example.org/f{number}"))
        .collect()
}

fn with_finalizers(count: usize, more: &[&str]) -> Value {
    let more = more.iter().map(ToString::to_string);
    let all: Vec<_> = finalizers(count).into_iter().chain(more).collect();
    json!({"metadata": {"finalizers": all}})
}

/// garden-controller-manager reads the bindings of all projects.
pub async fn a_binding_is_small_enough_for_everybody(garden: &Garden) {
    garden.secret("small", "Opaque").await;
    let author = garden.writer_of_bindings(NAMESPACE).await.unwrap();
    let secret: Api<SecretBinding> = Api::namespaced(author.clone(), NAMESPACE);
    let credentials: Api<CredentialsBinding> = Api::namespaced(author, NAMESPACE);
    let of_secret = |length: usize| -> SecretBinding {
        let mut binding = garden::secret_binding("small", "", "small");
        binding
            .annotations_mut()
            .insert("a".to_owned(), "b".repeat(length));
        binding
    };
    let of_credentials = |length: usize| -> CredentialsBinding {
        let quotas = json!([{"name": "b".repeat(length)}]);
        serde_json::from_value(
            json!({"metadata": {"name": "small"}, "provider": {"type": "local"}, "quotas": quotas,
            "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "small"}}),
        )
        .unwrap()
    };
    garden::until_allowed(|| garden::try_create(&secret, of_secret(1))).await;
    let words = "bytes, and a binding may have 8192";
    refused(garden::try_create(&secret, of_secret(8192)).await, words);
    refused(
        garden::try_create(&credentials, of_credentials(8192)).await,
        words,
    );
    allowed(garden::try_create(&secret, of_secret(7500)).await);
    allowed(garden::try_create(&credentials, of_credentials(7500)).await);
    let params = PostParams::default();
    allowed(secret.create(&params, &of_secret(7500)).await.map(drop));
    let users: Api<SecretBinding> = garden.admin(NAMESPACE);
    let annotated = |length: usize| json!({"metadata": {"annotations": {"a": "b".repeat(length)}}});
    refused(garden.patch(&users, "small", annotated(8192)).await, words);
    allowed(garden.patch(&users, "small", annotated(7400)).await);
}

pub fn confirmation() -> Value {
    json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}})
}

/// It is not lost: it changes as long as it does not grow.
async fn from_before_the_bounds(garden: &Garden, tenant: &Api<DynamicObject>) {
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(garden.administrator());
    let mut binding = bindings.get(POLICY).await.unwrap();
    bindings.delete(POLICY, &DeleteParams::default()).await.unwrap();
    let config = json!({"x": "a".repeat(70_000), "y": vec![0; 4000]});
    let mut large = shoot("large", &config);
    large.data["spec"]["tolerations"] = tolerations(70);
    large.metadata.finalizers = Some(finalizers(20));
    garden::until_allowed(|| garden::try_create(tenant, large.clone())).await;
    tenant.create(&PostParams::default(), &large).await.unwrap();
    let long = shoot("long", &json!({"x": "a".repeat(132_000)}));
    tenant.create(&PostParams::default(), &long).await.unwrap();
    binding.metadata.resource_version = None;
    binding.metadata.uid = None;
    bindings.create(&PostParams::default(), &binding).await.unwrap();
    garden::until_refused(TOO_LARGE, || garden::try_create(tenant, shoot("x", &config))).await;
    let configured = |config: Value| json!({"spec": {"provider": {"infrastructureConfig": config}}});
    for same_or_smaller in [
        json!({"metadata": {"labels": {"a": "b"}}}),
        configured(json!({"x": "b".repeat(70_000)})),
        configured(json!({"x": "a".repeat(66_000)})),
        with_tolerations(69),
        with_finalizers(20, &["gardener"]),
        with_finalizers(19, &["gardener"]),
        with_finalizers(19, &[]),
    ] {
        allowed(garden.patch(tenant, "large", same_or_smaller).await);
    }
    for larger in [
        configured(json!({"x": "a".repeat(69_000)})),
        configured(json!({"z": "a"})),
    ] {
        refused(garden.patch(tenant, "large", larger).await, TOO_LARGE);
    }
    refused(
        garden.patch(tenant, "large", with_finalizers(20, &[])).await,
        "20 entries beside finalizer gardener",
    );
    // In etcd, this text of nearly the same length has six times the bytes.
    let escaped = configured(json!({"x": "<".repeat(131_000)}));
    refused(garden.patch(tenant, "long", escaped).await, TOO_LARGE);
    let same = configured(json!({"x": "b".repeat(132_000)}));
    allowed(garden.patch(tenant, "long", same).await);
    let ended = json!({"metadata": {"finalizers": null}});
    allowed(garden.patch(tenant, "large", ended).await);
    for name in ["large", "long"] {
        allowed(garden.patch(tenant, name, confirmation()).await);
        let deleted = tenant.delete(name, &DeleteParams::default()).await;
        allowed(deleted.map(drop));
    }
}

/// Who wrote which field, a writer may say himself. The API server takes it as deep as it is, and a decoder
/// does not.
async fn what_its_writer_says_of_it_is_read_over(garden: &Garden, tenant: &Api<DynamicObject>) {
    let fields = (0..200).fold(json!({}), |inner, _| json!({"f:a": inner}));
    let managed = json!([{
        "manager": "m", "operation": "Update", "apiVersion": "core.gardener.cloud/v1beta1", "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields},
    }]);
    let mut object = shoot("deep", &json!({}));
    object.metadata.managed_fields = serde_json::from_value(managed).unwrap();
    // Also the answer cannot be read.
    let _unread = tenant.create(&PostParams::default(), &object).await;
    let whole: Api<Shoot> = garden.admin(NAMESPACE);
    let Err(_) = whole.list(&ListParams::default()).await else {
        panic!("it is read without more: nothing is shown");
    };
    let way = Connection::from(garden.administrator());
    let ours: Api<Shoot> = Api::namespaced(way.client(&Permit::sole("a test")), NAMESPACE);
    let read = ours.list(&ListParams::default()).await.unwrap();
    assert!(read.iter().any(|shoot| shoot.name_any() == "deep"));
    garden.patch(&ours, "deep", confirmation()).await.unwrap();
    ours.delete("deep", &DeleteParams::default()).await.unwrap();
    whole.list(&ListParams::default()).await.unwrap();
}
