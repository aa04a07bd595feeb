//! The final snapshot: the gardenlet requests the snapshot from etcd-backup-restore, or waits for the
//! snapshot that etcd-backup-restore takes after the end of the ownership. The next seed starts from this
//! snapshot (I2).

use std::time::Duration;

use api::{
    constants::{DRUID_MIGRATING, finalizer::GARDENER},
    gardencore::{BackupEntry, shoot::SealedEpoch},
    meta::ErrorCode,
};
use futures::future::{BoxFuture, FutureExt};
use http::{Method, StatusCode};
use kube::Client;
use runtime::{Error, Result, client::Cluster, error::Explain};
use sidecar_protocol::{
    ErrorClass, EtcdGateState, FullSnapshot, LatestSnapshots, ReportedSnapshot, SealingReport, SidecarHealth,
    SidecarOwnership,
};

use crate::{
    Facts, Residency, Writers, configuration_problem,
    etcd::{
        copied::{ProvenEnd, acknowledged_end},
        ended,
        etcds::MAIN,
        owner::{self, FinalSnapshot},
        sidecar::{SidecarAnswer, ask, ask_with, client},
    },
    task::{BUCKET, PartTask},
};

/// Interval between two polls for the final snapshot, because etcd-backup-restore sends no notification. Much
/// shorter than the time of a snapshot.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Longest time that the first report of phase `Sealing` may delay a move.
const ANNOUNCED_WITHIN: Duration = Duration::from_secs(1);
/// Longest time of polling in one attempt of the step. Much shorter than the timeout of the step, so that the
/// error at the end states the reason.
const POLL_TIMEOUT: Duration = Duration::from_secs(60);

/// The shoot's backups, by requests to etcd-backup-restore.
#[derive(Debug)]
pub struct Backups;

impl Backups {
    /// [`Self::check`], as a task.
    pub const CHECK: PartTask<Facts> = PartTask::new("Checking that backups can be taken", BUCKET, |input| {
        Box::pin(Self::check(input))
    });
    /// [`Self::take_snapshot_before_sleep`], as a task.
    pub const TAKE_SNAPSHOT_BEFORE_SLEEP: PartTask<Residency> =
        PartTask::new("Creating ETCD Snapshot before etcd sleeps", BUCKET, |input| {
            Box::pin(Self::take_snapshot_before_sleep(input))
        });
    /// [`Self::take_final_snapshot`], as a task. With owner checks, `OwnerRecord::WITHDRAW` already starts
    /// the snapshot (R17-50). So a new check before the snapshot comes after `Writers` and before
    /// `Departure::SEAL`.
    pub const TAKE_FINAL_SNAPSHOT: PartTask<Facts, ProvenEnd> =
        PartTask::exchanging("Creating ETCD Snapshot", BUCKET, |input, end| {
            Box::pin(Self::take_final_snapshot(input, end))
        });
    /// [`Self::confirm_final_snapshot`], as a task.
    pub const CONFIRM_FINAL_SNAPSHOT: PartTask<Facts, ProvenEnd> = PartTask::exchanging(
        "Making sure that nothing writes to the shoot any more",
        BUCKET,
        |input, end| Box::pin(Self::confirm_final_snapshot(input, end)),
    );
    /// [`Self::resume`], as a task.
    pub const RESUME: PartTask<Residency> =
        PartTask::new("Resuming backups", BUCKET, |input| Box::pin(Self::resume(input)));

    /// "Checking that backups can be taken": runs before the first change of a move, while the API still
    /// serves. A move without a place for the final snapshot would end with a stopped shoot that cannot
    /// continue.
    pub async fn check(f: &Facts) -> Result<()> {
        check_backup_entry(f).await?;
        let client = client(&f.residency).await?;
        let stored = ask_for_effect(&f.residency, &client, "/snapshot/delta").await?;
        // etcd had no changes, so no delta snapshot was stored and storage is not proved.
        if stored.read::<Option<ReportedSnapshot>>("a snapshot")?.is_none() {
            let full = ask_for_effect(&f.residency, &client, "/snapshot/full").await?;
            full.check("a snapshot")?;
        }
        Ok(())
    }

