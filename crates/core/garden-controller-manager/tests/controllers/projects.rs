//! Namespaces of projects.

use api::gardencore::{Project, ProjectPhase};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::{
    garden::{self, Garden, allowed},
    until,
};

/// Without the labels, the seeds of the project lose their rights, and no Shoot is created. The annotation
/// of the namespace proves that garden-controller-manager created the namespace for this Project, so policy
/// `garden-controller-manager-namespace` lets the process repair the labels.
pub async fn a_lost_label_of_a_namespace_comes_back(garden: &Garden) {
    let projects: Api<Project> = Api::all(garden.administrator());
    let namespaces: Api<Namespace> = Api::all(garden.administrator());
    let wanted = garden::project_of("faded", None);
    allowed(garden.apply(&projects, "faded", wanted).await);
    until(&projects, "faded", |project| {
        project.status.as_ref().and_then(|status| status.phase) == Some(ProjectPhase::Ready)
    })
    .await;
    let (project, role) = ("project.gardener.cloud/name", "gardener.cloud/role");
    for lost in [
        json!({(project): null}),
        json!({(role): null}),
        json!({(project): null, (role): null}),
        json!({(role): "other"}),
    ] {
        let change = json!({"metadata": {"labels": lost}});
        allowed(garden.patch(&namespaces, "garden-faded", change).await);
        until(&namespaces, "garden-faded", |namespace| {
            let label = |key: &str| namespace.labels().get(key).map(String::as_str);
            (label(project), label(role)) == (Some("faded"), Some("project"))
        })
        .await;
    }
}
