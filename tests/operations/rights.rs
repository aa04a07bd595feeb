//! Roles of the charts: nothing by wildcard, nothing that leads to further rights, and no look into all Secrets without a reason.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::hardening::everything;

/// Roles that may list or watch Secrets, and why.
const LISTS_SECRETS: &[(&str, &str)] = &[(
    "gardenlet",
    "secrets of a control plane have names with digests and are found by their labels, in namespaces that it makes",
)];

/// Verbs by which a process could give itself further rights, or act as somebody else.
const LEADS_TO_MORE: &[&str] = &["*", "escalate", "bind", "impersonate"];

/// Resources that stand for power over nodes, pods or tokens.
const POWERFUL: &[&str] = &[
    "*",
    "nodes/proxy",
    "pods/exec",
    "pods/attach",
    "pods/portforward",
    "pods/ephemeralcontainers",
    "serviceaccounts/token",
    "roles",
    "clusterroles",
    "rolebindings",
    "clusterrolebindings",
    "validatingadmissionpolicies",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
];

fn words(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// What is wrong with a rule, and whether it looks at all Secrets.
fn judge(rule: &Value) -> (Vec<String>, bool) {
    let (groups, resources, verbs) = (
        words(&rule["apiGroups"]),
        words(&rule["resources"]),
        words(&rule["verbs"]),
    );
    let mut wrong = Vec::new();
    wrong.extend(
        groups
            .iter()
            .filter(|group| **group == "*")
            .map(|_| "all groups".to_owned()),
    );
    wrong.extend(
        verbs
            .iter()
            .filter(|verb| LEADS_TO_MORE.contains(verb))
            .map(|verb| format!("verb {verb}")),
    );
    wrong.extend(
        resources
            .iter()
            .filter(|name| POWERFUL.contains(name))
            .map(|name| format!("resource {name}")),
    );
    if rule.get("nonResourceURLs").is_some() {
        wrong.push("nonResourceURLs".to_owned());
    }
    let lists = verbs.contains(&"list") || verbs.contains(&"watch");
    (
        wrong,
        lists && groups.contains(&"") && resources.contains(&"secrets"),
    )
}

#[tokio::test]
async fn no_role_is_wider_than_it_says_and_secrets_are_listed_only_for_a_reason() {
    let mut listing = BTreeSet::new();
    let mut seen = 0;
    for (chart, objects) in everything().await {
        for role in &objects {
            if !matches!(role["kind"].as_str(), Some("Role" | "ClusterRole")) {
                continue;
            }
            let name = role["metadata"]["name"].as_str().unwrap().to_owned();
            assert!(role.get("aggregationRule").is_none(), "{chart}: {name}");
            for rule in role["rules"].as_array().unwrap() {
                let (wrong, lists_secrets) = judge(rule);
                assert_eq!(wrong, Vec::<String>::new(), "{chart}: {name}: {rule}");
                if lists_secrets {
                    listing.insert(name.clone());
                }
                seen += 1;
            }
        }
    }
    let justified: BTreeSet<String> = LISTS_SECRETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(listing, justified);
    assert!(seen >= 40, "{seen}");
}

/// The test above must be able to fail.
#[test]
fn a_rule_that_is_too_wide_is_found() {
    let rule = |group: &str, resource: &str, verb: &str| {
        judge(&serde_json::json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]}))
    };
    assert_eq!(rule("*", "pods", "get").0, ["all groups"]);
    assert_eq!(rule("", "*", "get").0, ["resource *"]);
    assert_eq!(rule("", "pods", "*").0, ["verb *"]);
    assert_eq!(rule("", "pods/exec", "create").0, ["resource pods/exec"]);
    assert_eq!(rule("", "secrets", "watch"), (Vec::new(), true));
    assert_eq!(rule("", "secrets", "get"), (Vec::new(), false));
}
