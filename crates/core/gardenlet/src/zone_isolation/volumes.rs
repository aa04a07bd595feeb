//! Which volumes are in one zone and cannot leave it, and which pods need them. Pure.

use std::collections::BTreeSet;

use runtime::bounds::Few;
use serde::Deserialize;

/// So many terms, expressions and values of a volume are read, and so many volumes of a pod. What has more is
/// bound to nothing.
const MANY: usize = 100;

/// A claim, by namespace and name.
pub(crate) type ClaimKey = (String, String);

/// What is read of a PersistentVolume.
#[derive(Deserialize)]
pub(crate) struct SeenVolume {
    spec: Option<VolumeSpec>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VolumeSpec {
    claim_ref: Option<ClaimReference>,
    node_affinity: Option<NodeAffinity>,
}

#[derive(Deserialize)]
struct ClaimReference {
    namespace: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct NodeAffinity {
    required: Option<Required>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Required {
    #[serde(default)]
    node_selector_terms: Few<Term, MANY>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Term {
    #[serde(default)]
    match_expressions: Few<Expression, MANY>,
}

#[derive(Deserialize)]
struct Expression {
    key: String,
    operator: String,
    #[serde(default)]
    values: Few<String, 2>,
}

/// What is read of a Pod.
#[derive(Deserialize)]
pub(crate) struct SeenPod {
    metadata: PodMetadata,
    #[serde(default)]
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Deserialize)]
struct PodMetadata {
    namespace: Option<String>,
    name: String,
}

#[derive(Default, Deserialize)]
struct PodSpec {
    #[serde(default)]
    volumes: Few<PodVolume, MANY>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodVolume {
    persistent_volume_claim: Option<ClaimSource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClaimSource {
    claim_name: String,
}

#[derive(Default, Deserialize)]
struct PodStatus {
    phase: Option<String>,
}

/// The claim of a volume that is used in this zone alone, by the account's name of it.
pub(crate) fn claim_in(volume: SeenVolume, zone: &str) -> Option<ClaimKey> {
    let spec = volume.spec?;
    let terms = spec.node_affinity?.required?.node_selector_terms;
    // One of the terms is enough for a Node.
    let is_bound =
        terms.is_all && !terms.first.is_empty() && terms.first.iter().all(|term| is_in(term, zone));
    let claim = spec.claim_ref.filter(|_| is_bound)?;
    Some((claim.namespace?, claim.name?))
}

/// Drivers have keys of their own: `topology.kubernetes.io/zone`, `topology.ebs.csi.aws.com/zone`, …
fn is_in(term: &Term, zone: &str) -> bool {
    term.match_expressions.first.iter().any(|wanted| {
        let is_zone = wanted.key.ends_with("/zone") && wanted.operator == "In";
        is_zone && wanted.values.is_all && wanted.values.first == [zone]
    })
}

/// The pod as namespace/name, if it needs one of these claims and has not ended.
pub(crate) fn in_need(pod: &SeenPod, claims: &BTreeSet<ClaimKey>) -> Option<String> {
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    let has_ended = matches!(pod.status.phase.as_deref(), Some("Succeeded" | "Failed"));
    let mut claimed = (pod.spec.volumes.first.iter())
        .filter_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.clone()));
    let is_bound = !has_ended && claimed.any(|claim| claims.contains(&(namespace.clone(), claim)));
    is_bound.then(|| format!("{namespace}/{}", pod.metadata.name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn volume(terms: &Value) -> SeenVolume {
        serde_json::from_value(json!({
            "metadata": {"name": "v"},
            "spec": {"claimRef": {"namespace": "dev", "name": "data-0"}, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}},
        }))
        .unwrap()
    }

    #[test]
    fn a_volume_is_bound_where_it_can_be_nowhere_else() {
        let zone = |key: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": "In", "values": values}]});
        let plain = "topology.kubernetes.io/zone";
        for (terms, is_bound) in [
            (json!([zone(plain, &["one"])]), true),
            (json!([zone("topology.ebs.csi.aws.com/zone", &["one"])]), true),
            (json!([zone(plain, &["one", "two"])]), false),
            (json!([zone(plain, &["one"]), zone(plain, &["two"])]), false),
            (json!([zone("kubernetes.io/hostname", &["one"])]), false),
            (json!([]), false),
        ] {
            assert_eq!(claim_in(volume(&terms), "one").is_some(), is_bound, "{terms}");
        }
        let many = vec![zone(plain, &["one"]); MANY + 1];
        assert_eq!(claim_in(volume(&json!(many)), "one"), None);
        assert_eq!(claim_in(serde_json::from_value(json!({})).unwrap(), "one"), None);
    }

    #[test]
    fn a_pod_needs_the_claims_of_its_own_namespace() {
        let pod = |namespace: &str, phase: &str| -> SeenPod {
            serde_json::from_value(json!({
                "metadata": {"namespace": namespace, "name": "p"}, "status": {"phase": phase},
                "spec": {"containers": [], "volumes": [{"name": "tmp", "emptyDir": {}},
                    {"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}}]},
            }))
            .unwrap()
        };
        let claims = BTreeSet::from([("dev".to_owned(), "data-0".to_owned())]);
        let needs = |namespace: &str, phase: &str| in_need(&pod(namespace, phase), &claims).is_some();
        assert_eq!(in_need(&pod("dev", "Running"), &claims).as_deref(), Some("dev/p"));
        assert!(needs("dev", "Pending"));
        assert!(!needs("dev", "Succeeded"));
        assert!(!needs("other", "Running"));
    }
}
