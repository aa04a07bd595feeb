//! The shoot's BackupEntry in the garden, which moves with the shoot, and the source BackupEntry. The source
//! BackupEntry keeps the former bucket until the backups are copied (R17-22, R17-23, R17-30).
//!
//! garden-controller-manager creates both entries and writes their specification. The flow waits for the
//! entries, and requests the operation by annotations.

use api::{
    constants::{self, operation},
    druid::Etcd,
    gardencore::{self, Shoot, shoot::OwnershipPhase},
    meta::{ErrorCode, LastOperationState, LastOperationType},
};
use kube::{Api, ResourceExt};
use placement::names;
use runtime::client::{Cluster, Garden, apply, wait};
use runtime::{Error, Result, error::Explain};
use serde_json::{Value, json};

use super::source_bucket::{SOURCE, look_recorded, recorded};
use crate::{
    ClaimPlan, EtcdCopy, FIELD_MANAGER, Facts, Operation, configuration_problem,
    extensions::resource::{ObjectState, ObjectWait, annotations},
    task::{BUCKET, ExternalSystems, PartTask},
    verbs::{Deploy, Tasks},
};

/// The shoot's own BackupEntry, of this seed's bucket.
#[derive(Debug)]
pub struct BackupEntry;

impl Deploy for BackupEntry {
    const TASKS: Tasks = [
        "Deploying backup entry",
        "Waiting until the backup entry has been reconciled",
    ];
    const TOUCHES: ExternalSystems = BUCKET;

    /// Waits until garden-controller-manager has assigned the BackupEntry to this seed and its bucket.
    async fn deploy(f: &Facts) -> Result<()> {
        if !f.has_backup() {
            return Err(configuration_problem(format!(
                "Seed {} has no spec.backup: a shoot cannot be hosted where its data is not backed up",
                f.seed_object.name_any()
            )));
        }
        let entry = f.wait_until_given_to_this_seed().await?;
        f.request_operation(entry.as_ref()).await
    }

    async fn ready(f: &Facts) -> Result<()> {
        f.wait_for_entry(&f.backup_entry_name()).await
    }
}

/// The BackupEntry that keeps the bucket of the former seed while a shoot is restored.
#[derive(Debug)]
pub struct SourceBackupEntry;

impl Deploy for SourceBackupEntry {
    const TASKS: Tasks = [
        "Deploying source backup entry",
        "Waiting until the source backup entry has been reconciled",
    ];
    const TOUCHES: ExternalSystems = BUCKET;

    /// Waits until garden-controller-manager has created the entry with the bucket that the Shoot records. No
    /// seed can write that record.
    async fn deploy(f: &Facts) -> Result<()> {
        let name = f.source_name();
        f.wait_until_given_to_this_seed().await?;
        let (own, bucket) = (
            f.seed_object.name_any(),
            Box::pin(f.wait_for_source_bucket()).await?,
        );
        let limit = f.residency.settings.timeouts.backup_entry.severe;
        let look = |entry: Option<&gardencore::BackupEntry>| match look_writable(&name, &own, entry) {
            wait::WaitState::Done => look_assigned(entry, &own, &bucket),
            other => other,
        };
        let entry = wait::until(&f.entries(), &name, limit, look).await?;
        f.request_operation(entry.as_ref()).await
    }

    /// After this wait, the former bucket's credentials are in the shoot's namespace.
    async fn ready(f: &Facts) -> Result<()> {
        f.wait_for_entry(&f.source_name()).await
    }
}

impl SourceBackupEntry {
    /// [`Self::destroy`], as a task.
    pub const DESTROY: PartTask<Facts> = PartTask::new("Destroying source backup entry", BUCKET, |input| {
        Box::pin(Self::destroy(input))
    });
    /// [`Self::gone`], as a task.
    pub const GONE: PartTask<Facts> = PartTask::new(
        "Waiting until the source backup entry has been deleted",
        BUCKET,
        |input| Box::pin(Self::gone(input)),
    );

