//! Limits the schemas, so that this suite can read every object that an API server accepts, and can write
//! each value back.
//!
//! Otherwise a user with the right to write a single object of a kind could end every watch of that kind, for
//! all clients: a list with an object that cannot be decoded is no list. Schemas of Kubernetes use `int32`
//! and `date-time`, and the validation of Kubernetes accepts more than the types can hold: numbers beyond 32
//! bits, the last day of the year 9999, times without a zone.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// A time of RFC 3339 with a time zone, before the year 9000. This suite writes times in UTC. So only the
/// years 1000 to 7999 take an offset, because no offset leads out of the accepted years from there.
const TIME: &str = r"^([0-8][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?Z|[1-7][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?[+-]([01][0-9]|2[0-3]):[0-5][0-9])$";
/// The largest integer that every JSON parser reads exactly.
const LARGEST: f64 = 9_007_199_254_740_991.0;

/// Fields that are a number of 32 bits or a percentage. Quantities have the same schema, and take any number.
const EITHER: [&str; 2] = ["maxSurge", "maxUnavailable"];

/// Narrows the schemas of all versions to these limits. Narrower bounds stay.
pub fn apply(definition: &mut CustomResourceDefinition) {
    for version in &mut definition.spec.versions {
        if let Some(schema) = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut())
        {
            narrow(schema);
        }
    }
}

fn narrow(schema: &mut JSONSchemaProps) {
    match schema.format.as_deref() {
        Some("date-time") => drop(schema.pattern.get_or_insert_with(|| TIME.to_owned())),
        Some("int32") => within(schema, f64::from(i32::MIN), f64::from(i32::MAX)),
        Some("int64") => within(schema, -LARGEST, LARGEST),
        _ => {}
    }
    for (name, property) in schema.properties.iter_mut().flatten() {
        narrow(property);
        if EITHER.contains(&name.as_str()) && property.x_kubernetes_int_or_string == Some(true) {
            within(property, f64::from(i32::MIN), f64::from(i32::MAX));
        }
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        narrow(values);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => narrow(item),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(narrow),
        None => {}
    }
}

fn within(schema: &mut JSONSchemaProps, least: f64, most: f64) {
    schema.minimum = Some(schema.minimum.map_or(least, |minimum| minimum.max(least)));
    schema.maximum = Some(schema.maximum.map_or(most, |maximum| maximum.min(most)));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Fields with a time and a different pattern.
    fn times_without_limit(schema: &JSONSchemaProps, path: &str, found: &mut Vec<String>) {
        if schema.format.as_deref() == Some("date-time") && schema.pattern.as_deref() != Some(TIME) {
            found.push(path.to_owned());
        }
        for (name, property) in schema.properties.iter().flatten() {
            times_without_limit(property, &format!("{path}.{name}"), found);
        }
        if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
            times_without_limit(values, &format!("{path}.*"), found);
        }
        match &schema.items {
            Some(JSONSchemaPropsOrArray::Schema(item)) => times_without_limit(item, path, found),
            Some(JSONSchemaPropsOrArray::Schemas(items)) => {
                for item in items {
                    times_without_limit(item, path, found);
                }
            }
            None => {}
        }
    }

    #[test]
    fn each_time_of_each_kind_has_the_limit() {
        let mut found = Vec::new();
        for crd in crate::all_crds() {
            for version in &crd.definition.spec.versions {
                let schema = version.schema.as_ref().unwrap();
                let schema = schema.open_api_v3_schema.as_ref().unwrap();
                times_without_limit(schema, &crd.definition.spec.names.kind, &mut found);
            }
        }
        assert_eq!(found, Vec::<String>::new());
    }
}
