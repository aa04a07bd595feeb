//! The namespaces that a project takes or refuses.

#![allow(clippy::unwrap_used, clippy::panic)]

use super::*;

const OWN: &[(&str, &str)] = &[(PROJECT_NAME, "dev"), (ROLE, "project")];

fn project(namespace: Option<&str>) -> Project {
    let mut project = Project::new("dev", api::gardencore::ProjectSpec::default());
    project.metadata.uid = Some("uid-1".into());
    project.spec.namespace = namespace.map(str::to_owned);
    project
}

fn namespace(name: &str, labels: &[(&str, &str)], made_for: Option<&str>) -> Namespace {
    let text = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    namespace.metadata.labels = Some(labels.iter().map(text).collect());
    namespace.metadata.annotations =
        made_for.map(|uid| BTreeMap::from([(MADE_FOR.to_owned(), uid.to_owned())]));
    namespace
}

fn refused(found: &Namespace, words: &str) {
    let Verdict::Refused(why) = verdict(&project(None), Some(found)) else {
        panic!("taken: {found:?}")
    };
    assert!(why.contains(words), "{why}");
}

#[test]
fn the_name_is_made_from_the_project_unless_given() {
    assert_eq!(name_of(&project(None)), "garden-dev");
    assert_eq!(name_of(&project(Some(""))), "garden-dev");
    assert_eq!(name_of(&project(Some("garden"))), "garden");
}

#[test]
fn what_is_made_for_a_project_goes_with_it_and_what_is_given_stays() {
    assert_eq!(verdict(&project(None), None), Verdict::Create);
    let Verdict::Refused(why) = verdict(&project(Some("seed-later")), None) else {
        panic!("the namespace of a seed is taken")
    };
    assert!(why.contains("is for a seed"), "{why}");
    let made = desired_namespace(&project(None));
    assert_eq!(verdict(&project(None), Some(&made)), Verdict::Made);
    let given = namespace("garden-dev", OWN, None);
    assert_eq!(verdict(&project(None), Some(&given)), Verdict::Adopted);
}

#[test]
fn a_namespace_that_nobody_gave_to_the_project_is_not_taken() {
    refused(
        &namespace("garden-dev", &[], None),
        "was not given to the project",
    );
    for half in [&OWN[..1], &OWN[1..]] {
        refused(
            &namespace("garden-dev", half, None),
            "was not given to the project",
        );
    }
    refused(
        &namespace("garden-dev", &[(PROJECT_NAME, "prod")], None),
        "belongs to project prod",
    );
    for name in ["kube-system", "default", "seed-a"] {
        refused(&namespace(name, OWN, Some("uid-1")), "is not for projects");
    }
    let made = namespace("garden-dev", &[], Some("uid-1"));
    assert_eq!(verdict(&project(None), Some(&made)), Verdict::Made);
    refused(
        &namespace("garden-dev", OWN, Some("uid-0")),
        "was made for an earlier project dev",
    );
}

#[test]
fn a_project_has_one_namespace() {
    let own = namespace("garden-dev", OWN, Some("uid-1"));
    assert_eq!(obstacle(&project(None), std::slice::from_ref(&own)), None);
    let other = namespace("elsewhere", OWN, None);
    let why = obstacle(&project(None), &[own, other]).unwrap();
    assert!(
        why.contains("namespace elsewhere is labelled for project dev too"),
        "{why}"
    );
}

/// A Pod with privileges would own the node, which runs garden-controller-manager.
#[test]
fn pods_of_a_project_are_restricted() {
    assert_eq!(pod_restriction(&desired_namespace(&project(None))), None);
    let label = |level: &str| namespace("garden-dev", &[(POD_SECURITY, level)], None);
    assert_eq!(pod_restriction(&label("restricted")), None);
    let patch = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    for open in [label("privileged"), label("baseline"), namespace("x", OWN, None)] {
        assert_eq!(pod_restriction(&open), Some(patch.clone()));
    }
}

#[test]
fn finalizers_that_keep_a_namespace_are_known() {
    let judge = |deleted: Option<&str>, kind: &str, status: &str| {
        let condition = json!({"type": kind, "status": status, "message": "x/y in 1 resource instances"});
        let metadata = json!({"name": "garden-dev", "deletionTimestamp": deleted});
        let body = json!({"metadata": metadata, "status": {"conditions": [condition]}});
        let namespace: Namespace = serde_json::from_value(body).unwrap();
        remaining_finalizers(&namespace, "2026-01-01T00:00:30Z".parse().unwrap())
    };
    let (deleted, kind) = (Some("2026-01-01T00:00:00Z"), "NamespaceFinalizersRemaining");
    let known = judge(deleted, kind, "True");
    assert_eq!(known.as_deref(), Some("x/y in 1 resource instances"));
    assert_eq!(judge(deleted, kind, "False"), None);
    assert_eq!(judge(deleted, "NamespaceContentRemaining", "True"), None);
    assert_eq!(judge(None, kind, "True"), None);
}

/// Security: many long names of finalizers make the report of Kubernetes too large for etcd.
#[test]
fn a_namespace_without_a_report_is_known() {
    let metadata = json!({"name": "garden-dev", "deletionTimestamp": "2026-01-01T00:00:00Z"});
    let namespace: Namespace = serde_json::from_value(json!({"metadata": metadata})).unwrap();
    let judge = |now: &str| remaining_finalizers(&namespace, now.parse().unwrap());
    assert_eq!(judge("2026-01-01T00:00:59Z"), None);
    let why = judge("2026-01-01T00:01:00Z").unwrap();
    assert!(
        why.contains("has reported no finalizers since 2026-01-01T00:00:00Z")
            && why.contains("kubectl -n garden-dev get configmaps,secrets,serviceaccounts"),
        "{why}"
    );
}