    /// "Destroying source backup entry": deletes the entry without delay, together with the backups in the
    /// former bucket. Must come after etcd has started from the copy. A deletion by a different client keeps
    /// the backups.
    pub async fn destroy(f: &Facts) -> Result<()> {
        EtcdCopy::forget_accepted_loss(f).await?;
        // Before the deletion: garden-controller-manager creates a missing source entry without this mark.
        let (own, epoch) = (f.backup_entry_name(), f.epoch().to_string());
        if f.core_backup_entry().await?.is_some() {
            let mark = constants::BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH;
            FIELD_MANAGER
                .annotate(&f.entries(), &own, mark, Some(&epoch))
                .await?;
        }
        let name = f.source_name();
        if f.read_entry(&name).await?.is_none() {
            return Ok(());
        }
        let api = f.entries();
        let copied = if f.has_lost_changes().await? {
            constants::BACKUPS_COPIED_BUT_FINAL
        } else {
            "true"
        };
        for (key, value) in [
            (constants::BACKUP_ENTRY_BACKUPS_COPIED, copied),
            (constants::BACKUP_ENTRY_FORCE_DELETION, "true"),
        ] {
            FIELD_MANAGER.annotate(&api, &name, key, Some(value)).await?;
        }
        apply::delete(&api, &name).await
    }

    /// "Waiting until the source backup entry has been deleted". Also ends when the object store refuses the
    /// removal, because a retention of the bucket may last for years. The finalizer of the entry continues
    /// the deletion until then.
    pub async fn gone(f: &Facts) -> Result<()> {
        let timeout = f.residency.settings.timeouts.backup_entry.timeout;
        let look = |entry: Option<&gardencore::BackupEntry>| match entry {
            None => wait::WaitState::Done,
            Some(entry) if removal_refusal(entry).is_some() => wait::WaitState::Done,
            Some(entry) => wait::WaitState::Wait(describe_deletion(entry)),
        };
        wait::until(&f.entries(), &f.source_name(), timeout, look)
            .await
            .map(|_| ())
    }

    /// The source BackupEntry that a finished restore leaves behind, with the cause, for the Shoot's user.
    pub async fn left_behind(garden: &Garden, shoot: &Shoot) -> Result<Option<String>> {
        let Some(status) = &shoot.status else {
            return Ok(None);
        };
        let name = format!(
            "{SOURCE}{}",
            names::backup_entry(&status.technical_id, &status.uid)
        );
        let entries: Api<gardencore::BackupEntry> = garden.namespaced(&shoot.namespace().unwrap_or_default());
        let entry = entries
            .get_opt(&name)
            .await
            .context(format_args!("could not read BackupEntry {name}"))?;
        Ok(entry.and_then(|entry| {
            let cause = removal_refusal(&entry)?.trim_end_matches('.').to_owned();
            Some(format!(
                "BackupEntry {name} is still being deleted: {cause}. The shoot runs with the copy of its backups; the deletion is \
                 tried again. A planned move of the shoot waits until the entry is gone, and a takeover does not"
            ))
        }))
    }
}

/// The reason why the object store keeps backups of an entry that is being deleted.
fn removal_refusal(entry: &gardencore::BackupEntry) -> Option<&str> {
    entry.metadata.deletion_timestamp.as_ref()?;
    let error = entry.status.as_ref()?.last_error.as_ref()?;
    let is_refused = error.codes.contains(&ErrorCode::ErrInfraUnauthorized);
    is_refused.then_some(error.description.as_str())
}

fn describe_deletion(entry: &gardencore::BackupEntry) -> String {
    if entry.metadata.deletion_timestamp.is_none() {
        return "it exists and is not being deleted".into();
    }
    let error = entry
        .status
        .as_ref()
        .and_then(|status| status.last_error.as_ref());
    match error {
        Some(error) => format!("it is being deleted: {}", error.description),
        None => "it is being deleted".into(),
    }
}

/// Whether a restore can copy the backups from the bucket of the former seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyState {
    Possible,
    /// This seed has marked its own entry after the copy, and the source entry has ended.
    Ended,
    /// The entry and the Shoot record this end, and the seed does not show the phase. A thief of the
    /// certificate may have written both.
    EndedInGarden,
}