    /// "Creating ETCD Snapshot before etcd sleeps": the bucket is the only copy of the data while the shoot
    /// sleeps. The caller must make sure that etcd has no writers any more.
    pub async fn take_snapshot_before_sleep(residency: &Residency) -> Result<()> {
        let client = client(residency).await?;
        let full = ask_for_effect(residency, &client, "/snapshot/full").await?;
        full.check("take a snapshot")
    }

    /// "Creating ETCD Snapshot": a full snapshot that is marked as the last snapshot of the epoch. The caller
    /// must make sure that etcd has no writers any more. Where the owner is checked, the owner record must be
    /// gone, too: the step then waits for the snapshot instead of a request (R17-50). The snapshot counts
    /// only after etcd-backup-restore has proved that the bucket holds etcd's last revision in the present
    /// epoch (I2). `end` keeps this proof for the hand-over.
    pub async fn take_final_snapshot(f: &Facts, end: &ProvenEnd) -> Result<()> {
        check_backup_entry(f).await?;
        f.residency.mark_etcd(DRUID_MIGRATING, Some("true")).await?;
        let found = f.residency.etcds().get_opt(MAIN).await;
        let found = found.context("could not read Etcd etcd-main")?;
        let client = client(&f.residency).await?;
        match owner::final_snapshot(found.as_ref(), f.seed_object.spec.checks_owners()) {
            FinalSnapshot::OnRequest => end.record(request_final_snapshot(f, &client).await?),
            FinalSnapshot::OnSeal => {
                end.record(await_final_snapshot(&client, f.epoch(), Ended::BySealing).await?);
            }
            other => return Err(owner::cannot_be_taken(other)),
        }
        Ok(())
    }

