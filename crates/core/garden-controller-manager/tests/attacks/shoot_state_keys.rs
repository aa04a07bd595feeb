//! A host of a shoot that takes the keys along: the last write of the host empties the ShootState. The keys
//! would exist in that seed alone, and no seed could read the backups of the shoot.

use api::gardencore::ShootState;
use kube::Api;
use serde_json::{Value, json};

use crate::garden::{self, Garden, NAMESPACE, allowed, refused};

const REFUSED: &str = "may not remove or change the keys in entry";
/// The Secrets that a gardenlet creates once for a shoot, with the keys of the data. A test of crate `parts`
/// compares the list of the policy with the table of the gardenlet.
const KEYS: &[(&str, &[&str])] = &[
    ("ca", &["ca.crt", "ca.key"]),
    ("ca-client", &["ca.crt", "ca.key"]),
    ("ca-etcd", &["ca.crt", "ca.key"]),
    ("ca-front-proxy", &["ca.crt", "ca.key"]),
    ("ca-kubelet", &["ca.crt", "ca.key"]),
    ("ca-metrics-server", &["ca.crt", "ca.key"]),
    ("ca-vpn", &["ca.crt", "ca.key"]),
    ("etcd-encryption-secret", &["encryption-configuration.yaml"]),
    ("kube-aggregator", &["ca.crt", "tls.crt", "tls.key"]),
    ("kube-apiserver", &["ca.crt", "tls.crt", "tls.key"]),
    ("service-account-key", &["id_rsa"]),
    ("ssh-keypair", &["id_rsa", "id_rsa.pub"]),
    ("static-token", &["static_tokens.csv"]),
    ("tunnel-agent", &["ca.crt", "tls.crt", "tls.key"]),
];

/// The entry of a Secret, in the form that a gardenlet writes.
fn entry(name: &str, keys: &[&str]) -> Value {
    let data: serde_json::Map<_, _> = keys
        .iter()
        .map(|key| ((*key).to_owned(), json!("a2V5")))
        .collect();
    json!({
        "name": name, "type": "secret", "labels": {"persist": "true", "name": name},
        "data": {"data": data, "immutable": true, "type": "Opaque"},
    })
}

/// The entries of all Secrets of the gardenlet.
fn own() -> Vec<Value> {
    KEYS.iter().map(|(name, keys)| entry(name, keys)).collect()
}

fn gardener(entries: &[Value]) -> Value {
    json!({"spec": {"gardener": entries}})
}

/// The entries after a change of the entry of this name.
fn with(name: &str, change: impl FnOnce(&mut Value)) -> Vec<Value> {
    let mut entries = own();
    change(entries.iter_mut().find(|entry| entry["name"] == name).unwrap());
    entries
}

fn remove(value: &mut Value, key: &str) {
    value.as_object_mut().unwrap().remove(key);
}

/// The ShootState of a new shoot on seed-a, with the API of that seed.
async fn empty_state(garden: &Garden, name: &'static str) -> Api<ShootState> {
    garden
        .shoot(name, "seed-a", Some("seed-a"), ("Reconcile", "Succeeded"))
        .await;
    garden.state(name).await;
    garden
        .grant_gardenlets("core.gardener.cloud", "shootstates", "patch")
        .await;
    let states = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    garden::until_allowed(|| garden::try_patch(&states, name, &gardener(&own()))).await;
    states
}