/// In phase `Claiming` the seed has opened nothing in this epoch, so the mark comes from a thief of the
/// certificate. `relied_on`: the Shoot of the flow. `recorded`: the Shoot that garden-controller-manager
/// reads.
fn judge_copy(
    relied_on: &Shoot,
    recorded: &Shoot,
    epoch: i64,
    own: Option<&gardencore::BackupEntry>,
) -> CopyState {
    let is_claiming = |shoot: &Shoot| {
        let record = shoot.status.as_ref().and_then(|status| status.ownership.as_ref());
        record.is_some_and(|record| record.phase == Some(OwnershipPhase::Claiming))
    };
    let mark = constants::BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH;
    let released = own.and_then(|own| own.annotations().get(mark));
    let is_marked = released == Some(&epoch.to_string());
    if !is_marked || is_claiming(relied_on) && is_claiming(recorded) {
        CopyState::Possible
    } else if is_claiming(relied_on) {
        CopyState::EndedInGarden
    } else {
        CopyState::Ended
    }
}

/// Whether garden-controller-manager has assigned the entry to this seed and this bucket.
fn look_assigned(entry: Option<&gardencore::BackupEntry>, own_seed: &str, bucket: &str) -> wait::WaitState {
    let Some(entry) = entry else {
        return wait::WaitState::Wait("garden-controller-manager has not created it yet".into());
    };
    let seed = entry.spec.seed_name.as_deref().unwrap_or_default();
    if seed != own_seed {
        return wait::WaitState::Wait(format!(
            "garden-controller-manager has not given it from seed {seed} to seed {own_seed} yet"
        ));
    }
    if entry.spec.bucket_name != bucket {
        return wait::WaitState::Wait(format!(
            "it names bucket {} and must name bucket {bucket}: see the Events of the Shoot",
            entry.spec.bucket_name
        ));
    }
    wait::WaitState::Done
}

/// Whether the entry may be written. A deletion from an earlier move uses the bucket that the entry names. So
/// an entry in deletion must never name the only backups of the shoot.
///
/// In a takeover garden-controller-manager releases the entry from a seed that can no longer end the
/// deletion.
fn look_writable(name: &str, own_seed: &str, entry: Option<&gardencore::BackupEntry>) -> wait::WaitState {
    let Some(entry) = entry.filter(|entry| entry.metadata.deletion_timestamp.is_some()) else {
        return wait::WaitState::Done;
    };
    let on = entry
        .status
        .as_ref()
        .and_then(|status| status.seed_name.as_deref());
    let on = on
        .or(entry.spec.seed_name.as_deref())
        .filter(|on| *on != own_seed);
    match (removal_refusal(entry), on) {
        (Some(cause), None) => wait::WaitState::Fail(configuration_problem(format!(
            "BackupEntry {name} of an earlier move is still being deleted, and cannot name the bucket of the former seed before it \
             is gone: {}. See \"The source BackupEntry cannot be deleted\" in docs/operate/runbooks.md",
            cause.trim_end_matches('.')
        ))),
        (_, on) => wait::WaitState::Wait(format!(
            "an earlier move has left it{}, and {}. See \"The source BackupEntry cannot be deleted\" in docs/operate/runbooks.md",
            on.map_or(String::new(), |on| format!(" to seed {on}")),
            describe_deletion(entry).trim_end_matches('.')
        )),
    }
}

impl Facts {
    /// Name of the shoot's BackupEntry, and of the folder in the bucket.
    #[must_use]
    pub fn backup_entry_name(&self) -> String {
        names::backup_entry(&self.residency.namespace, &names::uid(&self.shoot))
    }

    /// Whether this epoch of the shoot began without the final snapshot of the previous epoch (R17-45).
    async fn has_lost_changes(&self) -> Result<bool> {
        let newest = self.newest_shoot().await?;
        let ownership = newest
            .status
            .as_ref()
            .and_then(|status| status.ownership.as_ref());
        Ok(ownership.is_some_and(|ownership| {
            let restored = ownership.restored.as_ref();
            restored.is_some_and(|restored| restored.epoch == ownership.epoch)
        }))
    }

    /// Whether this seed keeps backups.
    #[must_use]
    pub fn has_backup(&self) -> bool {
        self.seed_object.spec.backup.is_some()
    }

