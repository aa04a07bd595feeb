//! The BackupBucket of each Seed with backups. The name is the uid of the Seed: a Seed that was registered
//! again never writes into the bucket of the earlier Seed.

use std::{sync::Arc, time::Duration};

use api::{
    constants::seed_name_label,
    gardencore::{BackupBucket, BackupBucketProvider, BackupBucketSpec, Seed},
    meta::ErrorCode,
};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{reflector::ObjectRef, watcher},
};
use runtime::{
    Error, Result,
    client::Cluster,
    controller::{Next, Reconciler, runner},
    error::Explain as _,
};
use serde_json::{Value, json};

use super::controller::{CONFLICT_REQUEUE, is_written, post_params};
use crate::{Context, MANAGER};

/// Requeue interval of a Seed whose BackupBucket is being deleted. An interrupted watch reports no deletion.
const DELETION_REQUEUE: Duration = Duration::from_secs(60);
/// Requeue interval of a Seed with a BackupBucket, which can go during an interruption of the watch.
const RESYNC_PERIOD: Duration = Duration::from_secs(600);

struct SeedBuckets {
    context: Context,
}

/// Runs the controller until shutdown.
pub(super) async fn run(context: Context) {
    let seeds: Api<Seed> = context.garden.cluster_wide();
    let buckets: Api<BackupBucket> = context.garden.cluster_wide();
    let wakes = |seed: &Seed| {
        let is_deleted = seed.metadata.deletion_timestamp.is_some();
        runner::fingerprint((seed.uid(), seed.metadata.generation, is_deleted))
    };
    let controller = runner::controller(seeds.clone(), watcher::Config::default(), wakes);
    let controller = controller.watches(buckets, watcher::Config::default(), |bucket| {
        let seed = bucket.spec.seed_name.as_deref();
        seed.map(ObjectRef::new)
    });
    let settings = context.runner();
    let reconciler = Arc::new(SeedBuckets { context });
    runner::run(controller, move |_| seeds.clone(), reconciler, settings).await;
}

impl Reconciler<Seed> for SeedBuckets {
    const NAME: &'static str = "seed-backup-bucket";

    async fn apply(&self, seed: Arc<Seed>) -> Result<Next> {
        let Some(wanted) = bucket_of(&seed) else {
            return Ok(Next::Change);
        };
        let buckets: Api<BackupBucket> = self.context.garden.cluster_wide();
        let name = wanted.name_any();
        let found = buckets
            .get_opt(&name)
            .await
            .context(format_args!("could not read BackupBucket {name}"))?;
        let Some(found) = found else {
            let created = buckets.create(&post_params(), &wanted).await;
            let is_written = is_written(created.map(drop), "could not create the BackupBucket")?;
            return Ok(next_after(is_written));
        };
        if let Some(why) = foreign(&seed, &found) {
            let events = &self.context.events;
            events
                .answer_with_warning(seed.as_ref(), "BackupBucketNotOfSeed", &why)
                .await;
            return Err(Error::config(ErrorCode::ErrConfigurationProblem, why));
        }
        if found.metadata.deletion_timestamp.is_some() {
            return Ok(Next::After(DELETION_REQUEUE));
        }
        let Some(patch) = correction(&found, &wanted) else {
            return Ok(Next::After(RESYNC_PERIOD));
        };
        let patch = serde_json::from_value(patch)
            .map_err(|error| Error::bug("the change of a BackupBucket is no JSON patch").caused_by(error))?;
        let params = PatchParams {
            field_manager: Some(MANAGER.0.to_owned()),
            ..PatchParams::default()
        };
        let written = buckets.patch(&name, &params, &Patch::<()>::Json(patch)).await;
        let is_written = is_written(written.map(drop), "could not change the BackupBucket")?;
        Ok(next_after(is_written))
    }

    /// The gardenlet of the Seed deletes the BackupBucket after the last BackupEntry.
    async fn cleanup(&self, _: Arc<Seed>) -> Result<Next> {
        Ok(Next::Change)
    }
}

fn next_after(is_written: bool) -> Next {
    Next::After(if is_written {
        RESYNC_PERIOD
    } else {
        CONFLICT_REQUEUE
    })
}

/// The JSON patch that corrects the specification, and removes all owners: the garbage collector deletes a
/// BackupBucket whose owners do not exist. Policy `gardenlet-backupbucket` refuses owners by a gardenlet.
fn correction(found: &BackupBucket, wanted: &BackupBucket) -> Option<Value> {
    let has_owners = !found.owner_references().is_empty();
    if found.spec == wanted.spec && !has_owners {
        return None;
    }
    let mut operations = vec![
        json!({"op": "add", "path": "/metadata/resourceVersion", "value": found.resource_version()}),
        json!({"op": "add", "path": "/spec", "value": wanted.spec}),
    ];
    if has_owners {
        operations.push(json!({"op": "remove", "path": "/metadata/ownerReferences"}));
    }
    Some(Value::Array(operations))
}

