//! Users' configurations for providers, in a compact form for memory with many objects.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::Value;

use super::RawExtension;

/// An object as text, with fields that only the reader knows. Decoded into a [`Value`], a small object takes
/// a hundred times as much memory, and users write as many objects as they like. Unknown fields survive.
#[derive(Clone, PartialEq, Eq)]
pub struct PackedExtension(Box<str>);

impl PackedExtension {
    /// Encodes a typed configuration.
    ///
    /// # Errors
    /// The value does not serialise.
    pub fn encode<T: Serialize>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::to_value(value).map(Self::from)
    }

    /// Decodes into the type that the reader knows; a [`Value`] is valid for every kind.
    ///
    /// # Errors
    /// The object is of a different type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// Whether the object is null.
    #[must_use]
    pub fn is_null(&self) -> bool {
        &*self.0 == "null"
    }
}

impl Default for PackedExtension {
    fn default() -> Self {
        Value::Null.into()
    }
}

impl From<Value> for PackedExtension {
    fn from(value: Value) -> Self {
        Self(value.to_string().into())
    }
}

impl fmt::Debug for PackedExtension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for PackedExtension {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: Value = self.decode().map_err(serde::ser::Error::custom)?;
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PackedExtension {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

impl JsonSchema for PackedExtension {
    fn inline_schema() -> bool {
        RawExtension::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        RawExtension::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        RawExtension::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_is_lost_in_it() {
        for value in [
            json!({"b": [1, -2.5, true, null, {"x": "\u{0}\" \\ ü"}], "a": {"": 18_446_744_073_709_551_615_u64}}),
            json!({}),
            json!(null),
        ] {
            let packed = PackedExtension::from(value.clone());
            assert_eq!(packed.decode::<Value>().unwrap(), value);
            assert_eq!(serde_json::to_value(&packed).unwrap(), value);
            assert_eq!(
                serde_json::from_value::<PackedExtension>(value.clone()).unwrap(),
                packed
            );
            assert_eq!(packed.is_null(), value.is_null());
        }
        assert!(PackedExtension::default().is_null());
        let same = [r#"{"a":1,"b":2}"#, r#"{ "b": 2, "a": 1 }"#];
        let [one, other] = same.map(|text| serde_json::from_str::<PackedExtension>(text).unwrap());
        assert_eq!(one, other);
    }
}