pub async fn a_host_takes_no_keys_along(garden: &Garden) {
    let a = empty_state(garden, "keyed").await;
    allowed(garden.patch(&a, "keyed", gardener(&own())).await);
    let chunks =
        json!({"size": 1, "sha256": "x", "chunks": [{"name": "keyed.state-1-0", "size": 1, "sha256": "x"}]});
    for emptied in [
        json!({"spec": {"gardener": [], "extensions": [], "resources": [], "inChunks": null}}),
        json!({"spec": {"gardener": null}}),
        // No policy sees the content of chunks.
        json!({"spec": {"gardener": null, "inChunks": chunks}}),
    ] {
        refused(garden.patch(&a, "keyed", emptied).await, REFUSED);
    }
    for (name, keys) in KEYS {
        let words = format!("{REFUSED} {name} in spec.gardener of ShootState keyed");
        let mut without = own();
        without.retain(|entry| entry["name"] != *name);
        refused(garden.patch(&a, "keyed", gardener(&without)).await, &words);
        for key in *keys {
            let replaced = with(name, |entry| entry["data"]["data"][*key] = json!("eA=="));
            refused(garden.patch(&a, "keyed", gardener(&replaced)).await, &words);
            let removed = with(name, |entry| remove(&mut entry["data"]["data"], key));
            refused(garden.patch(&a, "keyed", gardener(&removed)).await, &words);
        }
    }
    for hidden in [
        with("ca", |entry| entry["type"] = json!("machine-state")),
        with("ca", |entry| entry["data"]["data"] = json!("x")),
        with("ca", |entry| remove(&mut entry["data"], "data")),
        with("ca", |entry| remove(&mut entry["labels"], "persist")),
    ] {
        refused(garden.patch(&a, "keyed", gardener(&hidden)).await, REFUSED);
    }
    let mut twice = own();
    twice.push(entry("ca", &["ca.crt", "ca.key"]));
    let words = "may not write two entries of one name into spec.gardener of ShootState keyed";
    refused(garden.patch(&a, "keyed", gardener(&twice)).await, words);
    planted_content_hides_no_key(garden, &a).await;
    let mut many = own();
    many.extend((0..1000).map(|number| entry(&format!("x{number}"), &["k"])));
    refused(
        garden.patch(&a, "keyed", gardener(&many)).await,
        "entries of spec.gardener into ShootState keyed: a seed may write 1000",
    );
    // The keys that a hostile former seed has are replaced: the gardenlet has new keys, and an administrator
    // removes the entries of the former keys.
    let new = with("ca-client", |entry| {
        entry["data"]["data"]["ca.key"] = json!("bmV3");
    });
    let mut without = own();
    without.retain(|entry| entry["name"] != "ca-client");
    let administrator: Api<ShootState> = garden.admin(NAMESPACE);
    allowed(garden.patch(&administrator, "keyed", gardener(&without)).await);
    allowed(garden.patch(&a, "keyed", gardener(&new)).await);
    allowed(garden.patch(&administrator, "keyed", gardener(&[])).await);
}

/// The keys stay in the entry, beside content that stops a reader: an unknown field, a different type, a
/// value that is no base64.
async fn planted_content_hides_no_key(garden: &Garden, a: &Api<ShootState>) {
    for hidden in [
        with("ca", |entry| entry["data"]["x"] = json!(1)),
        with("ca", |entry| entry["data"]["stringData"] = json!({})),
        with("ca", |entry| entry["data"]["type"] = json!(7)),
        with("ca", |entry| entry["data"]["type"] = json!("kubernetes.io/tls")),
        with("ca", |entry| entry["data"]["immutable"] = json!("x")),
        with("ca", |entry| {
            entry["data"]["data"]["foreign"] = json!("no base64");
        }),
        with("ca", |entry| entry["data"]["data"]["foreign"] = json!("eB==")),
        with("ca", |entry| entry["data"]["data"]["foreign"] = json!("eA")),
        with("ca", |entry| entry["data"]["data"]["foreign"] = json!(7)),
        with("ca", |entry| entry["data"]["data"]["foreign"] = json!({})),
    ] {
        let words = format!("{REFUSED} ca in spec.gardener of ShootState keyed");
        refused(garden.patch(a, "keyed", gardener(&hidden)).await, &words);
    }
    for planted in [
        json!({"name": "ca", "type": "y", "data": {}}),
        json!({"name": "ca", "type": "machine-state", "data": {}}),
        json!({"name": "ca", "type": "secret", "data": {}}),
        json!({"name": "ca", "type": "secret", "data": {"data": {"ca.key": 7}}}),
    ] {
        let mut beside = own();
        beside.push(planted);
        refused(
            garden.patch(a, "keyed", gardener(&beside)).await,
            "may not write an entry with the name of a key into spec.gardener of ShootState keyed",
        );
    }
    a_state_from_before_the_rules_is_repaired(garden, a).await;
}

