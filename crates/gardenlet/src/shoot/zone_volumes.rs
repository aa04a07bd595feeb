//! Which volumes are in one zone and cannot leave it, and which pods need them. Pure.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{NodeSelectorTerm, PersistentVolume, Pod};
use kube::ResourceExt;

/// A claim, by namespace and name.
pub(super) type Claim = (String, String);

/// The claim of a volume that is used in this zone alone, by the account's name of it.
pub(super) fn claim_in(volume: &PersistentVolume, zone: &str) -> Option<Claim> {
    let spec = volume.spec.as_ref()?;
    let terms = &spec
        .node_affinity
        .as_ref()?
        .required
        .as_ref()?
        .node_selector_terms;
    // One of the terms is enough for a Node.
    let is_bound = !terms.is_empty() && terms.iter().all(|term| is_in(term, zone));
    let claim = spec.claim_ref.as_ref().filter(|_| is_bound)?;
    Some((claim.namespace.clone()?, claim.name.clone()?))
}

/// Drivers have keys of their own: `topology.kubernetes.io/zone`, `topology.ebs.csi.aws.com/zone`, …
fn is_in(term: &NodeSelectorTerm, zone: &str) -> bool {
    term.match_expressions.iter().flatten().any(|wanted| {
        let values = wanted.values.as_deref().unwrap_or_default();
        wanted.key.ends_with("/zone") && wanted.operator == "In" && values.len() == 1 && values[0] == zone
    })
}

/// Whether the pod needs one of these claims, and has not ended.
pub(super) fn uses(pod: &Pod, claims: &BTreeSet<Claim>) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let namespace = pod.namespace().unwrap_or_default();
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let mut claimed =
        volumes.filter_map(|volume| Some(volume.persistent_volume_claim.as_ref()?.claim_name.clone()));
    !matches!(phase, Some("Succeeded" | "Failed"))
        && claimed.any(|claim| claims.contains(&(namespace.clone(), claim)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn volume(terms: &Value) -> PersistentVolume {
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
            assert_eq!(claim_in(&volume(&terms), "one").is_some(), is_bound, "{terms}");
        }
        assert_eq!(claim_in(&PersistentVolume::default(), "one"), None);
    }

    #[test]
    fn a_pod_needs_the_claims_of_its_own_namespace() {
        let pod = |namespace: &str, phase: &str| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"namespace": namespace, "name": "p"}, "status": {"phase": phase},
                "spec": {"containers": [], "volumes": [{"name": "tmp", "emptyDir": {}},
                    {"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}}]},
            }))
            .unwrap()
        };
        let claims = BTreeSet::from([("dev".to_owned(), "data-0".to_owned())]);
        assert!(uses(&pod("dev", "Running"), &claims));
        assert!(uses(&pod("dev", "Pending"), &claims));
        assert!(!uses(&pod("dev", "Succeeded"), &claims));
        assert!(!uses(&pod("other", "Running"), &claims));
        assert!(!uses(&Pod::default(), &claims));
    }
}