/// The reason why the BackupBucket of this name cannot be used for the Seed.
fn foreign(seed: &Seed, found: &BackupBucket) -> Option<String> {
    let name = seed.name_any();
    let of = found.spec.seed_name.as_deref();
    (of != Some(name.as_str())).then(|| {
        format!(
            "BackupBucket {} has the name of the bucket of Seed {name} and names seed \"{}\": delete this BackupBucket, and \
             garden-controller-manager creates the right BackupBucket",
            found.name_any(),
            of.unwrap_or_default()
        )
    })
}

/// The BackupBucket that a Seed asks for. The gardenlet of the Seed reports missing credentials.
fn bucket_of(seed: &Seed) -> Option<BackupBucket> {
    let backup = seed.spec.backup.as_ref()?;
    let credentials = backup.credentials_ref.clone()?;
    let region = backup.region.clone();
    let spec = BackupBucketSpec {
        provider: BackupBucketProvider {
            type_: backup.provider.clone(),
            region: region.unwrap_or_else(|| seed.spec.provider.region.clone()),
        },
        provider_config: backup.provider_config.clone(),
        credentials_ref: Some(credentials),
        seed_name: Some(seed.name_any()),
        shoot_ref: None,
    };
    let mut bucket = BackupBucket::new(&seed.uid()?, spec);
    bucket.metadata.labels = Some([(seed_name_label(&seed.name_any()), "true".to_owned())].into());
    Some(bucket)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::disallowed_methods)]
    use http::{Request, Response};
    use kube::{Client, client::Body};
    use tower::service_fn;

    use super::*;

    fn seed(backup: &serde_json::Value) -> Seed {
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": "a", "uid": "u"},
            "spec": {
                "dns": {}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
                "provider": {"type": "metal", "region": "here"}, "backup": backup,
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_bucket_is_named_after_the_uid_of_its_seed() {
        assert!(bucket_of(&seed(&json!(null))).is_none());
        assert!(bucket_of(&seed(&json!({"provider": "local"}))).is_none());
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "backup"});
        let bucket = bucket_of(&seed(&json!({"provider": "local", "credentialsRef": secret})));
        let bucket = bucket.unwrap();
        assert_eq!(bucket.name_any(), "u");
        assert_eq!(bucket.spec.seed_name.as_deref(), Some("a"));
        assert_eq!(
            (
                bucket.spec.provider.type_.as_str(),
                bucket.spec.provider.region.as_str()
            ),
            ("local", "here")
        );
    }

    #[test]
    fn a_bucket_that_names_a_different_seed_is_reported_and_not_changed() {
        let seed = seed(&json!(null));
        let of = |name: &str| {
            let spec = json!({"provider": {"type": "local", "region": "here"}, "seedName": name});
            BackupBucket::new("u", serde_json::from_value(spec).unwrap())
        };
        assert_eq!(foreign(&seed, &of("a")), None);
        let why = foreign(&seed, &of("b")).unwrap();
        assert!(why.contains("delete this BackupBucket"), "{why}");
    }

    #[test]
    fn foreign_owners_of_a_bucket_are_removed() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "backup"});
        let wanted = bucket_of(&seed(&json!({"provider": "local", "credentialsRef": secret}))).unwrap();
        assert_eq!(correction(&wanted, &wanted), None);
        let mut found = serde_json::to_value(&wanted).unwrap();
        found["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Namespace", "name": "gone", "uid": "none"}]);
        let found: BackupBucket = serde_json::from_value(found).unwrap();
        let removed = json!({"op": "remove", "path": "/metadata/ownerReferences"});
        assert_eq!(correction(&found, &wanted).unwrap()[2], removed);
        let mut moved = wanted.clone();
        moved.spec.provider.region = "there".to_owned();
        assert_eq!(
            correction(&moved, &wanted).unwrap().as_array().map(Vec::len),
            Some(2)
        );
    }

    /// The watch of BackupBuckets reports no bucket that has gone during an interruption.
    #[tokio::test]
    async fn a_bucket_that_vanishes_without_an_event_is_created_again_after_a_bounded_time() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "backup"});
        let seed = Arc::new(seed(&json!({"provider": "local", "credentialsRef": secret})));
        let mut found = serde_json::to_value(bucket_of(&seed).unwrap()).unwrap();
        let next = async |found: &serde_json::Value| {
            let found = found.to_string().into_bytes();
            let service = service_fn(move |_: Request<Body>| {
                let found = found.clone();
                async move { Ok::<_, std::io::Error>(Response::new(Body::from(found))) }
            });
            let context = Context::of_simulated_garden(&Client::new(service, "default"));
            SeedBuckets { context }.apply(Arc::clone(&seed)).await.unwrap()
        };
        assert_eq!(next(&found).await, Next::After(RESYNC_PERIOD));
        found["metadata"]["deletionTimestamp"] = json!("2026-11-30T00:00:00Z");
        assert_eq!(next(&found).await, Next::After(DELETION_REQUEUE));
    }
}
