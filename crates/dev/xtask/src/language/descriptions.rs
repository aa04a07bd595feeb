//! Descriptions of CRD fields that do not explain the effect of the field.

use anyhow::Result;
use serde_json::Value;

/// Minimum characters of a description.
const SHORTEST: usize = 20;

/// How many fields of a CRD have no description, a description without a whole sentence, or a default that
/// the description does not name.
pub fn weak(yaml: &str) -> Result<u64> {
    let crd: Value = serde_yaml_ng::from_str(yaml)?;
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    let schemas = versions
        .into_iter()
        .flatten()
        .filter_map(|version| version.pointer("/schema/openAPIV3Schema"));
    Ok(schemas.map(weak_fields).sum())
}

/// Weak fields below a schema; the schema's own description is not judged.
fn weak_fields(schema: &Value) -> u64 {
    let fields = schema["properties"]
        .as_object()
        .into_iter()
        .flat_map(|fields| fields.values());
    let of_fields: u64 = fields
        .map(|field| u64::from(is_weak(field)) + weak_fields(field))
        .sum();
    let nested = ["items", "additionalProperties"]
        .iter()
        .filter_map(|part| schema.get(part));
    of_fields + nested.map(weak_fields).sum::<u64>()
}

fn is_weak(field: &Value) -> bool {
    let description = field["description"].as_str().unwrap_or_default().trim();
    let whole = description.len() >= SHORTEST && description.ends_with(['.', '`', ')', ':']);
    let names_default = field.get("default").is_none() || description.to_lowercase().contains("default");
    !(whole && names_default)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::weak;

    fn crd(fields: &str) -> String {
        format!("spec: {{versions: [{{schema: {{openAPIV3Schema: {{properties: {fields}}}}}}}]}}")
    }

    #[test]
    fn a_field_needs_a_sentence() {
        assert_eq!(
            weak(&crd("{a: {type: string}, b: {description: How.}}")).unwrap(),
            2
        );
        assert_eq!(
            weak(&crd("{a: {description: The zone that the machines leave.}}")).unwrap(),
            0
        );
    }

    #[test]
    fn a_default_is_named_and_nested_fields_count() {
        let field = "{a: {description: Seconds until a machine ends., default: 5}}";
        assert_eq!(weak(&crd(field)).unwrap(), 1);
        let list = format!("{{l: {{description: All pools of the shoot., items: {{properties: {field}}}}}}}");
        assert_eq!(weak(&crd(&list)).unwrap(), 1);
    }
}
