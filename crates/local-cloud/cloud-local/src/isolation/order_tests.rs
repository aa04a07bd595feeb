#![allow(clippy::unwrap_used)]
use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn read(change: &Value) -> Result<Order, String> {
    let mut object = json!({
        "metadata": {"name": "isolation.web", "uid": "1", "labels": {CLUSTER: "web"}},
        "data": {"zone": "a", "since": "2026-01-01T00:00:00Z", "wanted": "closed", "revision": "2",
            "host.one": "2", "host.two": "1"},
    });
    for (key, value) in change.as_object().into_iter().flatten() {
        object["data"][key] = value.clone();
    }
    Order::from_config_map(&serde_json::from_value(object).unwrap())
}

#[test]
fn what_a_host_said_of_an_earlier_wish_is_nothing() {
    let order = read(&json!({})).unwrap();
    assert!(order.shut && order.is_done_by("one") && !order.is_done_by("two"));
    let hosts = ["one", "three", "two"].map(str::to_owned).into();
    assert_eq!(order.missing(&hosts), ["three", "two"]);
    assert!(!read(&json!({"wanted": "open"})).unwrap().shut);
    assert!(!order.same_as(&read(&json!({"revision": "3"})).unwrap()));
}

#[rstest]
#[case("zone", "", "no zone")]
#[case("since", "", "no since")]
#[case("wanted", "maybe", "neither closed nor open")]
#[case("revision", "x", "is no number")]
fn what_cannot_be_understood_is_told(#[case] key: &str, #[case] value: &str, #[case] why: &str) {
    let told = read(&json!({key: value})).unwrap_err();
    assert!(told.contains(why), "{told}");
}
