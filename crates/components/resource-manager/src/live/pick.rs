//! The fields of an object that are kept besides the metadata. Values of an unexpected type are read without
//! an error.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

use self::Keep::{Each, Entries, Fields, Scalar};

/// Maximum elements of a list, and entries of a map. Conditions, containers and container resources are
/// fewer.
const MOST: usize = 50;
/// Maximum bytes of a text. Names, reasons and the annotations of this process are shorter.
const LONGEST: usize = 1024;

/// The part of a value that is kept.
enum Keep {
    /// A text, a number, or a boolean.
    Scalar,
    /// The first entries of a map, if scalar.
    Entries,
    /// These fields of a map.
    Fields(&'static [(&'static str, Keep)]),
    /// This part of each of the first elements of a list.
    Each(&'static Keep),
}

const CONTAINERS: Keep = Each(&Fields(&[
    ("name", Scalar),
    (
        "resources",
        Fields(&[
            ("limits", Entries),
            ("requests", Entries),
            ("claims", Each(&Fields(&[("name", Scalar), ("request", Scalar)]))),
        ]),
    ),
]));
const POD: Keep = Fields(&[("containers", CONTAINERS), ("initContainers", CONTAINERS)]);
const TEMPLATE: Keep = Fields(&[("spec", POD)]);

/// The fields that [`crate::plan`] and [`crate::health`] read.
static SPEC: Keep = Fields(&[
    ("replicas", Scalar),
    ("type", Scalar),
    ("selector", Fields(&[("matchLabels", Entries)])),
    (
        "volumeClaimTemplates",
        Each(&Fields(&[("metadata", Fields(&[("name", Scalar)]))])),
    ),
    ("template", TEMPLATE),
    (
        "jobTemplate",
        Fields(&[("spec", Fields(&[("template", TEMPLATE)]))]),
    ),
    ("containers", CONTAINERS),
    ("initContainers", CONTAINERS),
]);

/// The fields that [`crate::health`] reads.
static STATUS: Keep = Fields(&[
    ("phase", Scalar),
    ("observedGeneration", Scalar),
    ("replicas", Scalar),
    ("readyReplicas", Scalar),
    ("updatedReplicas", Scalar),
    ("availableReplicas", Scalar),
    ("currentRevision", Scalar),
    ("updateRevision", Scalar),
    ("desiredNumberScheduled", Scalar),
    ("updatedNumberScheduled", Scalar),
    ("numberReady", Scalar),
    ("numberAvailable", Scalar),
    ("numberMisscheduled", Scalar),
    (
        "conditions",
        Each(&Fields(&[
            ("type", Scalar),
            ("status", Scalar),
            ("reason", Scalar),
        ])),
    ),
    ("loadBalancer", Fields(&[("ingress", Each(&Fields(&[])))])),
]);

/// The `spec` of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Spec(pub(super) Value);

/// The `status` of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Status(pub(super) Value);

/// Whether a ConfigMap or a Secret is `immutable`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Immutable(pub(super) bool);

impl<'de> Deserialize<'de> for Immutable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Pick(&Scalar).deserialize(deserializer)?;
        Ok(Self(value == Value::Bool(true)))
    }
}

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Pick(&SPEC).deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for Status {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Pick(&STATUS).deserialize(deserializer).map(Self)
    }
}

/// The beginning of a text.
pub(super) fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Reads the parts to keep; a value of an unexpected type becomes null.
struct Pick(&'static Keep);

impl Pick {
    fn scalar(&self, value: impl Into<Value>) -> Value {
        match self.0 {
            Scalar => value.into(),
            _ => Value::Null,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Pick {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Pick {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(self.scalar(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(self.scalar(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(self.scalar(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(self.scalar(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(self.scalar(cut(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut kept = Vec::new();
        if let Each(keep) = self.0 {
            while kept.len() < MOST {
                match elements.next_element_seed(Pick(keep))? {
                    Some(element) => kept.push(element),
                    None => break,
                }
            }
        }
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(match self.0 {
            Each(_) => Value::Array(kept),
            _ => Value::Null,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        while let Some(key) = entries.next_key::<Cow<'_, str>>()? {
            let keep = match self.0 {
                Fields(fields) => fields.iter().find(|(name, _)| *name == key).map(|(_, keep)| keep),
                Entries if kept.len() < MOST => Some(&Scalar),
                _ => None,
            };
            match keep {
                Some(keep) => drop(kept.insert(cut(&key).to_owned(), entries.next_value_seed(Pick(keep))?)),
                None => drop(entries.next_value::<IgnoredAny>()?),
            }
        }
        Ok(match self.0 {
            Fields(_) | Entries => Value::Object(kept),
            _ => Value::Null,
        })
    }
}