    /// Reports to etcd-backup-restore that phase `Sealing` was recorded, before the owner record is deleted.
    /// The wait for the final snapshot repeats the report. This early report saves a check in between, so a
    /// failure is only logged.
    pub(crate) async fn announce_sealing(f: &Facts) {
        let reported = async { report_sealing(&client(&f.residency).await?, f.epoch()).await };
        match tokio::time::timeout(ANNOUNCED_WITHIN, reported).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(
                error = format_args!("{error:#}"),
                "phase Sealing is reported later"
            ),
            Err(_) => tracing::debug!("phase Sealing is reported later: no answer of etcd-backup-restore"),
        }
    }

    /// The proof of the final snapshot once more, directly before the hand-over. Checks first that no process
    /// is left that could write. Without an owner check etcd has no gate: a process that started again after
    /// the first proof, and has ended since, may have written. etcd-backup-restore then takes a new final
    /// snapshot, and the hand-over records the end of the new snapshot. A sealed etcd takes no more writes.
    pub async fn confirm_final_snapshot(f: &Facts, end: &ProvenEnd) -> Result<()> {
        Writers::check_gone(&f.residency).await?;
        let found = f.residency.etcds().get_opt(MAIN).await;
        let found = found.context("could not read Etcd etcd-main")?;
        let source = owner::final_snapshot(found.as_ref(), f.seed_object.spec.checks_owners());
        if owner::needs_second_proof(source)? {
            end.record(request_final_snapshot(f, &client(&f.residency).await?).await?);
        }
        Ok(())
    }

    /// "Waiting until the last changes are saved": runs on a seed that lost the shoot, and had the shoot
    /// last in the epoch `residency_epoch`. The etcd may be of an earlier epoch. The new owner continues
    /// without these changes (R17-46). Returns the end of the epoch of the etcd, with the last revision that
    /// was acknowledged to a client, or `None` when no etcd here has changes that are not saved: the Etcd is
    /// gone, has no backups, or was stopped after a snapshot. Removes the mark of an etcd that was stopped
    /// for a later epoch.
    ///
    /// The caller must make sure that etcd has no writers any more.
    ///
    /// # Errors
    /// The final snapshot does not exist yet, or etcd-backup-restore reports no end of the epoch; the error
    /// states the reason. The snapshot may be stored at any time. An etcd that is stopped without a snapshot
    /// is an error, too.
    pub async fn save_what_is_left(
        residency: &Residency,
        residency_epoch: i64,
    ) -> Result<Option<SealedEpoch>> {
        let found = residency.etcds().get_opt(MAIN).await;
        let found = found.context("could not read Etcd etcd-main")?;
        let Some(etcd) = found.filter(owner::has_own_backups) else {
            return Ok(None);
        };
        let epoch = owner::data_epoch(&etcd, residency_epoch)?;
        // `true` even for a seed without owner checks: the new owner is known here.
        let end = match owner::final_snapshot(Some(&etcd), true) {
            FinalSnapshot::OnSeal => {
                let client = client(residency).await?;
                let end = await_final_snapshot(&client, epoch, Ended::ByTakeover).await?;
                let latest = ask(&client, Method::GET, "/snapshot/latest").await?;
                let revision = read_acknowledged_end(end.revision, &latest)?;
                SealedEpoch { revision, ..end }
            }
            FinalSnapshot::OnRequest => ask_for_final_snapshot(&client(residency).await?, epoch).await?,
            FinalSnapshot::EtcdStopped => {
                ended::check_saved(residency, &etcd).await?;
                return Ok(None);
            }
            FinalSnapshot::EtcdMissing => return Ok(None),
        };
        ended::forget_stop(residency).await?;
        Ok(Some(end))
    }

    /// "Resuming backups": backups continue after a cancelled move. No effect where backups already run.
    pub async fn resume(residency: &Residency) -> Result<()> {
        let client = client(residency).await?;
        let answer = ask(&client, Method::POST, "/snapshot/resume").await?;
        answer.check("resume backups")?;
        residency.mark_etcd(DRUID_MIGRATING, None).await
    }
}

/// Fails when the BackupEntry is missing, is being deleted or reports an error. The BackupEntry names the
/// place of the data, so a move stops without the BackupEntry.
async fn check_backup_entry(f: &Facts) -> Result<()> {
    judge_backup_entry(&f.backup_entry_name(), f.core_backup_entry().await?)
}

fn judge_backup_entry(name: &str, entry: Option<BackupEntry>) -> Result<()> {
    let Some(entry) = entry else {
        return Err(configuration_problem(format!(
            "the shoot has no BackupEntry {name}, and could not be restored elsewhere: set spec.seedName back, let the \
             shoot be reconciled, and begin the move again"
        )));
    };
    // No process assigns such an entry to the destination, which would wait for ever.
    if entry.metadata.deletion_timestamp.is_some() {
        return Err(configuration_problem(format!(
            "BackupEntry {name} is being deleted and cannot go to a different seed: take finalizer {GARDENER} away from the entry; \
             garden-controller-manager creates the entry again, and no backup is deleted"
        )));
    }
    let status = entry.status.unwrap_or_default();
    if let Some(error) = status.last_error {
        return Err(Error::config(
            error
                .codes
                .first()
                .copied()
                .unwrap_or(ErrorCode::ErrRetryableInfraDependencies),
            format!("BackupEntry {name} reports an error: {}", error.description),
        ));
    }
    Ok(())
}

/// The last revision that was acknowledged to a client. An answer with an error states no revision, and would
/// count every change after the seal as lost.
fn read_acknowledged_end(end: i64, latest: &SidecarAnswer) -> Result<i64> {
    let latest: LatestSnapshots = latest.read("report the final snapshot")?;
    Ok(acknowledged_end(end, latest.sealed_revision))
}

