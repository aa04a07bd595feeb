//! The namespace of a project: pure decisions.

use std::collections::BTreeMap;

use api::{
    constants::{PROJECT_NAME, ROLE},
    gardencore::Project,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::core::v1::{Namespace, NamespaceCondition},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt;
use placement::credentials::seed_of_namespace;
use serde_json::{Value, json};

/// Annotation of a namespace that was created for a project: the Project's uid. Only a namespace with this
/// annotation is deleted together with the Project.
pub const MADE_FOR: &str = "project.gardener.cloud/made-for-uid";
/// The label [`ROLE`] of a project's namespace.
const PROJECT_ROLE: &str = "project";
/// Label of a namespace: the Pod Security Standard that each Pod must meet. The nodes of the garden run
/// garden-controller-manager, and perhaps the API server. A Pod of a member must not reach these nodes.
const POD_SECURITY: &str = "pod-security.kubernetes.io/enforce";
/// The strictest standard: no privileges, no host namespaces, no volumes of the host. Policy
/// `garden-controller-manager-namespace` lets this process write no other value.
const RESTRICTED: &str = "restricted";
/// Condition of a namespace in deletion: objects with finalizers are left.
const FINALIZERS_REMAINING: &str = "NamespaceFinalizersRemaining";
/// Kubernetes reports within seconds what keeps a namespace in deletion.
const REPORTED_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// Whether a project may use the wanted namespace.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The namespace does not exist yet.
    Create,
    /// The namespace was created for the project, and is deleted with the project. Lost labels are restored.
    /// The proof is the annotation [`MADE_FOR`]: policy `garden-controller-manager-namespace` lets this
    /// process write the annotation at the creation alone.
    Made,
    /// An operator assigned the namespace to the project by labels. The namespace stays when the project is
    /// deleted.
    Adopted,
    /// The namespace may not be taken, with the reason.
    Refused(String),
}

/// The name of the namespace.
#[must_use]
pub fn name_of(project: &Project) -> String {
    project
        .spec
        .namespace
        .clone()
        .filter(|n| !n.is_empty())
        .unwrap_or_else(|| format!("garden-{}", project.name_any()))
}

/// The reason why objects with finalizers keep a namespace in deletion. etcd refuses the report of Kubernetes
/// where the names of the finalizers are too long together, so a namespace without a report is named, too.
#[must_use]
pub(super) fn remaining_finalizers(namespace: &Namespace, now: Timestamp) -> Option<String> {
    let deleted = namespace.metadata.deletion_timestamp.as_ref()?;
    let status = namespace.status.as_ref();
    let mut conditions = status
        .and_then(|status| status.conditions.as_ref())
        .into_iter()
        .flatten();
    let is_report = |condition: &&NamespaceCondition| {
        condition.type_ == FINALIZERS_REMAINING && condition.status == "True"
    };
    if let Some(remaining) = conditions.find(is_report) {
        return remaining.message.clone();
    }
    let name = namespace.name_any();
    let is_late = now.duration_since(deleted.0) >= REPORTED_WITHIN;
    is_late.then(|| {
        format!(
            "Kubernetes has reported no finalizers since {}; list the finalizers by kubectl -n {name} get \
             configmaps,secrets,serviceaccounts -o custom-columns=KIND:.kind,NAME:.metadata.name,FINALIZERS:.metadata.finalizers",
            deleted.0
        )
    })
}

/// The namespace to create for a project without a namespace. Users of a project cannot write namespaces: the
/// labels decide the names of the project's shoots on their seeds.
#[must_use]
pub fn desired_namespace(project: &Project) -> Namespace {
    let labels = BTreeMap::from([
        (PROJECT_NAME.to_owned(), project.name_any()),
        (ROLE.to_owned(), PROJECT_ROLE.to_owned()),
        (POD_SECURITY.to_owned(), RESTRICTED.to_owned()),
    ]);
    let mark = BTreeMap::from([(MADE_FOR.to_owned(), project.uid().unwrap_or_default())]);
    Namespace {
        metadata: ObjectMeta {
            name: Some(name_of(project)),
            labels: Some(labels),
            annotations: Some(mark),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    }
}

/// The merge patch that restricts the Pods of a namespace, if the namespace needs the patch.
#[must_use]
pub fn pod_restriction(found: &Namespace) -> Option<Value> {
    let present = found.labels().get(POD_SECURITY);
    (present.map(String::as_str) != Some(RESTRICTED))
        .then(|| json!({"metadata": {"labels": {POD_SECURITY: RESTRICTED}}}))
}

/// Judges the existing namespace. Only an operator labels namespaces, and a namespace without the labels is
/// not taken. Otherwise a user who may create a Project could take any namespace, and have the namespace
/// deleted with the Project.
#[must_use]
pub fn verdict(project: &Project, found: Option<&Namespace>) -> Verdict {
    let Some(found) = found else {
        let name = name_of(project);
        // The credentials of a seed lie in the namespace of this name, where no member may read.
        return if seed_of_namespace(&name).is_some() {
            Verdict::Refused(format!(
                "namespace {name} is for a seed; name another in spec.namespace"
            ))
        } else {
            Verdict::Create
        };
    };
    let (name, own) = (found.name_any(), project.name_any());
    if found.metadata.deletion_timestamp.is_some() {
        return Verdict::Refused(format!(
            "namespace {name} is being deleted; the project gets a new one after that"
        ));
    }
    if let Some(owner) = found.labels().get(PROJECT_NAME).filter(|owner| **owner != own) {
        return Verdict::Refused(format!(
            "namespace {name} belongs to project {owner}; name another in spec.namespace"
        ));
    }
    // Policy garden-controller-manager-namespace has the same list.
    if name.starts_with("kube-") || name == "default" || seed_of_namespace(&name).is_some() {
        return Verdict::Refused(format!(
            "namespace {name} is not for projects; name another in spec.namespace"
        ));
    }
    match found.annotations().get(MADE_FOR) {
        Some(uid) if Some(uid) == project.uid().as_ref() => return Verdict::Made,
        Some(_) => {
            return Verdict::Refused(format!(
                "namespace {name} was made for an earlier project {own} and may hold what is its: an operator looks at it, and \
                 gives it to this project by taking annotation {MADE_FOR} away"
            ));
        }
        None => {}
    }
    let is_given = found.labels().contains_key(PROJECT_NAME)
        && found.labels().get(ROLE).is_some_and(|role| role == PROJECT_ROLE);
    if is_given {
        Verdict::Adopted
    } else {
        Verdict::Refused(format!(
            "namespace {name} exists and was not given to the project: name another in spec.namespace, or let an operator \
             label it with {ROLE}={PROJECT_ROLE} and {PROJECT_NAME}={own}"
        ))
    }
}

/// Why a project cannot use its own namespace: a second namespace has the project's label, and shoots of the
/// same name in both would have the same name on their seeds.
#[must_use]
pub fn obstacle(project: &Project, labelled: &[Namespace]) -> Option<String> {
    let (own, name) = (name_of(project), project.name_any());
    let other = labelled
        .iter()
        .map(ResourceExt::name_any)
        .find(|other| *other != own)?;
    Some(format!(
        "namespace {other} is labelled for project {name} too, whose namespace is {own}: a project has one namespace; let an \
         operator take label {PROJECT_NAME} away from the other"
    ))
}

#[cfg(test)]
#[path = "namespace_tests.rs"]
mod tests;
