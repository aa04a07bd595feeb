//! Completes the descriptions that `kubectl explain` shows: sentences for fields of Kubernetes' own types,
//! and a note at each field without effect.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

use crate::{druid, gardencore::shoot::effects};

/// Appended to the description of a field without effect.
const NO_EFFECT: &str = " Has no effect.";

/// Fields of Kubernetes' own types with a description that is not a sentence, or that does not state the
/// effect in this suite: the name of the field, the beginning of the description, and the description to
/// publish.
const SENTENCES: &[(&str, &str, &str)] = &[
    (
        "limits",
        "Limits describes the maximum",
        "Highest resources that the container may use, such as `memory: 2Gi`. No limit by default.",
    ),
    (
        "requests",
        "Requests describes the minimum",
        "Resources that a node reserves for the container, such as `cpu: 100m`. Default: `limits`.",
    ),
    (
        "cidr",
        "cidr is a string representing",
        "Range of addresses in CIDR notation, such as `192.168.1.0/24` or `2001:db8::/64`.",
    ),
    (
        "except",
        "except is a slice of CIDRs",
        "Ranges within `cidr` that are excluded, in CIDR notation.",
    ),
    (
        "ports",
        "Ports is a list of records",
        "State of the ports of the address. The list has either all ports or no port.",
    ),
    (
        "port",
        "Port is the port number",
        "Number of the port that this entry describes.",
    ),
    (
        "protocol",
        "Protocol is the protocol of",
        "Protocol of the port that this entry describes: `TCP`, `UDP` or `SCTP`.",
    ),
    (
        "address",
        "The node address.",
        "Address of the node: a name or an IP address, as `type` states.",
    ),
    (
        "name",
        "Name of the referent. This field is effectively",
        "Name of the referenced object, in the namespace of the referring object.",
    ),
    (
        "optional",
        "Specify whether the Secret or its key",
        "Whether the Secret or the key may be missing. Has no effect: both are always required.",
    ),
    (
        "configSource",
        "Deprecated: Previously used to specify",
        "Deprecated source of the kubelet's configuration. Has no effect: Kubernetes removed the feature.",
    ),
    (
        "configMap",
        "ConfigMap is a reference to a Node",
        "ConfigMap with the kubelet's configuration. Has no effect: Kubernetes removed the feature.",
    ),
    (
        "externalID",
        "Deprecated. Not all kubelets",
        "Deprecated ID of the node at the provider. Has no effect: only the taints reach the Node.",
    ),
    (
        "podCIDR",
        "PodCIDR represents the pod IP range",
        "Range of pod addresses of the node. Has no effect: only the taints reach the Node.",
    ),
    (
        "podCIDRs",
        "podCIDRs represents the IP ranges",
        "Ranges of pod addresses of the node. Has no effect: only the taints reach the Node.",
    ),
    (
        "providerID",
        "ID of the node assigned by the cloud provider",
        "ID of the machine at the provider. Has no effect: the Node gets `spec.providerID` of the Machine.",
    ),
    (
        "unschedulable",
        "Unschedulable controls node schedulability",
        "Whether new pods avoid the node. Has no effect: only the taints reach the Node.",
    ),
];

/// Completes the descriptions of all versions of a definition.
pub fn complete(definition: &mut CustomResourceDefinition) {
    let idle = idle_paths(&definition.spec.names.kind);
    for version in &mut definition.spec.versions {
        if let Some(schema) = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut())
        {
            complete_below(schema, "", &idle);
        }
    }
}

/// Paths of the fields of a kind that have no effect for any value.
fn idle_paths(kind: &str) -> Vec<&'static str> {
    let fields = match kind {
        "Shoot" => effects::SHOOT,
        "Seed" => effects::SEED,
        "Project" => effects::PROJECT,
        "CloudProfile" => effects::CLOUD_PROFILE,
        "Etcd" => return druid::effects::idle_paths().collect(),
        _ => return Vec::new(),
    };
    let always_idle = fields.iter().filter(|field| field.when.is_none());
    always_idle.map(|field| field.path).collect()
}

/// Completes the descriptions of all fields below the schema at `path`.
fn complete_below(schema: &mut JSONSchemaProps, path: &str, idle: &[&str]) {
    for (name, field) in schema.properties.iter_mut().flatten() {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        if let Some(description) = &mut field.description {
            replace_sentence(name, description);
            if is_below(&path, idle) && !description.contains("o effect") {
                append_no_effect(description);
            }
        }
        complete_below(field, &path, idle);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        complete_below(values, &format!("{path}{{}}"), idle);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(item)) = &mut schema.items {
        complete_below(item, &format!("{path}[]"), idle);
    }
}

fn replace_sentence(name: &str, description: &mut String) {
    let sentence = SENTENCES
        .iter()
        .find(|(field, begin, _)| *field == name && description.starts_with(*begin));
    if let Some((_, _, sentence)) = sentence {
        description.clear();
        description.push_str(sentence);
    }
}

/// Whether `path` is a path of this list, or is below such a path.
fn is_below(path: &str, paths: &[&str]) -> bool {
    let ends_here = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[', '{']);
    paths
        .iter()
        .any(|above| path.strip_prefix(*above).is_some_and(ends_here))
}

fn append_no_effect(description: &mut String) {
    if !description.ends_with('.') {
        description.push('.');
    }
    description.push_str(NO_EFFECT);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::all_crds;

    #[test]
    fn fields_below_an_idle_field_are_idle() {
        let idle = ["spec.addons", "spec.workers[].sysctls"];
        for path in [
            "spec.addons",
            "spec.addons.dashboard",
            "spec.workers[].sysctls{}.name",
        ] {
            assert!(is_below(path, &idle), "{path}");
        }
        for path in ["spec", "spec.addonsOfOthers", "spec.workers[].name"] {
            assert!(!is_below(path, &idle), "{path}");
        }
    }

    #[test]
    fn a_note_follows_a_whole_sentence() {
        let mut description = "Allowed: `a` or `b`".to_owned();
        append_no_effect(&mut description);
        assert_eq!(description, "Allowed: `a` or `b`. Has no effect.");
    }

    /// A new version of Kubernetes may reword a description. Then the sentence here is never published.
    #[test]
    fn every_sentence_is_published() {
        let definitions: Vec<_> = all_crds().into_iter().map(|crd| crd.definition).collect();
        let text = serde_json::to_string(&definitions).unwrap();
        for (field, _, sentence) in SENTENCES {
            assert!(text.contains(sentence), "{field}: {sentence}");
        }
    }
}