/// A hostile host has planted content before the rules. The gardenlet writes chunks in between, and then the
/// entry in its own form.
async fn a_state_from_before_the_rules_is_repaired(garden: &Garden, a: &Api<ShootState>) {
    let administrator: Api<ShootState> = garden.admin(NAMESPACE);
    let mut planted = with("ca", |entry| {
        entry["data"]["x"] = json!(1);
        remove(&mut entry["labels"], "persist");
    });
    planted.push(json!({"name": "ca", "type": "y", "data": {}}));
    allowed(garden.patch(&administrator, "keyed", gardener(&planted)).await);
    let attempt = json!({"spec": {"chunkAttempt": {"number": 1, "unfinished": [1]}}});
    allowed(garden.patch(a, "keyed", attempt).await);
    let lost = with("ca", |entry| entry["data"]["data"]["ca.key"] = json!("eA=="));
    refused(garden.patch(a, "keyed", gardener(&lost)).await, REFUSED);
    allowed(garden.patch(a, "keyed", gardener(&own())).await);
}

/// Each write is a change of the former write, as a gardenlet makes the change.
pub async fn the_writes_of_an_honest_host_pass(garden: &Garden) {
    let a = empty_state(garden, "honest").await;
    let extension = |data: &str| {
        let mut entry = entry("of-extension", &["k"]);
        entry["data"]["data"]["k"] = json!(data);
        entry
    };
    let machines = json!({"name": "machine-state", "type": "machine-state", "data": {"state": "H4sI"}});
    let and = |more: Vec<Value>| -> Vec<Value> { own().into_iter().chain(more).collect() };
    let chunks =
        json!({"size": 1, "sha256": "x", "chunks": [{"name": "honest.state-1-0", "size": 1, "sha256": "x"}]});
    let partial = with("ca", |entry| remove(&mut entry["data"]["data"], "ca.key"));
    let planted = with("ca", |entry| {
        entry["data"]["data"]["foreign"] = json!("eA==");
        remove(&mut entry["data"], "type");
    });
    let mut reversed = own();
    reversed.reverse();
    let state = json!([{"kind": "Infrastructure", "name": "honest", "state": {"networkID": "n"}}]);
    for (what, spec) in [
        ("a shoot in creation has some keys", json!({"gardener": partial})),
        ("then all keys", json!({"gardener": own()})),
        (
            "labels change",
            json!({"gardener": with("ca", |entry| entry["labels"]["x"] = json!("y"))}),
        ),
        ("the order changes", json!({"gardener": reversed})),
        // A host from before the rule has added data to the Secret.
        ("data of further writers", json!({"gardener": planted})),
        ("the next seed removes the data", json!({"gardener": own()})),
        (
            "Secrets of extensions come",
            json!({"gardener": and(vec![extension("YQ=="), machines.clone()])}),
        ),
        (
            "Secrets of extensions change",
            json!({"gardener": and(vec![extension("Yg=="), machines.clone()])}),
        ),
        (
            "Secrets of extensions go",
            json!({"gardener": and(vec![machines])}),
        ),
        ("the state of an extension", json!({"extensions": state})),
        (
            "an attempt begins",
            json!({"chunkAttempt": {"number": 1, "unfinished": [1]}}),
        ),
        (
            "a large state",
            json!({"gardener": own(), "extensions": null, "inChunks": chunks, "chunkAttempt": {"unfinished": null}}),
        ),
        (
            "a small state",
            json!({"gardener": own(), "extensions": state, "inChunks": null}),
        ),
        (
            "no further state",
            json!({"gardener": own(), "extensions": null, "resources": null}),
        ),
    ] {
        println!("{what}");
        allowed(garden.patch(&a, "honest", json!({"spec": spec})).await);
    }
    // The next owner writes in its own epoch.
    let shoots: Api<api::gardencore::Shoot> = garden.admin(NAMESPACE);
    let moved = json!({"seedName": "seed-b", "ownership": {"epoch": 2}});
    garden.status(&shoots, "honest", moved).await;
    let b: Api<ShootState> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    let next = json!({"spec": {"epoch": 2, "gardener": own()}});
    garden::until_allowed(|| garden::try_patch(&b, "honest", &next)).await;
    allowed(garden.patch(&b, "honest", next).await);
    refused(
        garden
            .patch(&b, "honest", json!({"spec": {"gardener": []}}))
            .await,
        REFUSED,
    );
}
