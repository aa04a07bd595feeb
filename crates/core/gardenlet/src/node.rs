//! The part of a shoot's Node that a gardenlet reads. An administrator of the shoot can write large fields
//! into a Node: images, addresses, annotations. The gardenlet skips these fields.

use runtime::bounds::{Few, FewEntries};
use serde::Deserialize;

/// Maximum number of conditions and labels that are read. A Node has a dozen conditions and some twenty
/// labels.
const CONDITIONS: usize = 100;
const LABELS: usize = 1000;

/// The fields of a Node that are read.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct SeenNode {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    labels: FewEntries<LABELS>,
}

#[derive(Debug, Default, Deserialize)]
struct Status {
    #[serde(default)]
    conditions: Few<Condition, CONDITIONS>,
}

#[derive(Debug, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
}

impl SeenNode {
    /// The name of the Node.
    pub(crate) fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The value of a label.
    pub(crate) fn label(&self, key: &str) -> Option<&String> {
        self.metadata.labels.0.get(key)
    }

    /// Whether the Node reports `Ready`.
    pub(crate) fn is_ready(&self) -> bool {
        let mut conditions = self.status.conditions.first.iter();
        conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn node(status: &Value) -> SeenNode {
        let metadata = json!({"name": "a", "labels": {"zone": "one"}, "uid": "u"});
        serde_json::from_value(json!({"metadata": metadata, "spec": {}, "status": status})).unwrap()
    }

    #[test]
    fn a_node_is_ready_if_it_says_so() {
        let says = |status: &str| json!({"conditions": [{"type": "MemoryPressure", "status": "True"}, {"type": "Ready", "status": status}]});
        assert!(node(&says("True")).is_ready());
        assert!(!node(&says("Unknown")).is_ready());
        assert!(!node(&json!({"images": [{"names": ["i"]}]})).is_ready());
        assert_eq!(node(&json!({})).label("zone").map(String::as_str), Some("one"));
        assert_eq!(
            serde_json::from_value::<SeenNode>(json!({"metadata": {"name": "b"}}))
                .unwrap()
                .name(),
            "b"
        );
    }
}
