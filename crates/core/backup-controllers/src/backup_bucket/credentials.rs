//! Carries the credentials of a bucket from the garden into a Secret of the seed's namespace `garden`.

use std::time::Duration;

use api::{constants::GARDEN_NAMESPACE, gardencore::BackupBucket, meta::ErrorCode};
use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Api, ResourceExt as _};
use placement::credentials::{own_secret, seed_namespace};
use runtime::{
    Error, Result,
    client::{Cluster, Garden, Seed, apply},
    error::Explain as _,
};

use crate::{Context, MANAGER};

/// Requeue interval while garden-controller-manager has not granted the right to the Secret yet. The right
/// follows within a second.
const WAIT_FOR_RIGHT: Duration = Duration::from_secs(1);

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

    /// Writes the copy if the original differs; returns whether the copy changed. Without the right to the
    /// original, an earlier copy stays in use: an entry of an earlier release may outlive its right, and no
    /// right exists in the namespace of a Seed that is being deleted.
    pub(crate) async fn carry(&self, bucket: &BackupBucket) -> Result<bool> {
        let (namespace, name) = location(bucket)?;
        let secrets: Api<Secret> = self.garden.namespaced(&namespace);
        let copies = self.copies();
        let doing = format!("could not read Secret {} of the seed", self.name);
        let copy = copies.get_opt(&self.name).await.context(doing)?;
        let original = match secrets.get_opt(&name).await {
            Err(kube::Error::Api(status)) if status.is_forbidden() => {
                tracing::info!(
                    copy = self.name,
                    namespace,
                    name,
                    "this seed has no right to the Secret of the garden"
                );
                return without_right(copy.is_some(), &namespace, &name);
            }
            other => other.context(format_args!(
                "could not read Secret {namespace}/{name} of the garden"
            ))?,
        };
        let Some(original) = original else {
            return Err(Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!(
                    "there is no Secret {namespace}/{name} in the garden: create it with the bucket's credentials"
                ),
            ));
        };
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

    /// The sentence about an earlier copy that stays in use, if the right to the original has ended.
    pub(crate) async fn ended_right(&self, bucket: &BackupBucket) -> Option<String> {
        let (namespace, name) = location(bucket).ok()?;
        let secrets: Api<Secret> = self.garden.namespaced(&namespace);
        match secrets.get_opt(&name).await {
            Err(kube::Error::Api(status)) if status.is_forbidden() => {
                Some(earlier_copy(&self.name, &namespace, &name))
            }
            _ => None,
        }
    }

    /// Requests the deletion of the copy. A finalizer of a provider that is gone must not keep credentials in
    /// the seed for ever. Each provider removes its own finalizer, so this call does not wait.
    pub(crate) async fn remove(&self) -> Result<()> {
        apply::delete(&self.copies(), &self.name).await
    }
}

/// The outcome without the right to the original: an earlier copy stays in use, and a missing copy waits.
fn without_right(has_copy: bool, namespace: &str, name: &str) -> Result<bool> {
    if has_copy {
        return Ok(false);
    }
    Err(Error::not_ready(
        WAIT_FOR_RIGHT,
        format!(
            "garden-controller-manager has not given this seed the right to Secret {namespace}/{name} of the garden yet. If it \
             stays so: a seed reads the credentials of its own bucket, and of the bucket of each BackupEntry whose spec.seedName is \
             the seed"
        ),
    ))
}

fn earlier_copy(copy: &str, namespace: &str, name: &str) -> String {
    format!(
        "The deletion uses an earlier copy of the credentials, as the right to Secret {namespace}/{name} of the garden has ended: if \
         the credentials have changed since, write them into Secret {GARDEN_NAMESPACE}/{copy} of the seed"
    )
}

/// Namespace and name of the original. The gardenlet of the bucket's seed wrote the reference, so only the
/// namespace of that seed counts.
fn location(bucket: &BackupBucket) -> Result<(String, String)> {
    let problem = |why: String| Error::config(ErrorCode::ErrConfigurationProblem, why);
    let name = bucket.name_any();
    let Some(seed) = &bucket.spec.seed_name else {
        return Err(problem(format!(
            "BackupBucket {name} has no spec.seedName: only buckets of seeds can be used"
        )));
    };
    let Some(reference) = &bucket.spec.credentials_ref else {
        return Err(problem(format!(
            "BackupBucket {name} has no credentialsRef: name the Secret with the bucket's credentials"
        )));
    };
    let secret = own_secret(seed, reference);
    let secret = secret.map_err(|why| problem(format!("BackupBucket {name}: {why}")))?;
    Ok((seed_namespace(seed), secret.to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn located(spec: &Value) -> Result<(String, String), String> {
        let mut body = json!({"metadata": {"name": "b"}, "spec": {"provider": {"type": "t", "region": "r"}}});
        for (field, value) in spec.as_object().unwrap() {
            body["spec"][field] = value.clone();
        }
        location(&serde_json::from_value(body).unwrap()).map_err(|error| error.to_string())
    }

    /// A gardenlet writes the reference, and copies the Secret into its seed.
    #[test]
    fn a_bucket_names_credentials_of_its_own_seed_alone() {
        let reference = |namespace: &str| json!({"kind": "Secret", "namespace": namespace, "name": "s"});
        let own = located(&json!({"seedName": "a", "credentialsRef": reference("seed-a")}));
        assert_eq!(own.unwrap(), ("seed-a".to_owned(), "s".to_owned()));
        for (refused, words) in [
            (
                json!({"seedName": "a", "credentialsRef": reference("garden")}),
                "copy the Secret to namespace seed-a",
            ),
            (
                json!({"seedName": "a", "credentialsRef": reference("seed-b")}),
                "refers to Secret seed-b/s",
            ),
            (json!({"seedName": "a"}), "has no credentialsRef"),
            (
                json!({"credentialsRef": reference("seed-a")}),
                "has no spec.seedName",
            ),
        ] {
            let why = located(&refused).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    /// An entry of an earlier release may outlive the right to the bucket of a former seed.
    #[test]
    fn an_earlier_copy_stays_in_use_without_the_right_and_a_missing_copy_waits() {
        assert!(matches!(without_right(true, "seed-a", "backup"), Ok(false)));
        let waits = without_right(false, "seed-a", "backup").unwrap_err();
        assert!(matches!(waits, Error::NotReady { .. }), "{waits}");
        assert!(
            waits.to_string().contains("the right to Secret seed-a/backup"),
            "{waits}"
        );
    }

    #[test]
    fn the_sentence_about_an_earlier_copy_names_both_secrets() {
        let told = earlier_copy("entry-source-e", "seed-a", "backup");
        assert!(
            told.contains("the right to Secret seed-a/backup of the garden has ended"),
            "{told}"
        );
        assert!(
            told.ends_with("write them into Secret garden/entry-source-e of the seed"),
            "{told}"
        );
    }
}
