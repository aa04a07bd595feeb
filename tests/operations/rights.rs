//! Roles of the charts: no wildcard, no verb that leads to further rights, and no read of all Secrets without
//! a reason.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::hardening::everything;
use crate::programs::Desk;

/// Roles that may list or watch Secrets, and why.
const LISTS_SECRETS: &[(&str, &str)] = &[
    (
        "gardenlet",
        "secrets of a control plane have names with digests and are found by their labels, in namespaces that it makes",
    ),
    (
        "provider-aws",
        "Secrets of former machine classes are found by their label, in the namespaces of shoots",
    ),
    (
        "provider-local",
        "those of machine classes that are not wanted any more are found by their label, in the namespaces of shoots",
    ),
    (
        "resource-manager",
        "manifests and the way into each shoot lie in Secrets of any name; it watches their metadata, and keeps Secrets for others",
    ),
];

/// Verbs by which a process could gain further rights, or act as a different user.
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

/// Roles that may write roles, and why. Such a role can only grant rights that the role has. The role with
/// `escalate` and `bind` grants rights to Secrets that the role does not have.
const WRITES_ROLES: &[(&str, &str, &[&str])] = &[
    (
        "garden-controller-manager",
        "RBAC limits reads by ClusterRoles that name objects, one for each seed and project; policy garden-controller-manager-role bounds the grants",
        &[
            "resource clusterroles",
            "resource rolebindings",
            "verb escalate",
            "verb bind",
        ],
    ),
    (
        "provider-aws",
        "the machine-controller-manager of a shoot has an account and a Role in the namespace of the shoot",
        &["resource roles", "resource rolebindings"],
    ),
    (
        "provider-local",
        "the machine-controller-manager of a shoot has an account and a Role of its own in the shoot's namespace",
        &["resource roles", "resource rolebindings"],
    ),
];

fn words(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// The faults of a rule, and whether the rule reads all Secrets.
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
                let (mut wrong, lists_secrets) = judge(rule);
                let justified = WRITES_ROLES.iter().filter(|(role, ..)| *role == name);
                for (.., resources) in justified {
                    wrong.retain(|wrong| !resources.contains(&wrong.as_str()));
                }
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

/// Charts of extensions need a single role, over roles only, and only on request.
#[tokio::test]
async fn power_over_all_roles_is_only_where_it_is_asked_for() {
    let desk = Desk::new().unwrap();
    let without = rules(&desk.rendered("seed", &[]).await.unwrap());
    let asked = ["--set", "resource-manager.seedObjects.roles=true"];
    let with = rules(&desk.rendered("seed", &asked).await.unwrap());
    let added: Vec<&(String, String)> = with.difference(&without).collect();
    assert_eq!(added.len(), 2, "{added:?}");
    for (role, rule) in added {
        let rule: Value = serde_json::from_str(rule).unwrap();
        assert_eq!(role, "resource-manager-roles");
        assert_eq!(words(&rule["apiGroups"]), ["rbac.authorization.k8s.io"]);
    }
}

/// Each rule as text, with the name of the role.
fn rules(objects: &[Value]) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for object in objects {
        for rule in object["rules"].as_array().into_iter().flatten() {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            found.insert((name.to_owned(), rule.to_string()));
        }
    }
    found
}

/// The first test must be able to fail.
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
