//! Namespaces of projects, and their bounds.

use std::collections::BTreeSet;

use api::gardencore::{Project, ProjectPhase};
use garden_controller_manager::config::KUBERNETES_RESOURCES;
use k8s_openapi::api::{
    admissionregistration::v1::ValidatingAdmissionPolicy,
    core::v1::{ConfigMap, Namespace, Pod, ResourceQuota, Secret, ServiceAccount},
    events::v1::Event,
    rbac::v1::{ClusterRole, PolicyRule},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
    core::ApiResource,
    discovery::{ApiGroup, Discovery, Scope, verbs},
};
use serde_json::{Value, json};
use testkit::eventually;

use crate::{
    SOON,
    garden::{self, Garden, allowed, refused},
    gone, until,
};

/// Label of a namespace: the standard that each Pod must meet.
const POD_SECURITY: &str = "pod-security.kubernetes.io/enforce";

async fn is_ready(projects: &Api<Project>, name: &str) {
    until(projects, name, |project| {
        project.status.as_ref().and_then(|status| status.phase) == Some(ProjectPhase::Ready)
    })
    .await;
}

/// A Pod in the node of garden-controller-manager with these fields of the container and the Pod.
fn pod(name: &str, container: &Value, spec: &Value) -> Pod {
    let mut object = json!({"metadata": {"name": name}, "spec": spec});
    let mut wanted = json!({"name": "x", "image": "busybox"});
    wanted["securityContext"] = container.clone();
    object["spec"]["containers"] = json!([wanted]);
    serde_json::from_value(object).unwrap()
}

/// Role `admin` of Kubernetes may create Pods. A Pod with privileges would read the tokens and keys of the
/// node.
pub async fn a_member_runs_no_pod_in_the_garden(garden: &Garden) {
    let projects: Api<Project> = Api::all(garden.administrator());
    let wanted = garden::project_of("podless", None);
    allowed(garden.apply(&projects, "podless", wanted).await);
    is_ready(&projects, "podless").await;
    let member = garden.member("garden-podless").await.unwrap();
    // The controllers of Kubernetes have made the account of Pods, and have counted.
    let accounts: Api<ServiceAccount> = garden.admin("garden-podless");
    until(&accounts, "default", |_| true).await;
    let quotas: Api<ResourceQuota> = garden.admin("garden-podless");
    until(&quotas, "gardener", |quota| {
        let used = quota.status.as_ref().and_then(|status| status.used.as_ref());
        used.is_some_and(|used| used.contains_key("pods") && used.contains_key("count/configmaps"))
    })
    .await;
    let pods: Api<Pod> = Api::namespaced(member.clone(), "garden-podless");
    let privileged = pod(
        "privileged",
        &json!({"privileged": true}),
        &json!({"hostPID": true, "volumes": [{"name": "r", "hostPath": {"path": "/"}}]}),
    );
    let words = "violates PodSecurity \"restricted:latest\"";
    garden::until_refused(words, || garden::try_create(&pods, privileged.clone())).await;
    let params = PostParams::default();
    refused(pods.create(&params, &privileged).await.map(drop), words);
    let harmless = pod(
        "harmless",
        &json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}),
        &json!({"securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}}}),
    );
    let words = "exceeded quota: gardener";
    garden::until_refused(words, || garden::try_create(&pods, harmless.clone())).await;
    refused(pods.create(&params, &harmless).await.map(drop), words);

    // The etcd of the garden has room for all projects. One of three ConfigMaps has the authority.
    let configs: Api<ConfigMap> = Api::namespaced(member, "garden-podless");
    let config = |number: usize| -> ConfigMap {
        serde_json::from_value(json!({"metadata": {"name": format!("c{number}")}})).unwrap()
    };
    for number in 0..3 {
        let _until_refused = configs.create(&params, &config(number)).await;
    }
    refused(configs.create(&params, &config(3)).await.map(drop), words);
}

