//! The Project of a Shoot.

use api::{constants::PROJECT_NAME, gardencore::Shoot, meta::ErrorCode};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use placement::names;
use runtime::{
    Error, Result,
    client::{Cluster, Garden},
    error::Explain as _,
};

/// The name of the Project, from the label of the Shoot's namespace. Empty where the Shoot has a technical
/// id: the id contains the name.
///
/// # Errors
/// The namespace belongs to no Project, or the garden does not answer.
pub(super) async fn name_of(garden: &Garden, shoot: &Shoot) -> Result<String> {
    if names::recorded_technical_id(shoot).is_some() {
        return Ok(String::new());
    }
    let name = shoot.namespace().unwrap_or_default();
    let found = garden
        .cluster_wide::<Namespace>()
        .get_opt(&name)
        .await
        .context(format_args!("could not read namespace {name} of the garden"))?;
    found
        .and_then(|found| found.labels().get(PROJECT_NAME).cloned())
        .ok_or_else(|| {
            Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!(
                    "namespace {name} belongs to no Project: create one with this spec.namespace, and wait until the \
                     namespace has the label {PROJECT_NAME}"
                ),
            )
        })
}
