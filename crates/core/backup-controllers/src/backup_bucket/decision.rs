//! Pure decisions about a BackupBucket.

use api::{
    constants::{OPERATION, TIMESTAMP, operation::RECONCILE},
    extensions::{self, DefaultSpec, ExtensionObject},
    gardencore::{BackupBucket, BackupEntry},
    meta::{LastOperation, LastOperationState, LastOperationType, SecretReference},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::extension_object::{Progress, progress};

/// Why the provider must act again; `None` if nothing changed.
pub(super) fn why_deploy(
    bucket: &BackupBucket,
    found: Option<&extensions::BackupBucket>,
    wanted: &extensions::BackupBucketSpec,
    credentials_changed: bool,
) -> Option<&'static str> {
    let Some(found) = found else {
        return Some("it is not there");
    };
    if bucket.annotations().contains_key(OPERATION) {
        return Some("somebody asked for it");
    }
    if found.spec != *wanted {
        return Some("its specification changed");
    }
    credentials_changed.then_some("its credentials changed")
}

/// The spec of the seed's BackupBucket, which the provider reads.
pub(super) fn wanted(bucket: &BackupBucket, secret: SecretReference) -> extensions::BackupBucketSpec {
    extensions::BackupBucketSpec {
        default: DefaultSpec {
            type_: bucket.spec.provider.type_.clone(),
            provider_config: bucket.spec.provider_config.clone(),
            ..DefaultSpec::default()
        },
        region: bucket.spec.provider.region.clone(),
        secret_ref: secret,
    }
}

/// The object with the annotation that requests an operation.
pub(super) fn ask(
    name: &str,
    spec: extensions::BackupBucketSpec,
    timestamp: String,
) -> extensions::BackupBucket {
    let mut object = extensions::BackupBucket::new(name, spec);
    object.metadata.annotations = Some(
        [
            (OPERATION.to_owned(), RECONCILE.to_owned()),
            (TIMESTAMP.to_owned(), timestamp),
        ]
        .into(),
    );
    object
}

/// The status for the garden, or `None` if the garden's status is up to date.
pub(super) fn status(bucket: &BackupBucket, found: &extensions::BackupBucket, now: Time) -> Option<Value> {
    let old = bucket.status.clone().unwrap_or_default();
    let first = old
        .last_operation
        .as_ref()
        .is_none_or(|o| o.type_ == LastOperationType::Create && o.state != LastOperationState::Succeeded);
    let type_ = if first {
        LastOperationType::Create
    } else {
        LastOperationType::Reconcile
    };
    let (state, done, description, error) = match progress(found) {
        Progress::Ready => (
            LastOperationState::Succeeded,
            100,
            "Backup Bucket has been successfully reconciled.".to_owned(),
            None,
        ),
        Progress::Failing(error) => (
            LastOperationState::Error,
            50,
            format!("{} Operation will be retried.", error.description),
            Some(error),
        ),
        Progress::Waiting(why) => (
            LastOperationState::Processing,
            50,
            format!("Waiting for the provider: {why}."),
            None,
        ),
    };
    let theirs = found.status.clone().unwrap_or_default();
    let same = old
        .last_operation
        .as_ref()
        .is_some_and(|o| o.state == state && o.description == description)
        && old.last_error.as_ref().map(|e| &e.description) == error.as_ref().map(|e| &e.description)
        && (state != LastOperationState::Succeeded || old.observed_generation == bucket.metadata.generation)
        && old.provider_status == theirs.default.provider_status
        && old.generated_secret_ref == theirs.generated_secret_ref;
    if same {
        return None;
    }
    let operation = LastOperation {
        description,
        last_update_time: now,
        progress: done,
        state,
        type_,
    };
    let mut body = json!({
        "lastOperation": operation,
        "lastError": error,
        "providerStatus": theirs.default.provider_status,
        "generatedSecretRef": theirs.generated_secret_ref,
    });
    if state == LastOperationState::Succeeded {
        body["observedGeneration"] = json!(bucket.metadata.generation);
    }
    Some(body)
}

/// The status with an error of this process, or `None` if the status holds the error already, or the error is
/// no failure.
pub(super) fn failure(bucket: &BackupBucket, error: &runtime::Error, now: Time) -> Option<Value> {
    let status = bucket.status.as_ref();
    let told = status.and_then(|s| s.last_error.as_ref());
    let old = status.and_then(|s| s.last_operation.as_ref());
    let type_ = old.map_or(LastOperationType::Create, |o| o.type_);
    crate::failure::failure(error, told, type_, now.clone(), now)
}

