//! The removal of an entry from this seed: by hand-over, by release, or by deletion with its backups.

use api::{
    constants::{
        BACKUP_ENTRY_BACKUPS_COPIED, CONFIRMATION_DELETION, GARDEN_NAMESPACE, OPERATION, TIMESTAMP,
        operation::MIGRATE,
    },
    extensions::{self, ExtensionObject as _},
    gardencore::{BackupEntry, Shoot},
    meta::{LastOperationType, SecretReference},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt, api::ListParams};
use runtime::{
    Result,
    client::{Cluster, apply},
    clock,
    controller::Next,
    error::Explain as _,
};
use serde_json::json;

use super::{
    controller::{BackupEntryController, ERROR_REQUEUE},
    decision::{self, SOURCE_PREFIX, names_source, namespace_of},
    deletion::{are_copied, is_of, must_create_for_removal},
    object::{for_removal, wanted},
};
use crate::{MANAGER, extension_object::is_migrated};

impl BackupEntryController {
    /// Hands over the entry. The status names the destination only after all objects of the entry in this
    /// seed are gone.
    pub(super) async fn migrate(&self, entry: &BackupEntry) -> Result<Next> {
        if !self.take_away(entry).await? {
            return Ok(Next::After(ERROR_REQUEUE));
        }
        self.write(entry, &decision::handed_over(entry, clock::now_k8s()))
            .await?;
        Ok(Next::Change)
    }

    pub(super) async fn forget(&self, entry: &BackupEntry) -> Result<Next> {
        Ok(if self.take_away(entry).await? {
            Next::Change
        } else {
            Next::After(ERROR_REQUEUE)
        })
    }

    /// Removes the seed's object without changing the bucket. `false`: the provider is not done yet.
    async fn take_away(&self, entry: &BackupEntry) -> Result<bool> {
        let theirs = self.theirs();
        let Some(found) = self.get_extension(entry).await? else {
            self.credentials(entry).remove().await?;
            return Ok(true);
        };
        let name = found.name_any();
        if is_migrated(&found) {
            // The object is deleted last: a recovered seed whose shoot was taken over finds the remaining
            // work by this object.
            self.credentials(entry).remove().await?;
            MANAGER
                .annotate(&theirs, &name, CONFIRMATION_DELETION, Some("true"))
                .await?;
            apply::delete(&theirs, &name).await?;
            return Ok(self.get_extension(entry).await?.is_none());
        }
        if found.annotations().get(OPERATION).is_none_or(|o| o != MIGRATE) {
            let annotations = json!({OPERATION: MIGRATE, TIMESTAMP: clock::now_rfc3339_nano()});
            MANAGER
                .merge(&theirs, &name, &json!({"metadata": {"annotations": annotations}}))
                .await?;
        }
        self.tell_error(entry, &found, None).await?;
        Ok(false)
    }

    /// Removes the backups. The order: the extension object exists, the status of the entry records the
    /// deletion, and the extension object is deleted. After a crash, an entry without an extension object is
    /// finished if the status records the deletion.
    pub(super) async fn delete(&self, entry: &BackupEntry) -> Result<Next> {
        let found = match self.get_extension(entry).await? {
            Some(found) => found,
            None if must_create_for_removal(entry, &self.context.seed_name) => {
                self.create_for_removal(entry).await?
            }
            None => {
                self.credentials(entry).remove().await?;
                return Ok(Next::Change);
            }
        };
        if found.metadata.deletion_timestamp.is_none() {
            // The provider needs valid credentials to delete. Without a bucket object the provider uses the
            // credentials that are already in the seed. The entry of a former seed names the bucket of the
            // new seed, and the extension object the bucket of the former seed.
            if let Ok(bucket) = self.bucket(&found.spec.bucket_name).await {
                self.credentials(entry).carry(&bucket).await?;
            }
            self.record_deletion(entry).await?;
            let theirs = self.theirs();
            // The provider deletes the backups of a source entry only if an annotation states that they are
            // not needed there any more.
            let said = entry
                .annotations()
                .get(BACKUP_ENTRY_BACKUPS_COPIED)
                .filter(|_| are_copied(entry));
            let copied = names_source(entry).then(|| said.map_or("true", String::as_str));
            let annotations = json!({CONFIRMATION_DELETION: "true", BACKUP_ENTRY_BACKUPS_COPIED: copied});
            MANAGER
                .merge(
                    &theirs,
                    &found.name_any(),
                    &json!({"metadata": {"annotations": annotations}}),
                )
                .await?;
            apply::delete(&theirs, &found.name_any()).await?;
        }
        let note = self.ended_right(entry, &found).await;
        self.tell_error(entry, &found, note.as_deref()).await?;
        Ok(Next::After(ERROR_REQUEUE))
    }

