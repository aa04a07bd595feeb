//! The copy of backups from the former seed's bucket: an Etcd with a source store, for which etcd-druid runs
//! a Job (R17-24..R17-29). This Etcd has the name etcd-main and is deleted before the deployment of the real
//! etcd-main.

use std::time::Duration;

use api::{
    constants::{OWNERSHIP_EPOCH, SHOOT_ACCEPT_LOSS},
    druid::{BackupSpec, Etcd, RequiredSnapshot},
    gardencore::{Shoot, shoot::Ownership},
};
use kube::ResourceExt;
use mutation::Mutation;
use runtime::{
    Error, Result,
    client::{
        Cluster,
        wait::{self, WaitState},
        wait_progress,
    },
    error::Explain,
};

use crate::{
    ClaimEvidence, ClaimPlan, FIELD_MANAGER, Facts, FenceClock, Residency,
    etcd::{
        etcds::{MAIN, epoch_annotation},
        planned_copy::{self, LossConsent},
        ready::look_ready,
    },
    secrets::config::{BACKUP_SECRET, SOURCE_SECRET},
    task::{BUCKET, NONE, PartTask},
};

/// Upper bound of the time between a copy's last poll of the source and the timeout. Covers the poll interval
/// (`etcd_backup_restore::copy::POLL`) and the rounding to seconds.
const LAST_POLL_MARGIN: Duration = Duration::from_secs(3);

/// The copy.
#[derive(Debug)]
pub struct EtcdCopy;

impl EtcdCopy {
    /// [`Self::deploy`], as a task.
    pub const DEPLOY: PartTask<Facts, FenceClock> = PartTask::exchanging(
        "Copying etcd backups to new seed's backup bucket",
        BUCKET,
        |input, fence| Box::pin(Self::deploy(input, fence)),
    );
    /// [`Self::ready`], as a task.
    pub const READY: PartTask<Facts, ClaimEvidence> = PartTask::exchanging(
        "Waiting until etcd backups are copied",
        BUCKET,
        |input, evidence| Box::pin(Self::ready(input, evidence)),
    );
    /// [`Self::destroy`], as a task.
    pub const DESTROY: PartTask<Residency> =
        PartTask::new("Destroying copy of etcd backups", NONE, |input| {
            Box::pin(Self::destroy(input))
        });

    /// "Copying etcd backups to new seed's backup bucket": writes the Etcd that copies. The remaining time of
    /// the fence is the timeout of a copy whose source may still act. Keeps the timeout of a copy of this
    /// epoch that already runs: a change would restart the copy, and the wait for a final snapshot would
    /// begin again. A copy of an earlier epoch is deleted.
    pub async fn deploy(f: &Facts, fence: &FenceClock) -> Result<()> {
        let api = f.residency.etcds();
        let found = api.get_opt(MAIN).await.context("could not read Etcd etcd-main")?;
        if found
            .as_ref()
            .is_some_and(|found| found.spec.backup.source_store.is_none())
        {
            // The real etcd-main already runs with the copied backups.
            return Ok(());
        }
        if found.as_ref().is_some_and(|found| !is_of_epoch(found, f.epoch())) {
            // An applied Etcd would keep the report, which belongs to the source of a different epoch.
            Box::pin(Self::destroy(&f.residency)).await?;
        }
        let mut etcd = f.etcd(MAIN, Some(f.store(BACKUP_SECRET).await?));
        etcd.spec.backup.source_store = Some(f.store(SOURCE_SECRET).await?);
        if ClaimPlan::from_shoot(&f.shoot).fences() {
            let begun = found.filter(|found| is_of_epoch(found, f.epoch()));
            let left = fence.left(&f.owner_check)?;
            let snapshot_timeout = begun.and_then(|copy| copy.spec.backup.etcd_snapshot_timeout);
            let snapshot_timeout = snapshot_timeout.unwrap_or_else(|| until_fenced(left));
            etcd.spec.backup.etcd_snapshot_timeout = Some(snapshot_timeout);
        }
        require_end(&mut etcd.spec.backup, &f.newest_shoot().await?);
        FIELD_MANAGER.apply(&api, &etcd).await.map(|_| ())
    }

    /// "Waiting until etcd backups are copied": waits for the copy, and records the report of the copy. The
    /// error of the copying process is the error of the step.
    pub async fn ready(f: &Facts, evidence: &ClaimEvidence) -> Result<()> {
        let ClaimEvidence { fence, copy: report } = evidence;
        Box::pin(
            f.residency
                .wait_until_etcd(MAIN, f.residency.settings.timeouts.etcd_copy, look_copied),
        )
        .await?;
        let found = f
            .residency
            .etcds()
            .get_opt(MAIN)
            .await
            .context("could not read Etcd etcd-main")?;
        let Some(copy) = found.filter(|copy| copy.spec.backup.source_store.is_some()) else {
            // The real etcd-main runs, and the choice is recorded.
            return Ok(());
        };
        if !is_of_epoch(&copy, f.epoch()) {
            return Err(Error::transient(format!(
                "Etcd {MAIN} has copied the backups for another epoch than epoch {} of the shoot: the backups are copied again",
                f.epoch()
            )));
        }
        let Some(copied) = copy.status.and_then(|status| status.copied) else {
            // The pod is gone, and with the pod the report. No etcd opens without a report.
            Box::pin(Self::destroy(&f.residency)).await?;
            Box::pin(Self::deploy(f, fence)).await?;
            return Err(Error::transient(
                "the copy of etcd backups has ended without a report of what it has copied: it is run again",
            ));
        };
        report.record(Some(Box::pin(planned_copy::settle(f, copied)).await?));
        Ok(())
    }