/// The reason why the bucket must stay, from the entries that name the bucket. With the bucket go the backups
/// of all entries, also of an entry of a different seed that restores a shoot from the bucket.
pub(super) fn why_needed(bucket: &BackupBucket, entries: &[BackupEntry]) -> Option<String> {
    let name = bucket.name_any();
    let mut naming = entries.iter().filter(|entry| entry.spec.bucket_name == name);
    let first = naming.next()?;
    Some(format!(
        "BackupBucket {name} is being deleted and stays until no BackupEntry names the bucket: BackupEntry {}/{} of seed \"{}\" does \
         ({} in all)",
        first.namespace().unwrap_or_default(),
        first.name_any(),
        first.spec.seed_name.as_deref().unwrap_or_default(),
        naming.count() + 1
    ))
}

/// The last error of a bucket that is being deleted.
pub(super) fn deletion_error(found: &extensions::BackupBucket) -> Option<Value> {
    let error = found.default_status()?.last_error.clone()?;
    Some(json!({ "lastError": error }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::{gardencore::BackupBucketSpec, meta::LastError};

    use super::*;

    fn pair() -> (BackupBucket, extensions::BackupBucket) {
        let mut bucket = BackupBucket::new("b", BackupBucketSpec::default());
        bucket.metadata.generation = Some(4);
        let mut found =
            extensions::BackupBucket::new("b", wanted(&bucket, SecretReference::new("garden", "bucket-b")));
        found.metadata.generation = Some(1);
        let status = found.default_status_mut();
        status.observed_generation = Some(1);
        status.last_operation = Some(LastOperation {
            description: String::new(),
            last_update_time: Time(jiff::Timestamp::UNIX_EPOCH),
            progress: 100,
            state: LastOperationState::Succeeded,
            type_: LastOperationType::Create,
        });
        (bucket, found)
    }

    fn now() -> Time {
        Time(jiff::Timestamp::from_second(60).unwrap())
    }

    #[test]
    fn the_provider_is_asked_only_when_something_changed() {
        let (mut bucket, found) = pair();
        let spec = found.spec.clone();
        assert_eq!(why_deploy(&bucket, Some(&found), &spec, false), None);
        assert!(why_deploy(&bucket, None, &spec, false).is_some());
        assert!(why_deploy(&bucket, Some(&found), &spec, true).is_some());
        let mut other = spec.clone();
        other.region = "elsewhere".into();
        assert!(why_deploy(&bucket, Some(&found), &other, false).is_some());
        bucket.metadata.annotations = Some([(OPERATION.to_owned(), RECONCILE.to_owned())].into());
        assert!(why_deploy(&bucket, Some(&found), &spec, false).is_some());
    }

    /// Otherwise the end of a Seed would remove the only backups of a shoot that was handed over.
    #[test]
    fn a_bucket_stays_while_an_entry_of_any_seed_names_the_bucket() {
        let (bucket, _) = pair();
        let entry = |bucket: &str| {
            let spec = json!({"bucketName": bucket, "seedName": "destination"});
            BackupEntry::new("source-e", serde_json::from_value(spec).unwrap())
        };
        let why = why_needed(&bucket, &[entry("other"), entry("b")]).unwrap();
        assert!(
            why.contains("source-e of seed \"destination\" does (1 in all)"),
            "{why}"
        );
        assert_eq!(why_needed(&bucket, &[entry("other")]), None);
        assert_eq!(why_needed(&bucket, &[]), None);
    }

    #[test]
    fn the_answer_is_copied_once() {
        let (mut bucket, mut found) = pair();
        let body = status(&bucket, &found, now()).unwrap();
        assert_eq!(body["lastOperation"]["state"], "Succeeded");
        assert_eq!(body["lastOperation"]["type"], "Create");
        assert_eq!(body["observedGeneration"], 4);
        bucket.status = Some(serde_json::from_value(body).unwrap());
        assert_eq!(status(&bucket, &found, now()), None);
        found.default_status_mut().last_error = Some(LastError {
            description: "no such key.".into(),
            task_id: None,
            codes: vec![],
            last_update_time: None,
        });
        let body = status(&bucket, &found, now()).unwrap();
        assert_eq!(body["lastOperation"]["state"], "Error");
        assert_eq!(body["lastOperation"]["type"], "Reconcile");
        assert_eq!(body["lastError"]["description"], "no such key.");
        assert_eq!(body.get("observedGeneration"), None);
    }
}
