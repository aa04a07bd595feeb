//! BackupBucket: a bucket in an S3 object store, with the name of the object. A bucket belongs to no shoot
//! and does not move.

use api::extensions::BackupBucket;
use async_trait::async_trait;
use extension::{Actuator, Context, Outcome};
use runtime::Result;

use crate::object_store::Store;

/// Reconciles BackupBuckets.
pub struct BackupBucketActuator;

#[async_trait]
impl Actuator<BackupBucket> for BackupBucketActuator {
    const NAME: &'static str = "backupbucket";

    async fn reconcile(&self, context: &Context<BackupBucket>) -> Result<Outcome> {
        open(context).await?.create_bucket().await?;
        Ok(Outcome::none())
    }

    async fn restore(&self, context: &Context<BackupBucket>) -> Result<Outcome> {
        self.reconcile(context).await
    }

    async fn migrate(&self, _: &Context<BackupBucket>) -> Result<Outcome> {
        Ok(Outcome::none())
    }

    /// Deletes the bucket with all objects: the gardenlet requests the deletion only when no BackupEntry is
    /// left.
    async fn delete(&self, context: &Context<BackupBucket>) -> Result<()> {
        open(context).await?.delete_bucket().await
    }
}

async fn open(context: &Context<BackupBucket>) -> Result<Store> {
    Store::open(
        &context.credentials().await?,
        &context.name(),
        &context.object.spec.region,
        context.permit(),
    )
}