/// A new release of Kubernetes may let members create a further kind. Without a bound, a member fills the
/// etcd of the garden with objects of this kind.
pub async fn each_kind_that_members_create_is_bounded(garden: &Garden) {
    let rules = rules_of_members(garden).await;
    let discovery = Discovery::new(garden.administrator()).run().await.unwrap();
    let kinds = discovery.groups().flat_map(ApiGroup::recommended_resources);
    // A kind that cannot be listed is not stored, such as LocalSubjectAccessReview.
    let stored = kinds.filter(|(_, capabilities)| {
        capabilities.scope == Scope::Namespaced && capabilities.supports_operation(verbs::LIST)
    });
    let created: Vec<_> = stored
        .map(|(kind, _)| kind)
        .filter(|kind| rules.iter().any(|rule| is_created(rule, kind)))
        .collect();
    let names: BTreeSet<_> = created.iter().map(|kind| kind.plural.as_str()).collect();
    for known in ["configmaps", "deployments", "rolebindings"] {
        assert!(names.contains(known), "role admin creates {known}: {names:?}");
    }

    let sizes = groups_with_a_bound_of_size(garden).await;
    for kind in created {
        let (group, plural) = (&kind.group, &kind.plural);
        assert!(
            sizes.contains(group),
            "add group {group:?} of {plural} to policy project-object-size"
        );
        // Events expire after an hour, and no quota counts Events.
        if plural == "events" {
            continue;
        }
        let count = if group.is_empty() {
            format!("count/{plural}")
        } else {
            format!("count/{plural}.{group}")
        };
        let is_bounded = |name: &&str| *name == count || group.is_empty() && *name == plural;
        assert!(
            KUBERNETES_RESOURCES.iter().any(is_bounded),
            "role admin of Kubernetes creates {plural}: add {count} to KUBERNETES_RESOURCES, to policy \
             garden-controller-manager-quota and to projectQuotas"
        );
    }
}

/// The rules of role `admin` of Kubernetes, which kube-controller-manager fills from further roles.
async fn rules_of_members(garden: &Garden) -> Vec<PolicyRule> {
    let cluster_roles: Api<ClusterRole> = Api::all(garden.administrator());
    let mut expected = Vec::new();
    for part in ["system:aggregate-to-admin", "system:aggregate-to-edit"] {
        expected.extend(cluster_roles.get(part).await.unwrap().rules.unwrap_or_default());
    }
    let admin = until(&cluster_roles, "admin", |admin| {
        let rules = admin.rules.as_deref().unwrap_or_default();
        expected.iter().all(|rule| rules.contains(rule))
    })
    .await;
    admin.rules.unwrap_or_default()
}

fn is_created(rule: &PolicyRule, kind: &ApiResource) -> bool {
    let names = |list: Option<&Vec<String>>, name: &str| {
        list.is_some_and(|list| list.iter().any(|item| item == name || item == "*"))
    };
    names(Some(&rule.verbs), "create")
        && names(rule.api_groups.as_ref(), &kind.group)
        && names(rule.resources.as_ref(), &kind.plural)
}

/// The groups with objects whose size policy `project-object-size` bounds.
async fn groups_with_a_bound_of_size(garden: &Garden) -> BTreeSet<String> {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(garden.administrator());
    let policy = policies.get("project-object-size").await.unwrap();
    let constraints = policy.spec.unwrap().match_constraints.unwrap();
    let rules = constraints.resource_rules.unwrap_or_default();
    let groups = rules.into_iter().filter_map(|rule| rule.api_groups);
    groups.flatten().collect()
}

/// An operator assigns a namespace that exists.
pub async fn pods_of_an_assigned_namespace_are_restricted(garden: &Garden) {
    let namespaces: Api<Namespace> = Api::all(garden.administrator());
    let labels = json!({"project.gardener.cloud/name": "assigned", "gardener.cloud/role": "project", POD_SECURITY: "privileged"});
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "assigned", "labels": labels}});
    garden.bring(&namespace).await.unwrap();
    let projects: Api<Project> = Api::all(garden.administrator());
    let wanted = garden::project_of("assigned", Some("assigned"));
    allowed(garden.apply(&projects, "assigned", wanted).await);
    for change in [json!({}), json!({"metadata": {"labels": {POD_SECURITY: null}}})] {
        allowed(garden.patch(&namespaces, "assigned", change).await);
        until(&namespaces, "assigned", |namespace| {
            let level = namespace.labels().get(POD_SECURITY);
            level.map(String::as_str) == Some("restricted")
        })
        .await;
    }
}

