//! Copies a BackupEntry from the garden to the seed and its status back; hands over a BackupEntry that moves.

use std::{future::ready, sync::Arc, time::Duration};

use api::{
    constants::{GARDEN_NAMESPACE, OPERATION, OWNERSHIP_EPOCH, finalizer::GARDENER},
    extensions,
    gardencore::{BackupBucket, BackupEntry},
    meta::{ErrorCode, LastOperation, LastOperationState, LastOperationType, SecretReference},
};
use futures::StreamExt as _;
use kube::{
    Api, ResourceExt,
    core::PartialObjectMeta,
    runtime::{
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use placement::Operation;
use runtime::{
    Error, Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler, SharedWatch, runner},
    error::Explain as _,
};
use serde_json::{Value, json};

use super::{
    decision::{
        self, awaits_flow, is_of_preparation, is_taken_from, must_begin, names_source, operation,
        responsible_seed, why_deploy,
    },
    deletion::{Deletion, decide, has_unneeded_backups},
    object::{ask, wanted},
    watched,
};
use crate::{
    Context, MANAGER,
    backup_bucket::credentials::{self, Credentials},
    extension_object::is_migrated,
};

/// How often credentials are read again: their Secret is in the garden, where a seed may not watch Secrets.
const SYNC_PERIOD: Duration = Duration::from_secs(300);
/// Requeue interval of an entry with an error. The provider's status is watched; fixed credentials are not.
pub(super) const ERROR_REQUEUE: Duration = Duration::from_secs(15);

type TheirMeta = PartialObjectMeta<extensions::BackupEntry>;

pub(super) struct BackupEntryController {
    pub(super) context: Arc<Context>,
    /// The BackupEntries of the seed.
    here: Store<TheirMeta>,
}

/// Runs the controller until shutdown.
pub async fn run(context: Arc<Context>) {
    let garden = context.garden.clone();
    let theirs: Api<TheirMeta> = context.seed.cluster_wide();
    let here = SharedWatch::new(theirs, watcher::Config::default(), |_| {});
    let controller = watched::controller(&garden, &context.seed_name);
    let store = controller.store();
    // All BackupEntries of the seed are reported after the store shows the list. So an entry of the garden
    // that was listed before is checked again.
    let changed = here.subscribe().filter_map(move |theirs| {
        let name = &theirs.reference.name;
        let entry = store.find(|entry| entry.name_any() == *name);
        ready(entry.map(|entry| ObjectRef::from_obj(entry.as_ref())))
    });
    let controller = controller.reconcile_on(changed);
    let (settings, share) = (context.runner.clone(), context.project_share);
    let store = here.store();
    let reconciler = Arc::new(BackupEntryController { context, here: store });
    let running = runner::run_namespaced_by_project(controller, &garden, reconciler, settings, share);
    here.run_beside(running).await;
}

impl Reconciler<BackupEntry> for BackupEntryController {
    const NAME: &'static str = "backup-entry";
    const FINALIZER: Option<&'static str> = Some(GARDENER);

    /// An entry of a preparation names a place alone: no backup is there yet, and garden-controller-manager
    /// deletes the entry at any time.
    fn is_responsible(&self, entry: &BackupEntry) -> bool {
        if is_of_preparation(entry) {
            return false;
        }
        let here = || self.here.get(&ObjectRef::new(&entry.name_any())).is_some();
        self.is_mine(entry) || is_taken_from(entry, &self.context.seed_name) && here()
    }

    async fn apply(&self, entry: Arc<BackupEntry>) -> Result<Next> {
        // The cache may lag behind this process's own last write; deciding on an old status could run an
        // operation twice.
        let latest = self.latest(&entry).await?;
        let Some(entry) = latest.filter(|latest| self.is_responsible(latest)) else {
            return Ok(Next::Change);
        };
        if !self.is_mine(&entry) {
            // A takeover moved the entry away while this seed was cut off or dead, and the seed is back. The
            // remaining etcd may have to save changes that exist nowhere else, and a recreated pod of that
            // etcd needs the credentials. So the credentials stay until the shoot's namespace is gone.
            if self.has_control_plane(&entry).await? {
                return Ok(Next::After(ERROR_REQUEUE));
            }
            return self.forget(&entry).await;
        }
        let what = operation(&entry);
        if what != Operation::Migrate && awaits_flow(&entry) {
            return Ok(Next::Change);
        }
        let begin = must_begin(&entry, what.type_());
        let type_ = match entry.status.as_ref().and_then(|s| s.last_operation.as_ref()) {
            Some(last) if !begin => last.type_,
            _ => what.type_(),
        };
        // The begin removes the last error, so an error of this run is compared with the entry after the
        // begin.
        let recorded = if begin {
            self.begin(&entry, what, type_).await?
        } else {
            entry.clone()
        };
        let outcome = if what == Operation::Migrate {
            self.migrate(&entry).await
        } else {
            let last = recorded.status.as_ref().and_then(|s| s.last_operation.clone());
            self.bring_in_line(&entry, what, type_, last).await
        };
        if let Err(error) = &outcome
            && let Some(body) = decision::failure(&recorded, error, type_, clock::now_k8s())
        {
            self.write(&entry, &body).await?;
        }
        outcome
    }

    async fn cleanup(&self, entry: Arc<BackupEntry>) -> Result<Next> {
        // An old status could remove backups a second time, after a new entry of the same name names them.
        let Some(entry) = self.latest(&entry).await?.filter(|latest| {
            latest.uid() == entry.uid()
                && latest.metadata.deletion_timestamp.is_some()
                && self.is_mine(latest)
        }) else {
            return Ok(Next::After(ERROR_REQUEUE));
        };
        let shoot = self.shoot_of(&entry).await?;
        // No flow of this seed has begun with the entry, so the seed has stored no backup below the entry.
        if awaits_flow(&entry)
            && !has_unneeded_backups(&entry, shoot.as_ref())
            && self.get_extension(&entry).await?.is_none()
        {
            return self.forget(&entry).await;
        }
        let namespace = self.shoot_namespace(shoot.as_ref()).await?;
        let grace = self.context.deletion_grace;
        let original = self.original(&entry).await?;
        let decision = decide(
            &entry,
            original.as_ref(),
            shoot.as_ref(),
            namespace.as_ref(),
            grace,
            clock::now(),
        );
        match self.unless_begun(&entry, decision).await? {
            Deletion::Refused(why) => {
                self.context
                    .runner
                    .events
                    .warning(&entry, "BackupEntryInUse", &why)
                    .await;
                Ok(Next::After(ERROR_REQUEUE))
            }
            Deletion::Later(left) => Ok(Next::After(left)),
            Deletion::Forget => self.forget(&entry).await,
            Deletion::Keep(why) => {
                let events = &self.context.runner.events;
                events.warning(&entry, "BackupsKept", &why).await;
                self.forget(&entry).await
            }
            Deletion::Delete => {
                let outcome = self.delete(&entry).await;
                if let Err(error) = &outcome
                    && let Some(body) = decision::deletion_failure(&entry, error, clock::now_k8s())
                {
                    self.write(&entry, &body).await?;
                }
                outcome
            }
        }
    }
}

impl BackupEntryController {
    pub(super) fn is_mine(&self, entry: &BackupEntry) -> bool {
        responsible_seed(entry) == Some(&self.context.seed_name)
    }

    pub(super) fn entries(&self, entry: &BackupEntry) -> Api<BackupEntry> {
        self.context
            .garden
            .namespaced(&entry.namespace().unwrap_or_default())
    }

    async fn latest(&self, entry: &BackupEntry) -> Result<Option<BackupEntry>> {
        let latest = self.entries(entry).get_opt(&entry.name_any()).await;
        latest.context("could not read the BackupEntry")
    }

    pub(super) fn theirs(&self) -> Api<extensions::BackupEntry> {
        self.context.seed.cluster_wide()
    }

    pub(super) fn credentials(&self, entry: &BackupEntry) -> Credentials {
        credentials::for_secret(&self.context, format!("entry-{}", entry.name_any()))
    }

    pub(super) async fn write(&self, entry: &BackupEntry, status: &Value) -> Result<BackupEntry> {
        MANAGER
            .merge_status(&self.entries(entry), &entry.name_any(), status)
            .await
    }

    /// A deletion that the provider has begun goes on: a former version has decided before the seed had a
    /// note, and an object without an end would keep the backups for ever.
    async fn unless_begun(&self, entry: &BackupEntry, decision: Deletion) -> Result<Deletion> {
        if !matches!(decision, Deletion::Keep(_)) {
            return Ok(decision);
        }
        let found = self.get_extension(entry).await?;
        let has_begun = |found: &extensions::BackupEntry| {
            found.metadata.deletion_timestamp.is_some() && !is_migrated(found)
        };
        Ok(if found.as_ref().is_some_and(has_begun) {
            Deletion::Delete
        } else {
            decision
        })
    }

    pub(super) async fn get_extension(&self, entry: &BackupEntry) -> Result<Option<extensions::BackupEntry>> {
        let name = entry.name_any();
        self.theirs()
            .get_opt(&name)
            .await
            .context(format_args!("could not read BackupEntry {name} of the seed"))
    }

    /// Records the begin of a run before the provider acts: a crash in between repeats the run. Returns the
    /// entry with the record.
    async fn begin(
        &self,
        entry: &BackupEntry,
        what: Operation,
        type_: LastOperationType,
    ) -> Result<BackupEntry> {
        let written = self
            .write(entry, &decision::begun(type_, clock::now_k8s()))
            .await?;
        // A seed that releases the entry may not change annotations any more.
        if what != Operation::Migrate && entry.annotations().contains_key(OPERATION) {
            // A request that was written after the read stays, and begins a further run.
            let done = json!({"metadata": {"annotations": {OPERATION: null}}});
            MANAGER
                .try_merge_of(&self.entries(entry), &written, &done)
                .await?;
        }
        Ok(written)
    }

    async fn bring_in_line(
        &self,
        entry: &BackupEntry,
        what: Operation,
        type_: LastOperationType,
        last: Option<LastOperation>,
    ) -> Result<Next> {
        let name = entry.name_any();
        let bucket = self.bucket(&entry.spec.bucket_name).await?;
        let of_another = bucket
            .spec
            .seed_name
            .as_ref()
            .is_some_and(|seed| *seed != self.context.seed_name);
        if of_another && !names_source(entry) {
            tracing::info!(
                entry = name,
                bucket = entry.spec.bucket_name,
                "the restoration has not named this seed's bucket yet"
            );
            return Ok(Next::Change);
        }
        let credentials = self.credentials(entry);
        let changed = credentials.carry(&bucket).await?;
        let spec = wanted(
            &bucket,
            SecretReference::new(GARDEN_NAMESPACE, credentials.name()),
        );
        let epoch = entry.annotations().get(OWNERSHIP_EPOCH);
        let mut found = self.get_extension(entry).await?;
        if let Some(why) = why_deploy(last.as_ref(), found.as_ref(), (&spec, epoch), changed) {
            tracing::info!(entry = name, why, "the provider is asked for the backup entry");
            found = Some(
                MANAGER
                    .apply(
                        &self.theirs(),
                        &ask(&name, spec, what, clock::now_rfc3339_nano(), epoch),
                    )
                    .await?,
            );
        }
        let Some(found) = found else {
            return Err(Error::bug("a BackupEntry was neither found nor made"));
        };
        let mut current = entry.clone();
        if let Some(status) = &mut current.status {
            status.last_operation = last;
        }
        if let Some(body) =
            decision::answer(&current, &found, type_, &self.context.seed_name, clock::now_k8s())
        {
            current = self.write(entry, &body).await?;
        }
        let done = current
            .status
            .and_then(|s| s.last_operation)
            .is_some_and(|o| o.state == LastOperationState::Succeeded);
        Ok(Next::After(if done { SYNC_PERIOD } else { ERROR_REQUEUE }))
    }

    /// The bucket of this name. The bucket of a different seed is used as is, because that seed may be dead
    /// (R7-02).
    pub(super) async fn bucket(&self, name: &str) -> Result<BackupBucket> {
        let buckets: Api<BackupBucket> = self.context.garden.cluster_wide();
        let bucket = buckets
            .get_opt(name)
            .await
            .context(format_args!("could not read BackupBucket {name}"))?;
        let Some(bucket) = bucket else {
            return Err(Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!(
                    "there is no BackupBucket {name}: create it for the bucket that holds the shoot's backups"
                ),
            ));
        };
        let state = bucket
            .status
            .as_ref()
            .and_then(|s| s.last_operation.as_ref())
            .map(|o| o.state);
        let mine = bucket.spec.seed_name.as_ref() == Some(&self.context.seed_name);
        if mine && state != Some(LastOperationState::Succeeded) {
            return Err(Error::not_ready(
                Duration::from_secs(5),
                format!("BackupBucket {name} of this seed is not ready: look at its status.lastError"),
            ));
        }
        Ok(bucket)
    }
}

#[cfg(test)]
#[path = "controller_tests.rs"]
mod tests;
