//! Carries a BackupBucket from the garden to the seed and its status back.

use std::{sync::Arc, time::Duration};

use api::{
    constants::{CONFIRMATION_DELETION, GARDEN_NAMESPACE, OPERATION, finalizer::GARDENER},
    extensions,
    gardencore::{BackupBucket, BackupEntry},
    meta::SecretReference,
};
use kube::{
    Api, ResourceExt,
    api::ListParams,
    runtime::{reflector::ObjectRef, watcher},
};
use runtime::{
    Result,
    client::{Cluster, apply},
    clock,
    controller::{Next, Reconciler, runner},
    error::Explain as _,
};

use super::decision::{ask, deletion_error, failure, status, wanted, why_deploy, why_needed};
use crate::{
    Context, MANAGER,
    backup_bucket::credentials::{self, Credentials},
    extension_object::{Progress, progress},
};

/// How often credentials are read again: their Secret is in the garden, where a seed may not watch Secrets.
const SYNC_PERIOD: Duration = Duration::from_secs(300);
/// Requeue interval of a bucket with an error, or of a bucket that is being deleted. Shorter than a user
/// waits after fixing credentials, longer than a provider needs to reject wrong credentials.
const ERROR_REQUEUE: Duration = Duration::from_secs(15);

struct BackupBucketController {
    context: Arc<Context>,
}

/// Runs the controller until shutdown.
pub async fn run(context: Arc<Context>) {
    let buckets: Api<BackupBucket> = context.garden.cluster_wide();
    let theirs: Api<extensions::BackupBucket> = context.seed.cluster_wide();
    let mine = watcher::Config::default().fields(&format!("spec.seedName={}", context.seed_name));
    let controller = runner::controller(buckets.clone(), mine, |_| None).watches(
        theirs,
        watcher::Config::default(),
        |theirs| Some(ObjectRef::new(&theirs.name_any())),
    );
    let settings = context.runner.clone();
    runner::run(
        controller,
        move |_| buckets.clone(),
        Arc::new(BackupBucketController { context }),
        settings,
    )
    .await;
}

impl Reconciler<BackupBucket> for BackupBucketController {
    const NAME: &'static str = "backup-bucket";
    const FINALIZER: Option<&'static str> = Some(GARDENER);

    fn is_responsible(&self, bucket: &BackupBucket) -> bool {
        bucket.spec.seed_name.as_ref() == Some(&self.context.seed_name)
    }

    async fn apply(&self, bucket: Arc<BackupBucket>) -> Result<Next> {
        let outcome = self.reconcile(&bucket).await;
        if let Err(error) = &outcome
            && let Some(body) = failure(&bucket, error, clock::now_k8s())
        {
            MANAGER
                .merge_status(&self.buckets(), &bucket.name_any(), &body)
                .await?;
        }
        outcome
    }

    async fn cleanup(&self, bucket: Arc<BackupBucket>) -> Result<Next> {
        let name = bucket.name_any();
        let theirs = self.theirs();
        let credentials = self.credentials(&name);
        let Some(found) = theirs
            .get_opt(&name)
            .await
            .context(format_args!("could not read BackupBucket {name}"))?
        else {
            credentials.remove().await?;
            return Ok(Next::Change);
        };
        if found.metadata.deletion_timestamp.is_none() {
            if let Some(why) = self.why_needed(&bucket).await? {
                let events = &self.context.runner.events;
                events
                    .answer_with_warning(bucket.as_ref(), "BackupBucketInUse", &why)
                    .await;
                return Ok(Next::After(ERROR_REQUEUE));
            }
            // The credentials may have been fixed since; the provider needs valid credentials to delete.
            credentials.carry(&bucket).await?;
            MANAGER
                .annotate(&theirs, &name, CONFIRMATION_DELETION, Some("true"))
                .await?;
            apply::delete(&theirs, &name).await?;
        }
        let known = bucket
            .status
            .as_ref()
            .and_then(|s| s.last_error.as_ref())
            .map(|e| e.description.as_str());
        if let Some(body) = deletion_error(&found).filter(|b| b["lastError"]["description"].as_str() != known)
        {
            MANAGER.merge_status(&self.buckets(), &name, &body).await?;
        }
        Ok(Next::After(ERROR_REQUEUE))
    }
}

impl BackupBucketController {
    async fn reconcile(&self, bucket: &BackupBucket) -> Result<Next> {
        let name = bucket.name_any();
        let credentials = self.credentials(&name);
        let changed = credentials.carry(bucket).await?;
        let spec = wanted(bucket, SecretReference::new(GARDEN_NAMESPACE, credentials.name()));
        let theirs = self.theirs();
        let mut found = theirs
            .get_opt(&name)
            .await
            .context(format_args!("could not read BackupBucket {name}"))?;
        if let Some(why) = why_deploy(bucket, found.as_ref(), &spec, changed) {
            tracing::info!(bucket = name, why, "the provider is asked for the bucket");
            found = Some(
                MANAGER
                    .apply(&theirs, &ask(&name, spec, clock::now_rfc3339_nano()))
                    .await?,
            );
            if bucket.annotations().contains_key(OPERATION) {
                MANAGER.annotate(&self.buckets(), &name, OPERATION, None).await?;
            }
        }
        if let Some(body) = found
            .as_ref()
            .and_then(|found| status(bucket, found, clock::now_k8s()))
        {
            MANAGER.merge_status(&self.buckets(), &name, &body).await?;
        }
        // Invalid credentials may be fixed at any time, and no watch reports the fix.
        let well = found.is_some_and(|found| progress(&found) == Progress::Ready);
        Ok(Next::After(if well { SYNC_PERIOD } else { ERROR_REQUEUE }))
    }

    async fn why_needed(&self, bucket: &BackupBucket) -> Result<Option<String>> {
        let entries: Api<BackupEntry> = self.context.garden.all();
        let naming = ListParams::default().fields(&format!("spec.bucketName={}", bucket.name_any()));
        let entries = entries.list(&naming).await;
        let entries = entries.context("could not list BackupEntries")?;
        Ok(why_needed(bucket, &entries.items))
    }

    fn buckets(&self) -> Api<BackupBucket> {
        self.context.garden.cluster_wide()
    }

    fn theirs(&self) -> Api<extensions::BackupBucket> {
        self.context.seed.cluster_wide()
    }

    fn credentials(&self, bucket: &str) -> Credentials {
        credentials::for_secret(&self.context, format!("bucket-{bucket}"))
    }
}