    /// The shoot's BackupEntry, if the BackupEntry exists.
    pub async fn core_backup_entry(&self) -> Result<Option<gardencore::BackupEntry>> {
        self.read_entry(&self.backup_entry_name()).await
    }

    /// Whether the backups are still in the former seed's bucket and must be copied before etcd starts.
    pub async fn is_copy_of_backups_required(&self) -> Result<bool> {
        // The backups of a returned shoot are in the seed's own bucket.
        if self.operation != Operation::Restore
            || !self.has_backup()
            || ClaimPlan::from_shoot(&self.shoot).returns()
        {
            return Ok(false);
        }
        let etcds: Api<Etcd> = self.residency.seed.namespaced(&self.residency.namespace);
        let etcd = etcds
            .get_opt("etcd-main")
            .await
            .context("could not read Etcd etcd-main")?;
        // The copying Etcd has the same name.
        if etcd.is_some_and(|etcd| etcd.spec.backup.source_store.is_none()) {
            return Ok(false);
        }
        let own = self.core_backup_entry().await?;
        let (recorded, epoch) = (self.newest_shoot().await?, self.epoch());
        let seed = self.seed_object.name_any();
        match judge_copy(&self.shoot, &recorded, epoch, own.as_ref()) {
            CopyState::Possible if epoch > 1 => Ok(true),
            CopyState::EndedInGarden => Err(configuration_problem(format!(
                "status.ownership and BackupEntry {} say that seed {seed} has opened the shoot in epoch {epoch} from copied backups, and \
                 the seed does not show that, so that garden-controller-manager creates no source BackupEntry. Nothing is changed. See \
                 \"A phase that the seed does not show\" in docs/operate/runbooks.md",
                self.backup_entry_name()
            ))),
            CopyState::Possible | CopyState::Ended => Err(configuration_problem(format!(
                "Etcd etcd-main is gone, and the backups are in the bucket of this seed, so that nothing is copied: create \
                 Etcd etcd-main in namespace {} of seed {seed}, and etcd starts from these backups",
                self.residency.namespace
            ))),
        }
    }

    /// The bucket of this seed.
    pub(crate) fn bucket(&self) -> Result<String> {
        self.seed_object
            .uid()
            .ok_or_else(|| Error::bug("a Seed that was read has no uid"))
    }

    /// After a hand-over garden-controller-manager assigns the entry to the seed that has the shoot; seeds do
    /// not assign the entry.
    async fn wait_until_given_to_this_seed(&self) -> Result<Option<gardencore::BackupEntry>> {
        let (own, bucket) = (self.seed_object.name_any(), self.bucket()?);
        let limit = self.residency.settings.timeouts.backup_entry.severe;
        let look = |entry: Option<&gardencore::BackupEntry>| look_assigned(entry, &own, &bucket);
        wait::until(&self.entries(), &self.backup_entry_name(), limit, look).await
    }

    /// The bucket from which this epoch is restored, as garden-controller-manager has recorded.
    async fn wait_for_source_bucket(&self) -> Result<String> {
        let (own, epoch) = (self.bucket()?, self.epoch());
        let shoots: Api<Shoot> = self.garden.namespaced(&self.shoot_namespace());
        let limit = self.residency.settings.timeouts.backup_entry.severe;
        let look = |shoot: Option<&Shoot>| look_recorded(shoot, epoch, &own);
        let shoot = Box::pin(wait::until(&shoots, &self.shoot.name_any(), limit, look)).await?;
        let bucket = shoot.as_ref().and_then(recorded);
        bucket
            .map(str::to_owned)
            .ok_or_else(|| Error::bug("an awaited bucket is not recorded"))
    }

    fn source_name(&self) -> String {
        format!("{SOURCE}{}", self.backup_entry_name())
    }

