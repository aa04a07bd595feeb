//! JSON merge patches (RFC 7386) between two states of an object.

use serde_json::{Map, Value};

/// The merge patch from `now` to `wanted`; `None` if both are equal. A key that `wanted` lacks becomes `null`
/// at each depth, because a merge patch keeps each key that the patch does not name. Lists are replaced as a
/// whole.
pub fn merge_patch(now: &Value, wanted: &Value) -> Option<Value> {
    if now == wanted {
        return None;
    }
    let (Some(now), Some(wanted)) = (now.as_object(), wanted.as_object()) else {
        return Some(wanted.clone());
    };
    let removed = now
        .iter()
        .filter(|(key, value)| !value.is_null() && !wanted.contains_key(*key));
    let mut patch: Map<String, Value> = removed.map(|(key, _)| (key.clone(), Value::Null)).collect();
    for (key, value) in wanted {
        let change = merge_patch(now.get(key).unwrap_or(&Value::Null), value);
        patch.extend(change.map(|change| (key.clone(), change)));
    }
    (!patch.is_empty()).then(|| patch.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::nested_key_is_removed(json!({"labels": {"a": "1", "b": "2"}}), json!({"labels": {"a": "1"}}))]
    #[case::last_nested_key_is_removed(json!({"labels": {"a": "1"}}), json!({"labels": {}}))]
    #[case::object_is_removed(json!({"labels": {"a": "1"}, "timeout": "1h"}), json!({"timeout": "1h"}))]
    #[case::object_is_added(json!({"timeout": "1h"}), json!({"labels": {"a": "1"}, "timeout": "2h"}))]
    #[case::list_is_replaced(json!({"taints": [{"key": "a"}, {"key": "b"}]}), json!({"taints": [{"key": "b"}]}))]
    fn a_patch_leads_to_the_wanted_state(#[case] now: Value, #[case] wanted: Value) {
        let mut patched = now.clone();
        json_patch::merge(&mut patched, &merge_patch(&now, &wanted).unwrap());
        assert_eq!(patched, wanted);
        assert_eq!(merge_patch(&patched, &wanted), None);
    }

    #[test]
    fn a_patch_names_only_changed_keys() {
        let (now, wanted) = (
            json!({"a": {"b": 1, "c": 2}, "d": 3}),
            json!({"a": {"b": 1}, "d": 3}),
        );
        assert_eq!(merge_patch(&now, &wanted), Some(json!({"a": {"c": null}})));
    }
}