/// Without the labels, the seeds of the project lose their rights, and no Shoot is created. The annotation
/// of the namespace proves that garden-controller-manager created the namespace for this Project, so policy
/// `garden-controller-manager-namespace` lets the process repair the labels.
pub async fn a_lost_label_of_a_namespace_comes_back(garden: &Garden) {
    let projects: Api<Project> = Api::all(garden.administrator());
    let namespaces: Api<Namespace> = Api::all(garden.administrator());
    let wanted = garden::project_of("faded", None);
    allowed(garden.apply(&projects, "faded", wanted).await);
    is_ready(&projects, "faded").await;
    let (project, role) = ("project.gardener.cloud/name", "gardener.cloud/role");
    for lost in [
        json!({(project): null}),
        json!({(role): null}),
        json!({(project): null, (role): null}),
        json!({(role): "other"}),
        json!({POD_SECURITY: null}),
        json!({POD_SECURITY: "privileged"}),
    ] {
        let change = json!({"metadata": {"labels": lost}});
        allowed(garden.patch(&namespaces, "garden-faded", change).await);
        until(&namespaces, "garden-faded", |namespace| {
            let label = |key: &str| namespace.labels().get(key).map(String::as_str);
            (label(project), label(role)) == (Some("faded"), Some("project"))
                && label(POD_SECURITY) == Some("restricted")
        })
        .await;
    }
}

/// The gardenlet of a seed reads each Secret of namespace `seed-<name>`. So members of a project must write
/// nothing there, neither before the Seed is registered nor after an operator has labelled the namespace.
pub async fn no_project_gets_the_namespace_of_a_seed(garden: &Garden) {
    let projects: Api<Project> = Api::all(garden.administrator());
    let namespaces: Api<Namespace> = Api::all(garden.administrator());
    let phase = |wanted| {
        move |project: &Project| project.status.as_ref().and_then(|status| status.phase) == Some(wanted)
    };
    let (project, role) = ("project.gardener.cloud/name", "gardener.cloud/role");
    let wanted = garden::project_of("early-bird", Some("seed-hatchery"));
    allowed(garden.apply(&projects, "early-bird", wanted).await);
    until(&projects, "early-bird", phase(ProjectPhase::Failed)).await;
    assert!(namespaces.get_opt("seed-hatchery").await.unwrap().is_none());

    garden.bring(&garden::seed("hatchery")).await.unwrap();
    let of_seed = until(&namespaces, "seed-hatchery", |_| true).await;
    assert_eq!(of_seed.labels()[role], "seed");
    assert!(!of_seed.labels().contains_key(project));

    let labels = json!({(project): "late-bird", (role): "project"});
    let metadata = json!({"name": "seed-orchard", "labels": labels});
    let labelled = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    garden.bring(&labelled).await.unwrap();
    let wanted = garden::project_of("late-bird", Some("seed-orchard"));
    allowed(garden.apply(&projects, "late-bird", wanted).await);
    until(&projects, "late-bird", phase(ProjectPhase::Failed)).await;
    let quotas: Api<ResourceQuota> = garden.admin("seed-orchard");
    assert!(quotas.get_opt("gardener").await.unwrap().is_none());
}

/// A member or a tool has set the finalizer. Without a report, the Project stays for no visible reason.
pub async fn a_finalizer_that_keeps_a_deleted_project_is_reported(garden: &Garden) {
    let projects: Api<Project> = Api::all(garden.administrator());
    let wanted = garden::project_of("tenacious", None);
    allowed(garden.apply(&projects, "tenacious", wanted).await);
    is_ready(&projects, "tenacious").await;
    let secrets: Api<Secret> = garden.admin("garden-tenacious");
    let metadata = json!({"name": "kept", "finalizers": ["example.org/tenacious"]});
    let secret: Secret = serde_json::from_value(json!({"metadata": metadata})).unwrap();
    let created = secrets.create(&PostParams::default(), &secret).await;
    allowed(created.map(drop));
    let deleted = projects.delete("tenacious", &DeleteParams::default()).await;
    allowed(deleted.map(drop));

    let events: Api<Event> = garden.admin("default");
    eventually("the finalizer is reported", SOON, || async {
        let all = events.list(&ListParams::default()).await;
        let all = all.map_err(|error| error.to_string())?;
        let is_report = |event: &Event| {
            event.reason.as_deref() == Some("ProjectInUse")
                && event
                    .note
                    .as_deref()
                    .is_some_and(|note| note.contains("example.org/tenacious"))
        };
        all.items
            .iter()
            .any(is_report)
            .then_some(())
            .ok_or_else(|| "no Event ProjectInUse".to_owned())
    })
    .await
    .unwrap();
    let released = json!({"metadata": {"finalizers": null}});
    allowed(garden.patch(&secrets, "kept", released).await);
    gone(&projects, "tenacious").await;
}
