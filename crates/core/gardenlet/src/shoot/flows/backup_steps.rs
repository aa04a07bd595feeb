//! Steps that give etcd the backups to start from, and remove the temporary objects afterwards.

use api::gardencore::Shoot;
use flow::TaskId;
use parts::{
    BackupEntry, ClaimEvidence, ClaimPlan, ClaimSteps, EndedEtcd, EtcdCopy, ExtensionSecrets, Facts, Fence,
    SourceBackupEntry,
};

use super::graph::{ShootGraph, Steps, when};
use crate::Context;

/// The steps that apply.
#[derive(Clone, Copy)]
pub(crate) struct BackupInputs {
    /// The seed keeps backups.
    pub kept: bool,
    /// The control plane comes from a different seed.
    pub restoring: bool,
    /// The backups are in the bucket of the former seed, and are copied first.
    pub copy: bool,
    /// The steps of the ownership protocol that apply.
    pub claim: ClaimPlan,
}

/// The tasks that later steps wait for.
pub(crate) struct Prepared {
    /// etcd may be opened. Where phases are recorded, phase `Opening` is recorded.
    pub opened: TaskId,
    /// External resources may be changed. Where phases are recorded, phase `Held` is recorded.
    pub held: TaskId,
}

/// Prepares the data of etcd-main (R17-22..29). The order:
/// 1. The BackupEntry of the source, if its backups are copied, then the BackupEntry of this seed.
/// 2. The fence, if the source did not hand over the shoot. The copy starts when the DNS servers confirm this
///    seed, and reads the source bucket for the last time after the end of the fence.
/// 3. Phase `Opening`, after the copy and the fence. For a shoot that returns to this seed, there is no copy:
///    phase `Opening` follows the stop of the earlier etcd.
/// 4. Phase `Held`.
pub(crate) fn prepare<'a>(
    g: &mut ShootGraph<'a>,
    (f, evidence): (&'a Facts, &'a ClaimEvidence),
    BackupInputs {
        kept,
        restoring,
        copy,
        claim,
    }: BackupInputs,
    record_ready: TaskId,
    secrets: [TaskId; 2],
) -> Prepared {
    let [secrets, credentials] = secrets;
    let fence = &evidence.fence;
    let [source, source_ready] = when(g, copy).deploy_in_two::<SourceBackupEntry>(f, record_ready);
    let own_ready = when(g, kept).deploy::<BackupEntry>(f, [record_ready, source]);
    let bucket_claimed = if claim.returns() { own_ready } else { source_ready };
    let before_fence = [record_ready, bucket_claimed];
    let mut fenced = when(g, claim.fences());
    let witnesses_agree = fenced.exchange(Fence::BEGIN, (f, fence), before_fence);
    let fence_passed = fenced.exchange(Fence::PASS, (f, fence), witnesses_agree);
    let [_, old_etcd_stopped] = when(g, claim.returns()).steps(EndedEtcd::STOP, f, record_ready);
    // All owners of reserved Secrets have created their Secrets. No extension restores before that.
    let reserved = [secrets, credentials, source_ready, own_ready];
    let carried = when(g, restoring).step(ExtensionSecrets::RESTORE, f, reserved);
    let before_copy = [secrets, credentials, source_ready, own_ready, witnesses_agree];
    let mut optional = when(g, copy);
    let begun = optional.exchange(EtcdCopy::DEPLOY, (f, fence), before_copy);
    let copied = optional.exchange(EtcdCopy::READY, (f, evidence), begun);
    let prepared = optional.step(EtcdCopy::DESTROY, &f.residency, copied);
    let mut recorded = when(g, claim.begins_epoch());
    let before_open = [prepared, fence_passed, old_etcd_stopped];
    let opened = recorded.exchange(ClaimSteps::OPEN, (f, evidence), before_open);
    let held = recorded.exchange(ClaimSteps::HOLD, (f, fence), [opened, carried]);
    Prepared { opened, held }
}

/// The source's BackupEntry is needed until etcd runs here.
pub(crate) fn drop_source<'a>(g: &mut ShootGraph<'a>, f: &'a Facts, wanted: bool, etcd_ready: TaskId) {
    let mut g = when(g, wanted);
    let destroy = g.step(SourceBackupEntry::DESTROY, f, etcd_ready);
    g.step(SourceBackupEntry::GONE, f, destroy);
}

/// Warns the user of a restored Shoot, once, of a source BackupEntry with backups that the object store
/// keeps. A failed read must not fail the restore, because the restore has succeeded.
pub(crate) async fn report_source_left_behind(context: &Context, shoot: &Shoot) {
    match SourceBackupEntry::left_behind(&context.garden, shoot).await {
        Ok(None) => {}
        Ok(Some(sentence)) => {
            let events = &context.garden_events;
            events
                .warning(shoot, "SourceBackupEntryNotDeleted", &sentence)
                .await;
        }
        Err(error) => tracing::warn!(
            error = format_args!("{error:#}"),
            "could not check for a source BackupEntry that is left"
        ),
    }
}
