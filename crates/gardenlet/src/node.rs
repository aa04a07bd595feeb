//! A Node of a shoot, as far as a gardenlet looks at it. Whoever is administrator of the shoot writes into a
//! Node as much as he likes: images, addresses, annotations. None of that is read.

use runtime::{Few, FewEntries};
use serde::Deserialize;

/// So many conditions and labels are read. A Node has a dozen of the first and some twenty of the others.
const CONDITIONS: usize = 100;
const LABELS: usize = 1000;

/// What is read of a Node.
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
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The value of a label.
    pub(crate) fn label(&self, key: &str) -> Option<&String> {
        self.metadata.labels.0.get(key)
    }

    /// Whether it says that it is.
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
