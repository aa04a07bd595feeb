//! Whether the credentials exist with which the destination reads the backups of the source. A takeover
//! without these credentials would wait after the hand-over, and no earlier seed could go on.
//!
//! Guarantee: this process reads no Secret, and has no right to do so. The API server answers the dry run of
//! a creation with `AlreadyExists` if a Secret has the name, and with success otherwise.

use api::gardencore::BackupBucket;
use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Api, ResourceExt as _, api::PostParams};
use placement::credentials::{own_secret, seed_namespace};
use runtime::{Result, client::Cluster, error::Explain as _};

use crate::{Context, MANAGER, shoot_migration::Verdict};

/// The reason of a takeover whose destination could not read the backups.
const SOURCE_CREDENTIALS_NOT_FOUND: &str = "SourceCredentialsNotFound";

/// The obstacle, if the Secret of the bucket is known not to exist. A bucket without a valid reference is no
/// obstacle here: garden-controller-manager creates no such bucket.
pub(super) async fn obstacle(context: &Context, bucket: Option<&BackupBucket>) -> Result<Option<Verdict>> {
    let Some((bucket, seed, secret)) = bucket.and_then(reference) else {
        return Ok(None);
    };
    let namespace = seed_namespace(seed);
    if exists(context, &namespace, secret).await? {
        return Ok(None);
    }
    Ok(Some(not_found(&bucket, seed, &namespace, secret)))
}

/// Names of the bucket, of its seed, and of the Secret.
fn reference(bucket: &BackupBucket) -> Option<(String, &str, &str)> {
    let seed = bucket.spec.seed_name.as_deref()?;
    let reference = bucket.spec.credentials_ref.as_ref()?;
    Some((bucket.name_any(), seed, own_secret(seed, reference).ok()?))
}

/// Whether a Secret has the name. A refused dry run shows nothing, for example with the policies of an
/// earlier version: the Secret then counts as existing.
async fn exists(context: &Context, namespace: &str, name: &str) -> Result<bool> {
    let secrets: Api<Secret> = context.garden.namespaced(namespace);
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    };
    let params = PostParams {
        dry_run: true,
        field_manager: Some(MANAGER.0.to_owned()),
    };
    match secrets.create(&params, &secret).await {
        Ok(_) => Ok(false),
        Err(kube::Error::Api(answer)) if answer.is_already_exists() => Ok(true),
        Err(kube::Error::Api(answer)) if answer.is_not_found() => Ok(false),
        Err(kube::Error::Api(answer)) if answer.is_forbidden() => {
            tracing::info!(
                namespace,
                name,
                answer = answer.message,
                "a dry run of a Secret is refused"
            );
            Ok(true)
        }
        Err(error) => Err(error).context(format_args!("could not check Secret {namespace}/{name}")),
    }
}

fn not_found(bucket: &str, seed: &str, namespace: &str, secret: &str) -> Verdict {
    Verdict {
        ready: false,
        reason: SOURCE_CREDENTIALS_NOT_FOUND,
        message: format!(
            "Secret {namespace}/{secret} of BackupBucket {bucket} does not exist, so that no seed could read the backups of the shoot: \
             create the Secret with the credentials of the bucket, or correct spec.backup.credentialsRef of Seed {seed}."
        ),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;
    use crate::shoot_migration::Obstacle;

    fn bucket(credentials: &Value) -> BackupBucket {
        let spec =
            json!({"provider": {"type": "t", "region": "r"}, "seedName": "a", "credentialsRef": credentials});
        BackupBucket::new("b", serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn the_secret_is_in_the_namespace_of_the_seed() {
        for namespace in [json!("seed-a"), Value::Null] {
            let found = bucket(&json!({"kind": "Secret", "namespace": namespace, "name": "s"}));
            assert_eq!(reference(&found), Some(("b".to_owned(), "a", "s")));
        }
        assert_eq!(reference(&bucket(&Value::Null)), None);
        assert_eq!(
            reference(&bucket(&json!({"namespace": "garden", "name": "s"}))),
            None
        );
    }

    #[test]
    fn the_message_names_the_secret_and_the_remedy() {
        let verdict = not_found("b", "a", "seed-a", "s");
        assert!(matches!(verdict.obstacle(), Some(Obstacle::Final(_))));
        for words in [
            "Secret seed-a/s of BackupBucket b does not exist",
            "create the Secret",
            "of Seed a.",
        ] {
            assert!(verdict.message.contains(words), "{}", verdict.message);
        }
    }
}
