//! Parses the output of helm into objects. Pure.

use serde_json::{Value, json};

/// Maximum that the resource-manager accepts, minus the maximum of a list.
const MOST: usize = 2000;

/// The objects of a rendered chart, with the items of lists as separate objects. An object without a
/// namespace gets the namespace of the release, as with helm; cluster-scoped kinds drop the namespace when
/// they are applied.
///
/// # Errors
/// A sentence for the condition `Valid`. The sentence quotes no rendered text.
pub(super) fn parse_objects(text: &str, namespace: &str) -> Result<Vec<Value>, String> {
    let options = serde_saphyr::options! {
        // Helm and Kubernetes parse octal numbers like `defaultMode: 0440`.
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
        // The text of the parser error may quote the document, which may hold a secret.
        let place = error.location().filter(|place| place.line() > 0);
        let place = place.map(|place| format!(" (line {})", place.line()));
        format!("the rendered chart is no YAML{}", place.unwrap_or_default())
    })?;
    let mut objects = Vec::new();
    for (number, document) in documents.into_iter().enumerate() {
        add(document, namespace, &mut objects)
            .map_err(|why| format!("document {} of the rendered chart {why}", number + 1))?;
        if objects.len() > MOST {
            return Err(format!("the rendered chart has more than {MOST} objects"));
        }
    }
    if objects.is_empty() {
        return Err("the chart renders nothing: look at its values".to_owned());
    }
    Ok(objects)
}

fn add(mut value: Value, namespace: &str, objects: &mut Vec<Value>) -> Result<(), String> {
    // Comments only.
    if value.is_null() {
        return Ok(());
    }
    let text = |path: &str| value.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("/apiVersion").to_owned(), text("/kind").to_owned());
    if version.is_empty() || kind.is_empty() {
        return Err("is no object: it has no apiVersion and kind".to_owned());
    }
    if version == "v1" && kind == "List" {
        let items = value.pointer_mut("/items").map(Value::take);
        let Some(Value::Array(items)) = items else {
            return Err("is a List without items".to_owned());
        };
        return items
            .into_iter()
            .try_for_each(|item| add(item, namespace, objects));
    }
    if text("/metadata/name").is_empty() {
        return Err(format!("is a {kind} without a name"));
    }
    if text("/metadata/namespace").is_empty() {
        value["metadata"]["namespace"] = json!(namespace);
    }
    objects.push(value);
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn objects_get_the_namespace_of_the_release() {
        let text = "---\n# Source: c\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n# nothing\n---\n\
                    apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: b, namespace: other}}\n";
        let objects = parse_objects(text, "extension-c").unwrap();
        let places: Vec<_> = objects
            .iter()
            .map(|object| {
                (
                    object["metadata"]["name"].as_str().unwrap(),
                    object["metadata"]["namespace"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(places, [("a", "extension-c"), ("b", "other")]);
    }

    /// The API server receives the same values as from Helm.
    #[test]
    fn numbers_and_truths_are_those_of_helm() {
        let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {said: '0440'}}\n\
                    spec: {mode: 0440, port: 8, dry: yes, wet: off, name: \"yes\", at: 12:30, none: ~, size: 1e3}\n";
        let pod = parse_objects(text, "n").unwrap().remove(0);
        assert_eq!(pod["metadata"]["annotations"]["said"], "0440");
        assert_eq!(
            pod["spec"],
            json!({
                "mode": 288, "port": 8, "dry": true, "wet": false, "name": "yes", "at": "12:30", "none": null,
                "size": 1000.0,
            })
        );
    }

    #[test]
    fn what_is_no_object_is_told_without_its_content() {
        for (text, words) in [
            ("", "renders nothing"),
            ("# only words\n", "renders nothing"),
            ("s3cret", "is no object"),
            ("- s3cret", "is no object"),
            ("apiVersion: v1\nkind: Secret\nmetadata: {}\n", "without a name"),
            ("apiVersion: v1\nkind: List\n", "List without items"),
            ("a: [s3cret\nb: }", "is no YAML"),
            (
                "kind: A\napiVersion: v1\nmetadata: {name: s3cret}\n---\nx: y: s3cret\n",
                "line 5",
            ),
            (
                "kind: A\napiVersion: v1\nmetadata: {name: s3cret}\n---\nx: s3cret\n",
                "document 2",
            ),
        ] {
            let why = parse_objects(text, "n").unwrap_err();
            assert!(why.contains(words) && !why.contains("s3cret"), "{why}");
        }
    }
}
