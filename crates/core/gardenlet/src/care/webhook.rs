//! The effect of a user's webhook on the control plane: pure. Each list of a webhook is read with a bound, as
//! users write as much as the API server accepts. A list that the bound cuts counts as matching.

use runtime::bounds::{Few, FewEntries};
use serde::{Deserialize, de::IgnoredAny};

/// Longest `timeoutSeconds` with failurePolicy `Ignore` that delays no control plane for good, as in
/// Gardener.
const MOST_SECONDS: u32 = 15;
/// The same on Leases: a client that elects a leader waits 5 s for the whole renewal, including the webhook.
const MOST_SECONDS_ON_LEASES: u32 = 3;
/// Default of the API server for `timeoutSeconds`.
const DEFAULT_SECONDS: u32 = 10;
/// The label of each Namespace with the name of the Namespace.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// The fields of a configuration that are read.
#[derive(Debug, Deserialize)]
pub(super) struct SeenConfiguration {
    pub metadata: SeenName,
    #[serde(default)]
    pub webhooks: Few<SeenWebhook, 100>,
}

#[derive(Debug, Deserialize)]
pub(super) struct SeenName {
    pub name: String,
}

/// The fields of a webhook that are read.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SeenWebhook {
    name: String,
    failure_policy: Option<String>,
    timeout_seconds: Option<u32>,
    rules: Few<SeenRule, 100>,
    namespace_selector: SeenSelector,
    object_selector: SeenSelector,
    match_conditions: Few<IgnoredAny, 1>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SeenRule {
    operations: Few<String, 10>,
    api_groups: Few<String, 100>,
    resources: Few<String, 200>,
    scope: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SeenSelector {
    match_labels: FewEntries<100>,
    match_expressions: Few<SeenExpression, 100>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SeenExpression {
    key: String,
    operator: String,
    values: Few<String, 100>,
}

/// The effect of a webhook that does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// No object is concerned that the control plane needs.
    None,
    /// Renewals of Leases stop or are late.
    StopsLeaderElection,
    /// Further writes of the control plane or of nodes stop or are late, or deletions that remove a node do.
    StopsControlPlane,
}

/// Where objects are.
#[derive(Clone, Copy)]
enum ObjectScope {
    Cluster,
    Namespaces(&'static [&'static str]),
    /// A Namespace object: a namespaceSelector selects by the labels of this object.
    Namespace(&'static str),
}

const SYSTEM: ObjectScope = ObjectScope::Namespaces(&["kube-system"]);
const SYSTEM_AND_DEFAULT: ObjectScope = ObjectScope::Namespaces(&["kube-system", "default"]);

/// Leases: leaders, and heartbeats of nodes.
const LEASES: (&str, &[&str], ObjectScope) = (
    "coordination.k8s.io",
    &["leases"],
    ObjectScope::Namespaces(&["kube-system", "kube-node-lease"]),
);

/// Objects that the API server, controllers, the scheduler and kubelets write before a node can run a Pod.
const CRITICAL: &[(&str, &[&str], ObjectScope)] = &[
    (
        "",
        &[
            "configmaps",
            "pods",
            "pods/binding",
            "pods/status",
            "secrets",
            "serviceaccounts",
            "serviceaccounts/token",
        ],
        SYSTEM,
    ),
    (
        "",
        &["endpoints", "services", "services/status"],
        SYSTEM_AND_DEFAULT,
    ),
    ("", &["nodes", "nodes/status"], ObjectScope::Cluster),
    (
        "",
        &["namespaces", "namespaces/status"],
        ObjectScope::Namespace("kube-system"),
    ),
    ("discovery.k8s.io", &["endpointslices"], SYSTEM_AND_DEFAULT),
    (
        "apps",
        &[
            "controllerrevisions",
            "daemonsets",
            "daemonsets/status",
            "deployments",
            "deployments/scale",
            "deployments/status",
            "replicasets",
            "replicasets/scale",
            "replicasets/status",
        ],
        SYSTEM,
    ),
    ("networking.k8s.io", &["networkpolicies"], SYSTEM),
    (
        "rbac.authorization.k8s.io",
        &["clusterroles", "clusterrolebindings"],
        ObjectScope::Cluster,
    ),
    ("rbac.authorization.k8s.io", &["roles", "rolebindings"], SYSTEM),
    (
        "apiextensions.k8s.io",
        &["customresourcedefinitions", "customresourcedefinitions/status"],
        ObjectScope::Cluster,
    ),
    (
        "apiregistration.k8s.io",
        &["apiservices", "apiservices/status"],
        ObjectScope::Cluster,
    ),
    (
        "certificates.k8s.io",
        &[
            "certificatesigningrequests",
            "certificatesigningrequests/approval",
            "certificatesigningrequests/status",
        ],
        ObjectScope::Cluster,
    ),
    ("scheduling.k8s.io", &["priorityclasses"], ObjectScope::Cluster),
    ("storage.k8s.io", &["csinodes"], ObjectScope::Cluster),
];

/// Objects that the machine controller deletes before a node goes. A refusal delays a sleep, and
/// Pods end with the instance of their node.
const DELETED_WITH_NODES: &[(&str, &[&str], ObjectScope)] =
    &[("", &["pods"], SYSTEM), ("", &["nodes"], ObjectScope::Cluster)];

/// Operations of rules that concern the writes above.
const WRITES: &[&str] = &["*", "CREATE", "UPDATE"];
const DELETIONS: &[&str] = &["*", "DELETE"];

impl SeenWebhook {
    /// The effect while the webhook does not answer.
    pub(super) fn effect(&self) -> Effect {
        if !self.match_conditions.first.is_empty() {
            return Effect::None;
        }
        if self.is_slower_than(MOST_SECONDS_ON_LEASES) && self.matches(LEASES, WRITES) {
            return Effect::StopsLeaderElection;
        }
        let is_on_critical = || {
            CRITICAL.iter().any(|objects| self.matches(*objects, WRITES))
                || DELETED_WITH_NODES
                    .iter()
                    .any(|objects| self.matches(*objects, DELETIONS))
        };
        if self.is_slower_than(MOST_SECONDS) && is_on_critical() {
            return Effect::StopsControlPlane;
        }
        Effect::None
    }

    /// The name and the settings in messages.
    pub(super) fn describe(&self) -> String {
        format!(
            "webhook {}, failurePolicy {}, timeoutSeconds {}",
            self.name,
            self.failure_policy.as_deref().unwrap_or("Fail"),
            self.timeout_seconds.unwrap_or(DEFAULT_SECONDS)
        )
    }

    /// Whether a write can fail, or take longer than this.
    fn is_slower_than(&self, seconds: u32) -> bool {
        let is_ignored = self.failure_policy.as_deref() == Some("Ignore");
        !is_ignored || self.timeout_seconds.unwrap_or(DEFAULT_SECONDS) > seconds
    }

    fn matches(&self, (group, resources, place): (&str, &[&str], ObjectScope), operations: &[&str]) -> bool {
        let is_selected = |namespace: &&str| self.namespace_selector.selects(&[(NAMESPACE_NAME, namespace)]);
        let is_in_place = match place {
            ObjectScope::Cluster => true,
            ObjectScope::Namespaces(all) => all.iter().any(is_selected),
            ObjectScope::Namespace(name) => is_selected(&name),
        };
        // Most of these objects have no label that a user could select; a label of the suite is on those of
        // ManagedResources.
        let managed: &[(&str, &str)] = &[("resources.gardener.cloud/managed-by", "gardener")];
        let is_object = self.object_selector.selects(&[]) || self.object_selector.selects(managed);
        let is_namespaced = matches!(place, ObjectScope::Namespaces(_));
        let mut rules = self.rules.first.iter();
        let is_ruled = !self.rules.is_all
            || rules.any(|rule| {
                any(&rule.operations, |operation| operations.contains(&operation))
                    && rule.matches(group, resources, is_namespaced)
            });
        is_in_place && is_object && is_ruled
    }
}

impl SeenRule {
    fn matches(&self, group: &str, resources: &[&str], is_namespaced: bool) -> bool {
        let scope = match self.scope.as_deref() {
            None | Some("*") => true,
            Some(scope) => scope == if is_namespaced { "Namespaced" } else { "Cluster" },
        };
        scope
            && any(&self.api_groups, |ruled| ruled == "*" || ruled == group)
            && any(&self.resources, |ruled| {
                resources.iter().any(|resource| covers(ruled, resource))
            })
    }
}

/// Whether the condition holds for an element. An element that was not read counts as such an element.
fn any<const N: usize>(list: &Few<String, N>, holds: impl Fn(&str) -> bool) -> bool {
    !list.is_all || list.first.iter().any(|element| holds(element))
}

/// As the API server reads `resources` of a rule: each half, before and after the slash, may be `*`.
fn covers(ruled: &str, resource: &str) -> bool {
    let halves = |name: &str| -> (String, String) {
        let (resource, sub) = name.split_once('/').unwrap_or((name, ""));
        (resource.to_owned(), sub.to_owned())
    };
    let ((ruled, ruled_sub), (resource, sub)) = (halves(ruled), halves(resource));
    (ruled == "*" || ruled == resource) && (ruled_sub == "*" || ruled_sub == sub)
}

impl SeenSelector {
    /// Whether an object with these labels is selected.
    fn selects(&self, labels: &[(&str, &str)]) -> bool {
        let value = |key: &str| {
            labels
                .iter()
                .find(|(found, _)| *found == key)
                .map(|(_, value)| *value)
        };
        let mut required = self.match_labels.0.iter();
        let mut expressions = self.match_expressions.first.iter();
        required.all(|(key, wanted)| value(key) == Some(wanted))
            && expressions.all(|expression| expression.matches(value(&expression.key)))
    }
}

impl SeenExpression {
    fn matches(&self, value: Option<&str>) -> bool {
        let is_listed = value.is_some_and(|value| self.values.first.iter().any(|listed| listed == value));
        match self.operator.as_str() {
            "In" => is_listed || value.is_some() && !self.values.is_all,
            "NotIn" => !is_listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => true,
        }
    }
}