    /// Removes the user's consent to a loss: the consent was for this copy alone.
    pub(crate) async fn forget_accepted_loss(f: &Facts) -> Result<()> {
        let shoot = f.newest_shoot().await?;
        if !shoot.annotations().contains_key(SHOOT_ACCEPT_LOSS) {
            return Ok(());
        }
        let api = f.garden.namespaced::<Shoot>(&f.shoot_namespace());
        FIELD_MANAGER
            .annotate(&api, &shoot.name_any(), SHOOT_ACCEPT_LOSS, None)
            .await
            .map(drop)
    }

    /// "Destroying copy of etcd backups": deletes the copying Etcd, and waits until the Etcd is gone, because
    /// the name is needed (R17-29).
    pub async fn destroy(residency: &Residency) -> Result<()> {
        let api = residency.etcds();
        let found = api.get_opt(MAIN).await.context("could not read Etcd etcd-main")?;
        let Some(copy) = found.filter(|found| found.spec.backup.source_store.is_some()) else {
            return Ok(());
        };
        let name = copy.name_any();
        residency.destroy_etcd(&name).await?;
        wait::until_gone(&api, &name, residency.settings.timeouts.etcd.timeout).await
    }
}

/// Whether the copy is complete; reports the copied bytes meanwhile.
fn look_copied(etcd: Option<&Etcd>) -> WaitState {
    let status = etcd.and_then(|etcd| etcd.status.as_ref());
    if let Some(progress) = status.and_then(|status| status.copying) {
        wait_progress::report_copied(progress.copied_bytes, progress.total_bytes);
    }
    look_ready(etcd)
}

/// Whether the Etcd was applied in this epoch of the shoot.
fn is_of_epoch(etcd: &Etcd, epoch: i64) -> bool {
    let wanted = epoch_annotation(epoch).unwrap_or_default();
    etcd.annotations().get(OWNERSHIP_EPOCH) == wanted.get(OWNERSHIP_EPOCH)
        || Mutation::CopyOfEarlierEpochCounts.is_active()
}

/// Sets the target of the copy: the recorded end of the source's epoch, less the loss that a user accepts.
fn require_end(backup: &mut BackupSpec, shoot: &Shoot) {
    let status = shoot.status.as_ref();
    let ownership = status.and_then(|status| status.ownership.as_ref());
    let Some(sealed) = ownership.and_then(Ownership::sealed_source) else {
        return;
    };
    backup.required_revision = Some(sealed.revision);
    backup.required_snapshot = Some(RequiredSnapshot {
        name: sealed.snapshot.clone(),
        sha256: sealed.sha256.clone(),
    });
    backup.accepted_loss = LossConsent::from_shoot(shoot).and_then(LossConsent::revisions);
}

/// Timeout of a copy that begins beside a fence with this time left. The copy polls the source for the last
/// time when the source can add no data to the backups any more. Then the copy copies the data that are
/// there. The timeout is much shorter than for a source that has promised a final snapshot, because this
/// source may be dead.
fn until_fenced(left: Duration) -> String {
    format!("{}s", (left + LAST_POLL_MARGIN).as_secs())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    /// R17-27. Only the end of the copied epoch counts, and consent is a number.
    #[test]
    fn a_copy_must_reach_the_end_that_the_hand_over_recorded() {
        let required = |epoch: i64, accepted: Option<&str>| {
            let sealed = json!({"epoch": 1, "revision": 54, "snapshot": "Full.final", "sha256": "aa"});
            let shoot: Shoot = serde_json::from_value(json!({
                "metadata": {"name": "web", "annotations": accepted.map(|number| json!({(SHOOT_ACCEPT_LOSS): number}))},
                "spec": {"kubernetes": {}, "provider": {"type": "local"}, "region": "local"},
                "status": {"seedName": "b", "ownership": {"epoch": epoch, "sealed": sealed}},
            }))
            .unwrap();
            let mut backup = BackupSpec::default();
            require_end(&mut backup, &shoot);
            (backup.required_revision, backup.accepted_loss)
        };
        assert_eq!(required(2, None), (Some(54), None));
        assert_eq!(required(2, Some("17")), (Some(54), Some(17)));
        for nonsense in ["0", "-17", "all", "", "unknown"] {
            assert_eq!(required(2, Some(nonsense)), (Some(54), None), "{nonsense}");
        }
        assert_eq!(required(3, Some("17")), (None, None));
    }

    /// I2: the last poll is never before the end of the fence, and at most two seconds before the timeout.
    #[test]
    fn a_copy_looks_for_the_last_time_when_the_source_is_fenced() {
        let pause = Duration::from_secs(2);
        for left in [0, 1, 999, 1000, 1001, 23_036, 24_000] {
            let left = Duration::from_millis(left);
            let told: u64 = until_fenced(left)
                .trim_end_matches('s')
                .parse()
                .unwrap_or_default();
            let last_look = Duration::from_secs(told).saturating_sub(pause);
            assert!(
                last_look >= left && last_look < left + Duration::from_secs(2),
                "{left:?}: {told}"
            );
        }
    }
}