/// The event that ends the epoch of the final snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// This seed has recorded phase `Sealing`, and deletes the owner record.
    BySealing,
    /// A different seed has begun a later epoch.
    ByTakeover,
}

/// Reports phase `Sealing` to etcd-backup-restore. From then on, a deleted owner record ends the epoch there.
/// An etcd-backup-restore that answers 404 checks no owner, or is older than this report and needs no report.
async fn report_sealing(client: &Client, epoch: i64) -> Result<()> {
    let body = serde_json::to_vec(&SealingReport { epoch }).map_err(|e| Error::bug(e.to_string()))?;
    let answer = ask_with(client, Method::POST, "/ownership/sealing", body).await?;
    if answer.status.is_success() || answer.status == StatusCode::NOT_FOUND {
        return Ok(());
    }
    Err(Error::transient(format!(
        "could not report to etcd-backup-restore that the seed ends ownership epoch {epoch} ({}): {}",
        answer.status,
        answer.error().sentence()
    )))
}

/// Requests the final snapshot from an etcd-backup-restore that takes the snapshot on request. Returns the
/// end of the epoch.
async fn request_final_snapshot(f: &Facts, client: &Client) -> Result<SealedEpoch> {
    // An etcd-backup-restore that still checks the owner takes no final snapshot while clients may write.
    report_sealing(client, f.epoch()).await?;
    ask_for_final_snapshot(client, f.epoch()).await
}

/// Requests the final snapshot, or reads the final snapshot that exists. Returns the end of the epoch.
async fn ask_for_final_snapshot(client: &Client, epoch: i64) -> Result<SealedEpoch> {
    let answer = ask(client, Method::POST, "/snapshot/full?final=true").await?;
    if !answer.status.is_success() && answer.error().code == Some(ErrorClass::Finished) {
        let latest = ask(client, Method::GET, "/snapshot/latest").await?;
        let latest: LatestSnapshots = latest.read("report the final snapshot")?;
        return check_final(&latest.full_snapshot.unwrap_or_default(), epoch);
    }
    check_final(&answer.read("take the final snapshot")?, epoch)
}

