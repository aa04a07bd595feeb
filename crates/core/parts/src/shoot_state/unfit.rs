//! State that no other seed can restore. A planned move is refused because of such state before the control
//! plane stops. The ShootState leaves the state out, so that a single object never keeps the remaining state
//! from being saved.

use api::meta::CrossVersionObjectReference;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use runtime::{
    Result,
    client::{Cluster, Seed},
    error::Explain,
};

use super::carried::{KINDS, is_kind_of_object, why_not_made, why_not_referenced};
use crate::configuration_problem;

/// Handling of such state while the shoot's namespace is collected.
#[derive(Debug)]
pub(super) enum Unfit {
    /// The first such object is an error: a move that has not begun yet would lose the state.
    Refused,
    /// All such objects are left out, and named here.
    LeftOut(Vec<String>),
}

impl Unfit {
    /// Reports an object: an error, or a name in the list.
    pub(super) fn leave_out(&mut self, what: &str, why: &str) -> Result<()> {
        let told = format!("{what} cannot be carried to another seed: {why}");
        match self {
            Self::Refused => Err(configuration_problem(told)),
            Self::LeftOut(all) => {
                all.push(told);
                Ok(())
            }
        }
    }

    /// The names of the left-out objects, in the order of the collection.
    pub(super) fn into_left_out(self) -> Vec<String> {
        match self {
            Self::Refused => Vec::new(),
            Self::LeftOut(all) => all,
        }
    }
}

/// The reason why the state of this kind cannot be carried, if there is a reason.
pub(super) fn why_not_kind(kind: &str) -> Option<&'static str> {
    (!KINDS.contains(&kind)).then_some(
        "no seed restores states of this kind (remedy: keep the state in status.state of an object of kind Extension, or remove it)",
    )
}

/// The reason why a Secret with the label `persist=true` cannot be carried, if there is a reason.
pub(super) fn why_not_secret(secret: &Secret) -> Option<String> {
    why_not_made(secret)
        .map(|why| format!("{why} (remedy: remove the label persist=true, or change the Secret)"))
}

/// The reason why an object cannot be carried that a state refers to, if there is a reason. A Secret is read,
/// as the reason may be the type. The collection reports a missing object.
pub(super) async fn why_not_reference(
    seed: &Seed,
    namespace: &str,
    target: &CrossVersionObjectReference,
) -> Result<Option<String>> {
    if !is_kind_of_object(target.api_version.as_deref(), &target.kind) {
        let why = "only Secrets and ConfigMaps are carried (remedy: keep the content in a Secret, or remove the reference)";
        return Ok(Some(why.to_owned()));
    }
    if target.kind != "Secret" {
        return Ok(None);
    }
    let found = seed.namespaced::<Secret>(namespace).get_opt(&target.name).await;
    let found = found.context(format_args!("could not read Secret {}", target.name))?;
    let why = found.as_ref().and_then(why_not_referenced);
    Ok(why.map(|why| format!("{why} (remedy: refer to a Secret of type Opaque, or remove the reference)")))
}

/// The name of a Secret in messages.
pub(super) fn describe_secret(secret: &Secret) -> String {
    format!("Secret {}", secret.name_any())
}