    /// The deletion was forced in the middle of a move, and no flow of this seed has begun with the entry.
    async fn create_for_removal(&self, entry: &BackupEntry) -> Result<extensions::BackupEntry> {
        let bucket = self.bucket(&entry.spec.bucket_name).await?;
        let credentials = self.credentials(entry);
        credentials.carry(&bucket).await?;
        let secret = SecretReference::new(GARDEN_NAMESPACE, credentials.name());
        let epoch = decision::epoch_of(entry);
        let object = for_removal(&entry.name_any(), wanted(&bucket, secret), epoch);
        tracing::info!(
            entry = entry.name_any(),
            bucket = entry.spec.bucket_name,
            "the provider is asked to remove backups of an earlier epoch"
        );
        MANAGER.apply(&self.theirs(), &object).await
    }

    async fn record_deletion(&self, entry: &BackupEntry) -> Result<()> {
        let last = entry
            .status
            .as_ref()
            .and_then(|status| status.last_operation.as_ref());
        if last.is_none_or(|last| last.type_ != LastOperationType::Delete) {
            let begun = decision::begun(LastOperationType::Delete, clock::now_k8s());
            self.write(entry, &begun).await?;
        }
        Ok(())
    }

    /// Why the credentials of a failing deletion may be old.
    async fn ended_right(&self, entry: &BackupEntry, found: &extensions::BackupEntry) -> Option<String> {
        found.default_status()?.last_error.as_ref()?;
        let bucket = self.bucket(&found.spec.bucket_name).await.ok()?;
        self.credentials(entry).ended_right(&bucket).await
    }

    async fn tell_error(
        &self,
        entry: &BackupEntry,
        found: &extensions::BackupEntry,
        note: Option<&str>,
    ) -> Result<()> {
        if self.is_mine(entry)
            && let Some(body) = decision::deletion_error(entry, found, note)
        {
            self.write(entry, &body).await?;
        }
        Ok(())
    }

    /// The entry that a source entry is the source of.
    pub(super) async fn original(&self, entry: &BackupEntry) -> Result<Option<BackupEntry>> {
        let name = entry.name_any();
        let Some(name) = name.strip_prefix(SOURCE_PREFIX) else {
            return Ok(None);
        };
        self.entries(entry)
            .get_opt(name)
            .await
            .context(format_args!("could not read BackupEntry {name}"))
    }

    pub(super) async fn shoot_of(&self, entry: &BackupEntry) -> Result<Option<Shoot>> {
        let shoots: Api<Shoot> = self
            .context
            .garden
            .namespaced(&entry.namespace().unwrap_or_default());
        let shoots = shoots
            .list(&ListParams::default())
            .await
            .context("could not list Shoots")?;
        Ok(shoots.items.into_iter().find(|shoot| is_of(entry, shoot)))
    }

    pub(super) async fn shoot_namespace(&self, shoot: Option<&Shoot>) -> Result<Option<Namespace>> {
        let Some(name) = shoot
            .and_then(|s| s.status.as_ref())
            .map(|s| s.technical_id.as_str())
            .filter(|n| !n.is_empty())
        else {
            return Ok(None);
        };
        self.namespace(name).await
    }

    /// Whether a part of the shoot that may need the entry still exists in this seed.
    pub(super) async fn has_control_plane(&self, entry: &BackupEntry) -> Result<bool> {
        let Some(name) = namespace_of(entry) else {
            return Ok(false);
        };
        let found = self.namespace(&name).await?;
        Ok(found.is_some_and(|found| found.metadata.deletion_timestamp.is_none()))
    }

    async fn namespace(&self, name: &str) -> Result<Option<Namespace>> {
        let namespaces: Api<Namespace> = self.context.seed.cluster_wide();
        namespaces
            .get_opt(name)
            .await
            .context(format_args!("could not read namespace {name}"))
    }
}
