//! A ShootState with entries that a hostile source has planted: the keys of the shoot are restored, and each
//! planted piece is left out by itself.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;
use crate::shoot_state::piece::pieces_of;

fn key(content: &str) -> Value {
    json!({"name": "ca", "type": "secret", "labels": {"persist": "true"},
        "data": {"data": {"ca.crt": "Y3J0", "ca.key": content}, "immutable": true, "type": "Opaque"}})
}

fn honest() -> Value {
    let reference =
        json!({"name": "r", "resourceRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "zones"}});
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"}, "metadata": {"name": "zones"}});
    json!({
        "gardener": [key("a2V5"), {"name": "worker-key", "type": "secret", "labels": {"persist": "true"},
            "data": {"data": {"k": "dg=="}, "type": "Opaque"}}],
        "extensions": [{"kind": "Infrastructure", "name": "web", "state": {"networkID": "n1"}, "resources": [reference]}],
        "resources": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "zones", "data": map}],
    })
}

/// The verified pieces, from the ShootState itself or from chunks.
fn verified(spec: Value, in_chunks: bool) -> VerifiedPieces {
    let mut verified = VerifiedPieces::new("web");
    let range = in_chunks.then_some(0..1);
    for piece in pieces_of(serde_json::from_value(spec).unwrap()) {
        verified.add(piece, range.clone()).unwrap();
    }
    verified
}

/// The honest ShootState with further pieces in front of the pieces of a list.
fn with(list: &str, pieces: &[Value]) -> Value {
    let mut spec = honest();
    let all = spec[list].as_array_mut().unwrap();
    for piece in pieces {
        all.insert(0, piece.clone());
    }
    spec
}

fn own() -> Key {
    Key::gardener("secret", "ca")
}

#[test]
fn honest_content_is_kept_and_nothing_is_left_out() {
    for in_chunks in [false, true] {
        let found = verified(honest(), in_chunks);
        assert_eq!(found.here.len() + found.index.len(), 4);
        assert!(found.left_out.is_empty() && found.broken_keys().is_empty());
    }
}

/// One planted piece kept the destination from all keys.
#[test]
fn a_planted_piece_is_left_out_and_the_keys_stay() {
    let entry = |name: &str, labels: Value, data: Value| json!({"name": name, "type": "secret", "labels": labels, "data": data});
    let carried = || json!({"persist": "true"});
    let token = "kubernetes.io/service-account-token";
    for (list, piece, words) in [
        (
            "gardener",
            entry("z", json!({}), json!({"data": {}})),
            "no label persist",
        ),
        (
            "gardener",
            entry("z", carried(), json!({"data": {}, "x": 1})),
            "does not decode",
        ),
        (
            "gardener",
            entry("z", carried(), json!({"data": {}, "type": token})),
            "are not carried",
        ),
        (
            "gardener",
            entry("gardenlet", carried(), json!({"data": {}})),
            "each seed creates",
        ),
        // In front of the entry of the key, and behind the entry.
        (
            "gardener",
            json!({"type": "a", "name": "ca", "data": {}}),
            "its type is \"a\"",
        ),
        (
            "gardener",
            json!({"type": "y", "name": "ca", "data": {}}),
            "its type is \"y\"",
        ),
        (
            "gardener",
            json!({"type": "machine-state", "name": "machine-state", "data": {"state": "eA=="}}),
            "cannot be unpacked",
        ),
        ("extensions", json!({"kind": "X", "name": "x"}), "no kind"),
        (
            "extensions",
            json!({"kind": "Network", "name": "../x"}),
            "no name of an object",
        ),
        (
            "resources",
            json!({"apiVersion": "v1", "kind": "Pod", "name": "x", "data": {}}),
            "only Secrets and ConfigMaps",
        ),
        (
            "resources",
            json!({"apiVersion": "v1", "kind": "Secret", "name": "x", "data": {}}),
            "no state of an extension object",
        ),
    ] {
        for in_chunks in [false, true] {
            let found = verified(with(list, std::slice::from_ref(&piece)), in_chunks);
            assert_eq!(found.here.len() + found.index.len(), 4, "{piece}");
            assert!(found.broken_keys().is_empty(), "{piece}");
            let sentences: Vec<_> = found.left_out.values().collect();
            assert_eq!(sentences.len(), 1, "{sentences:?}");
            assert!(sentences[0].contains(words), "{sentences:?}");
            assert!(sentences[0].contains("of ShootState web"), "{sentences:?}");
        }
    }
}

/// A refused state gives no planted object a reason to be carried.
#[test]
fn a_refused_state_refers_to_no_object() {
    let to = |kind: &str, name: &str| json!({"name": "r", "resourceRef": {"apiVersion": "v1", "kind": kind, "name": name}});
    let mut spec = with(
        "extensions",
        &[json!({"kind": "Network", "name": "web", "resources": [to("ConfigMap", "x"), to("Pod", "x")]})],
    );
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
    let planted = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "data": map});
    spec["resources"].as_array_mut().unwrap().push(planted);
    let found = verified(spec, false);
    assert_eq!((found.here.len(), found.left_out.len()), (4, 2));
}

#[test]
fn an_entry_beside_the_key_hides_no_key() {
    let mut further = key("a2V5");
    further["data"]["x"] = json!(1);
    for planted in [
        json!({"name": "ca", "type": "secret", "data": {}}),
        json!({"name": "ca", "type": "secret", "data": {"data": {"ca.key": "b3RoZXI="}}}),
        key("no base64"),
        key("a2V5"),
        further,
    ] {
        let found = verified(with("gardener", &[planted]), false);
        assert!(found.broken_keys().is_empty());
        let held = serde_json::to_value(&found.here[&own()]).unwrap();
        assert_eq!(held["gardener"]["data"], key("a2V5")["data"]);
        assert!(found.left_out.is_empty(), "{:?}", found.left_out);
    }
}

/// No reader can tell which of two keys is right, and a wrong key cuts off all clients.
#[test]
fn two_different_keys_of_one_name_stop_the_restore() {
    let found = verified(with("gardener", &[key("b3RoZXI=")]), false);
    assert!(found.broken_keys()["ca"].contains("several entries"));
    let found = verified(with("gardener", &[key("a2V5")]), true);
    assert!(found.broken_keys()["ca"].contains("several entries"));
}

#[test]
fn a_broken_key_is_named() {
    let mut spec = honest();
    spec["gardener"][0] = key("hunter2!");
    let broken = verified(spec, false).broken_keys();
    assert_eq!(broken.len(), 1);
    assert_eq!(broken["ca"], "ca.key is not base64");
}

#[test]
fn planted_pieces_cost_a_bounded_amount_of_memory() {
    let mut found = VerifiedPieces::new("web");
    let piece = |number: usize| {
        let name = format!("{number}{}", "x".repeat(10_000));
        Piece::Gardener(GardenerResourceData {
            name,
            type_: "y".to_owned(),
            ..GardenerResourceData::default()
        })
    };
    for number in 0..MOST_LEFT_OUT {
        found.add(piece(number), None).unwrap();
    }
    let error = found.add(piece(MOST_LEFT_OUT), None).unwrap_err();
    assert!(error.to_string().contains("Only the keys"), "{error}");
    let mut sentences = found.left_out.values();
    assert_eq!(sentences.len(), MOST_LEFT_OUT);
    assert!(sentences.all(|sentence| sentence.len() < 1000));
}
