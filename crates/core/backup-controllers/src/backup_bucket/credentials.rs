//! Carries the credentials of a bucket from the garden into a Secret of the seed's namespace `garden`.

use api::{
    constants::GARDEN_NAMESPACE,
    meta::{ErrorCode, ObjectReference},
};
use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::Api;
use runtime::{
    Error, Result,
    client::{Cluster, Garden, Seed, apply},
    error::Explain as _,
};

use crate::{Context, MANAGER};

/// A Secret of the seed that holds a copy of the garden's credentials.
pub(crate) struct Credentials {
    garden: Garden,
    seed: Seed,
    name: String,
}

/// The Secret of that name.
pub(crate) fn for_secret(context: &Context, name: String) -> Credentials {
    Credentials {
        garden: context.garden.clone(),
        seed: context.seed.clone(),
        name,
    }
}

impl Credentials {
    /// Name of the copy in the seed's namespace `garden`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn copies(&self) -> Api<Secret> {
        self.seed.namespaced(GARDEN_NAMESPACE)
    }

    /// Writes the copy if the original differs; returns whether the copy changed.
    pub(crate) async fn carry(&self, from: Option<&ObjectReference>) -> Result<bool> {
        let (namespace, name) = location(from)?;
        let secrets: Api<Secret> = self.garden.namespaced(namespace);
        let original = secrets.get_opt(name).await.context(format_args!(
            "could not read Secret {namespace}/{name} of the garden"
        ))?;
        let Some(original) = original else {
            return Err(Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!(
                    "there is no Secret {namespace}/{name} in the garden: create it with the bucket's credentials"
                ),
            ));
        };
        let copies = self.copies();
        let doing = format!("could not read Secret {} of the seed", self.name);
        let copy = copies.get_opt(&self.name).await.context(doing)?;
        if copy.is_some_and(|copy| copy.data == original.data) {
            return Ok(false);
        }
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(GARDEN_NAMESPACE.to_owned()),
                ..ObjectMeta::default()
            },
            data: original.data,
            ..Secret::default()
        };
        MANAGER.apply(&copies, &secret).await?;
        Ok(true)
    }

    /// Requests the deletion of the copy. A finalizer of a provider that is gone must not keep credentials in
    /// the seed for ever. Each provider removes its own finalizer, so this call does not wait.
    pub(crate) async fn remove(&self) -> Result<()> {
        apply::delete(&self.copies(), &self.name).await
    }
}

/// Namespace and name of the original.
fn location(from: Option<&ObjectReference>) -> Result<(&str, &str)> {
    let problem = |why: String| Err(Error::config(ErrorCode::ErrConfigurationProblem, why));
    let Some(from) = from else {
        return problem(
            "the BackupBucket has no credentialsRef: name the Secret with the bucket's credentials".into(),
        );
    };
    if from.kind.as_deref().is_some_and(|kind| kind != "Secret") {
        return problem(format!(
            "credentialsRef names a {}, but only a Secret can be used",
            from.kind.as_deref().unwrap_or_default()
        ));
    }
    match (from.namespace.as_deref(), from.name.as_deref()) {
        (Some(namespace), Some(name)) => Ok((namespace, name)),
        _ => problem("credentialsRef needs namespace and name of a Secret".into()),
    }
}
