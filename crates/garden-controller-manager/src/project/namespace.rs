//! Which namespace a project has: pure decisions.

use std::collections::BTreeMap;

use api::{
    constants::{PROJECT_NAME, ROLE},
    gardencore::Project,
};
use k8s_openapi::{api::core::v1::Namespace, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::ResourceExt;

/// Whether the namespace that a project wants can be its own.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does not exist yet.
    Create,
    /// It is the project's; labels may have to be put right.
    Own,
    /// It may not be taken, and why.
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

/// The namespace as it is to be.
#[must_use]
pub fn desired_namespace(project: &Project) -> Namespace {
    let labels = BTreeMap::from([
        (PROJECT_NAME.to_owned(), project.name_any()),
        (ROLE.to_owned(), "project".to_owned()),
    ]);
    Namespace {
        metadata: ObjectMeta {
            name: Some(name_of(project)),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    }
}

/// Judges the namespace that is there. A namespace without the label of any project may be adopted only if the project
/// names it: `garden-<name>` is ours by name, and the namespace `garden` is the operators' own, which a project may name.
#[must_use]
pub fn verdict(project: &Project, found: Option<&Namespace>) -> Verdict {
    let Some(found) = found else {
        return Verdict::Create;
    };
    let name = found.name_any();
    if found.metadata.deletion_timestamp.is_some() {
        return Verdict::Refused(format!(
            "namespace {name} is being deleted; the project gets a new one after that"
        ));
    }
    match found.labels().get(PROJECT_NAME) {
        Some(owner) if *owner == project.name_any() => Verdict::Own,
        Some(owner) => Verdict::Refused(format!(
            "namespace {name} belongs to project {owner}; name another in spec.namespace"
        )),
        None if name.starts_with("kube-") || name == "default" => Verdict::Refused(format!(
            "namespace {name} is not for projects; name another in spec.namespace"
        )),
        None => Verdict::Own,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn project(namespace: Option<&str>) -> Project {
        let mut project = Project::new("dev", api::gardencore::ProjectSpec::default());
        project.spec.namespace = namespace.map(str::to_owned);
        project
    }

    fn namespace(name: &str, owner: Option<&str>) -> Namespace {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        namespace.metadata.labels = owner.map(|o| BTreeMap::from([(PROJECT_NAME.to_owned(), o.to_owned())]));
        namespace
    }

    #[test]
    fn the_name_is_made_from_the_project_unless_given() {
        assert_eq!(name_of(&project(None)), "garden-dev");
        assert_eq!(name_of(&project(Some(""))), "garden-dev");
        assert_eq!(name_of(&project(Some("garden"))), "garden");
    }

    #[test]
    fn a_namespace_of_another_project_is_not_taken() {
        assert_eq!(verdict(&project(None), None), Verdict::Create);
        assert_eq!(
            verdict(&project(None), Some(&namespace("garden-dev", Some("dev")))),
            Verdict::Own
        );
        assert_eq!(
            verdict(&project(None), Some(&namespace("garden-dev", None))),
            Verdict::Own
        );
        let Verdict::Refused(why) = verdict(&project(None), Some(&namespace("garden-dev", Some("prod"))))
        else {
            panic!("taken")
        };
        assert!(why.contains("project prod"), "{why}");
        assert!(matches!(
            verdict(
                &project(Some("kube-system")),
                Some(&namespace("kube-system", None))
            ),
            Verdict::Refused(_)
        ));
    }
}