/// Waits for the final snapshot that etcd-backup-restore takes when the shoot has no owner any more (R17-51),
/// or a different owner. Returns the end of the epoch.
async fn await_final_snapshot(client: &Client, epoch: i64, ended: Ended) -> Result<SealedEpoch> {
    let mut last = Error::transient("etcd-backup-restore was not asked for the final snapshot yet");
    let looks = async {
        loop {
            match look_for_final_snapshot(client, epoch, ended).await {
                Ok(end) => return end,
                Err(why) => last = why,
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(POLL_TIMEOUT, looks).await.map_err(|_| last)
}

/// Reads the final snapshot. The error states why the snapshot is missing or not proved (R17-52).
async fn look_for_final_snapshot(client: &Client, epoch: i64, ended: Ended) -> Result<SealedEpoch> {
    // The report comes first, and in each attempt: etcd-backup-restore forgets the report on a restart.
    if ended == Ended::BySealing {
        report_sealing(client, epoch).await?;
    }
    let latest = ask(client, Method::GET, "/snapshot/latest").await?;
    let latest: LatestSnapshots = latest.read("report the final snapshot")?;
    if latest.finished {
        return check_final(&latest.full_snapshot.unwrap_or_default(), epoch);
    }
    // An answer that cannot be read explains nothing, like the 404 of a process without an owner check.
    let ownership = ask(client, Method::GET, "/ownership").await?;
    let ownership: SidecarOwnership = ownership.read("report the owner").unwrap_or_default();
    let health = ask(client, Method::GET, "/healthz").await?;
    let health: SidecarHealth = health.read("report its health").unwrap_or_default();
    Err(not_finished(&ownership, &health))
}

/// The reason why there is no final snapshot yet, from the `/ownership` and `/healthz` reports of
/// etcd-backup-restore.
fn not_finished(ownership: &SidecarOwnership, health: &SidecarHealth) -> Error {
    let why = match ownership.why.as_str() {
        "" => "no reason is reported",
        why => why,
    };
    let message = match &ownership.state {
        Some(EtcdGateState::Sealed) => match &health.error {
            Some(error) => format!("the final snapshot is not taken: {error}"),
            None => "the final snapshot is not taken yet".to_owned(),
        },
        Some(EtcdGateState::Serving) => {
            format!(
                "etcd-backup-restore has not noticed yet that the owner record is gone ({why}): no final snapshot yet"
            )
        }
        Some(state) => format!(
            "etcd-backup-restore is {state} ({why}): it takes the final snapshot when it can see that the owner record is gone"
        ),
        None => "etcd-backup-restore does not say who owns the shoot: is its pod older than the owner check?"
            .to_owned(),
    };
    let error = health.error.as_deref().filter(|_| ownership.is_lost());
    match error.and_then(ErrorClass::from_sentence) {
        Some(ErrorClass::Credentials) => Error::config(ErrorCode::ErrInfraUnauthenticated, message),
        Some(ErrorClass::Store) => Error::config(ErrorCode::ErrRetryableInfraDependencies, message),
        _ => Error::transient(message),
    }
}

/// The request is a GET with an effect, so the permit counts the request: the end of the permit waits for the
/// answer.
fn ask_for_effect(
    residency: &Residency,
    client: &Client,
    path: &'static str,
) -> BoxFuture<'static, Result<SidecarAnswer>> {
    let (permit, client) = (residency.seed.permit().clone(), client.clone());
    // Boxed, because otherwise the compiler cannot prove that the future is `Send`.
    let asking = async move { ask(&client, Method::GET, path).await }.boxed();
    async move { permit.effect(asking).await? }.boxed()
}

/// Checks that the snapshot is the final snapshot of this epoch, was read back from the bucket, and holds
/// all acknowledged writes: up to etcd's last revision, or up to the revision at which the epoch was sealed.
/// After the seal leases expire in etcd, and no client reads such a revision.
fn check_final(full: &FullSnapshot, epoch: i64) -> Result<SealedEpoch> {
    let (snapshot, proof) = (&full.snapshot, full.proof.as_ref());
    let refused = |why: String| {
        Err(Error::transient(format!(
            "etcd-backup-restore took a snapshot that does not count as the final one: {why}"
        )))
    };
    if !snapshot.is_final {
        return refused("the snapshot is not marked as final".into());
    }
    if !full.verified {
        return refused("the snapshot was not read back from the bucket".into());
    }
    let (stored, last) = (snapshot.last_revision, proof.map(|proof| proof.etcd_revision));
    let sealed = proof.and_then(|proof| proof.sealed_revision);
    let holds_sealed = sealed.is_some() && last >= stored && stored >= sealed;
    let Some(revision) = stored.filter(|_| stored == last || holds_sealed) else {
        let word = |revision: Option<i64>| revision.map_or("none".to_owned(), |number| number.to_string());
        return refused(format!(
            "the snapshot ends with revision {}, and etcd with {}",
            word(stored),
            word(last)
        ));
    };
    // An older etcd-backup-restore knows no epochs.
    let of = proof.and_then(|proof| proof.epoch).unwrap_or(1);
    if of != epoch {
        return refused(format!(
            "the snapshot is of epoch {of}, and the shoot is in epoch {epoch}"
        ));
    }
    let sha256 = proof.and_then(|proof| proof.sha256.clone());
    let part = |part: Option<String>| part.filter(|part| !part.is_empty());
    let (Some(name), Some(sha256)) = (part(snapshot.snap_name.clone()), part(sha256)) else {
        return refused("the name and the sha256 of the snapshot are not reported".into());
    };
    Ok(SealedEpoch {
        epoch,
        revision,
        snapshot: name,
        sha256,
    })
}

#[cfg(test)]
#[path = "backups_tests.rs"]
mod tests;
