//! The rules of a ClusterRole, and the names of the objects.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::*;

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn rules(seed: &str, namespace: &str, rights: &Rights) -> Vec<PolicyRule> {
    let namespace: NamespaceMeta =
        serde_json::from_value(json!({"metadata": {"name": namespace, "uid": "u"}})).unwrap();
    let role: ClusterRole = decode(role(seed, &namespace, rights)).unwrap();
    role.rules.unwrap()
}

fn reads(rule: &PolicyRule) -> bool {
    let reads = |verb: &String| ["get", "list", "watch", "*"].contains(&verb.as_str());
    rule.verbs.iter().any(reads)
}

fn is_named(rule: &PolicyRule) -> bool {
    rule.resource_names
        .as_ref()
        .is_some_and(|names| !names.is_empty())
}

#[test]
fn no_rule_reads_without_names() {
    for shoots in [names(&[]), names(&["web"])] {
        for chunks in [names(&[]), names(&["web.state-1-0"])] {
            for secrets in [names(&[]), names(&["cloud"])] {
                let rights = Rights {
                    shoots: shoots.clone(),
                    chunks: NamedChunks {
                        names: chunks.clone(),
                        left_out: BTreeMap::new(),
                    },
                    prepared: names(&["theirs.preparation-1-2"]),
                    secrets,
                    reports: true,
                    is_own: false,
                };
                for rule in rules("a", "garden-dev", &rights) {
                    assert_eq!(reads(&rule), is_named(&rule), "{rule:?}");
                    assert!(!rule.verbs.iter().any(|verb| verb == "list" || verb == "watch"));
                }
            }
        }
    }
}

/// A destination reads the object of the grant, and reports.
#[test]
fn a_preparation_is_a_right_to_one_object() {
    let rights = Rights {
        prepared: names(&["web.preparation-3-1767225600"]),
        ..Rights::default()
    };
    assert!(!rights.is_empty());
    let rules = rules("b", "garden-dev", &rights);
    assert_eq!(rules.len(), 1);
    assert_eq!(
        rules[0].resources.as_deref(),
        Some(&["internalsecrets".to_owned()][..])
    );
    assert_eq!(rules[0].verbs, ["get"]);
    assert_eq!(
        rules[0].resource_names.as_deref(),
        Some(&["web.preparation-3-1767225600".to_owned()][..])
    );
}

#[test]
fn a_seed_writes_no_secret_but_the_kubeconfigs_of_its_shoots() {
    let rights = Rights {
        shoots: names(&["web"]),
        secrets: names(&["cloud"]),
        is_own: true,
        ..Rights::default()
    };
    let rules = rules("a", "seed-a", &rights);
    let secrets = rules
        .iter()
        .filter(|rule| rule.resources.as_deref() == Some(&["secrets".to_owned()][..]));
    let writable: Vec<_> = secrets
        .filter(|rule| rule.verbs != ["get"])
        .flat_map(|rule| rule.resource_names.clone().unwrap_or_default())
        .collect();
    assert_eq!(writable, ["web.kubeconfig"]);
    assert!(rules.iter().any(|rule| reads(rule) && !is_named(rule)));
}

#[test]
fn the_name_of_a_role_gives_seed_and_namespace() {
    assert_eq!(
        seed_and_namespace(&role_name("seed-a", "garden-dev")),
        Some(("seed-a", "garden-dev"))
    );
    assert_eq!(seed_and_namespace("gardener.cloud:system:seeds"), None);
}

#[test]
fn a_binding_that_no_write_can_fix_is_replaced() {
    let wanted: RoleBinding = decode(binding("a", "garden-dev")).unwrap();
    assert!(!wanted.is_unlike(&wanted));
    for (path, value) in [
        ("/roleRef/name", json!("view")),
        ("/roleRef/kind", json!("Role")),
        ("/metadata/labels", json!({(LABEL.0): LABEL.1, "x": "y"})),
    ] {
        let mut other = binding("a", "garden-dev");
        *other.pointer_mut(path).unwrap() = value;
        let other: RoleBinding = decode(other).unwrap();
        assert!(other.is_unlike(&wanted), "{path}");
    }
    // A write replaces the subjects.
    let mut bound_to_another = binding("a", "garden-dev");
    bound_to_another["subjects"] = json!([]);
    let bound_to_another: RoleBinding = decode(bound_to_another).unwrap();
    assert!(!bound_to_another.is_unlike(&wanted));
}

#[test]
fn a_role_that_no_write_can_fix_is_replaced() {
    let namespace: NamespaceMeta =
        serde_json::from_value(json!({"metadata": {"name": "garden-dev"}})).unwrap();
    let wanted = role("a", &namespace, &Rights::default());
    let is_unlike = |path: &str, value: Value| {
        let mut other = wanted.clone();
        other[path] = value;
        let (other, wanted): (ClusterRole, ClusterRole) =
            (decode(other).unwrap(), decode(wanted.clone()).unwrap());
        other.is_unlike(&wanted)
    };
    let labels = json!({(LABEL.0): LABEL.1, "x": "y"});
    assert!(is_unlike(
        "metadata",
        json!({"name": wanted["metadata"]["name"], "labels": labels})
    ));
    assert!(is_unlike("aggregationRule", json!({"clusterRoleSelectors": []})));
    // A write replaces the rules.
    assert!(!is_unlike("rules", json!([{"verbs": ["get"]}])));
}