    /// Requests an operation of this seed's backup controllers. The epoch lets the controllers begin with an
    /// entry that was assigned to this seed.
    async fn request_operation(&self, entry: Option<&gardencore::BackupEntry>) -> Result<()> {
        let Some(entry) = entry else {
            return Err(Error::bug("an awaited BackupEntry was not read"));
        };
        let what = if self.operation == Operation::Restore {
            operation::RESTORE
        } else {
            operation::RECONCILE
        };
        let body = request(entry, what, self.epoch());
        let written = FIELD_MANAGER
            .merge(&self.entries(), &entry.name_any(), &body)
            .await;
        written.map(|_| ())
    }

    async fn wait_for_entry(&self, name: &str) -> Result<()> {
        let own = self.seed_object.name_any();
        self.await_entry(name, |entry| {
            entry.map_or(ObjectState::Missing, |entry| look_reconciled(entry, &own))
        })
        .await
    }

    async fn await_entry(
        &self,
        name: &str,
        look: impl Fn(Option<&gardencore::BackupEntry>) -> ObjectState + Send + Sync,
    ) -> Result<()> {
        let limits = self.residency.settings.timeouts.backup_entry;
        let mut object_wait = ObjectWait::new(format!("BackupEntry {name}"));
        let first = wait::until(&self.entries(), name, limits.severe, |entry| {
            object_wait.evaluate(look(entry))
        })
        .await;
        if first.is_ok() || object_wait.failed() {
            return object_wait.outcome(first).map(|_| ());
        }
        object_wait.be_severe();
        let rest = limits.timeout.saturating_sub(limits.severe);
        let second = wait::until(&self.entries(), name, rest, |entry| {
            object_wait.evaluate(look(entry))
        })
        .await;
        object_wait.outcome(second).map(|_| ())
    }

    async fn read_entry(&self, name: &str) -> Result<Option<gardencore::BackupEntry>> {
        self.entries()
            .get_opt(name)
            .await
            .context(format_args!("could not read BackupEntry {name}"))
    }

    fn entries(&self) -> Api<gardencore::BackupEntry> {
        self.garden.namespaced(&self.shoot_namespace())
    }
}

/// The change that requests an operation. This flow copies later: a preset report of copied backups ends, or
/// a deletion would remove the only backups.
fn request(entry: &gardencore::BackupEntry, what: &str, epoch: i64) -> Value {
    let mut annotations = json!(annotations(what));
    annotations[constants::BACKUP_ENTRY_BACKUPS_COPIED] = Value::Null;
    let assigned = constants::BACKUP_ENTRY_ASSIGNED_IN_EPOCH;
    // Epoch 1 has no annotation on the entries of an older version.
    if epoch > 1 || entry.annotations().contains_key(assigned) {
        annotations[constants::OWNERSHIP_EPOCH] = json!(epoch.to_string());
    }
    json!({"metadata": {"annotations": annotations}})
}

fn look_reconciled(entry: &gardencore::BackupEntry, own_seed: &str) -> ObjectState {
    let Some(status) = &entry.status else {
        return ObjectState::Pending("no gardenlet has answered yet".into());
    };
    let Some(last) = &status.last_operation else {
        return ObjectState::Pending("no gardenlet has started yet".into());
    };
    if status.seed_name.as_deref().is_some_and(|seed| seed != own_seed) {
        return ObjectState::Pending("the former seed has not let go of it yet".into());
    }
    let touched = entry
        .annotations()
        .get(constants::TIMESTAMP)
        .and_then(|text| text.parse::<jiff::Timestamp>().ok());
    if touched.is_some_and(|touched| last.last_update_time.0.as_second() < touched.as_second()) {
        return ObjectState::Pending("the last change has not been taken up yet".into());
    }
    if let Some(error) = &status.last_error {
        return ObjectState::Failing(error.clone());
    }
    if let Some(operation) = entry.annotations().get(constants::OPERATION) {
        return ObjectState::Pending(format!("operation {operation} is not finished"));
    }
    if last.state != LastOperationState::Succeeded || last.type_ == LastOperationType::Migrate {
        return ObjectState::Pending(format!("{} is {}: {}", last.type_, last.state, last.description));
    }
    if status.observed_generation != entry.metadata.generation {
        return ObjectState::Pending("the last change has not been seen yet".into());
    }
    ObjectState::Done
}

#[cfg(test)]
#[path = "backup_entry_tests.rs"]
mod tests;
