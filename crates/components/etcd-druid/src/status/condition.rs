//! Conditions of an Etcd.

use api::{
    constants::condition::{NO_SPACE, OWNERSHIP_VERIFIED},
    druid::{BackupSpec, EtcdCondition, VolumeLoss},
};
use jiff::SignedDuration;
use k8s_openapi::{
    api::core::v1::Pod,
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::Time},
};
use sidecar_protocol::{SidecarHealth, SidecarOwnership, SnapshotterPhase};

use super::{
    copy::{BACKUPS_COPIED, is_complete},
    fenced_etcd,
    past::{HAS_DATA, has_data},
    volume_loss,
};
use crate::{containers::statuses, names::ETCD_CONTAINER, observed::Observed};

/// Condition: clients can read and write.
pub const READY: &str = "Ready";
/// Condition: every member is ready.
pub const ALL_MEMBERS_READY: &str = "AllMembersReady";
/// Condition: etcd-backup-restore can do its work.
pub const BACKUP_READY: &str = "BackupReady";

/// How often the update time of `OwnershipVerified` is renewed while the rest of the condition stays: a write
/// for each Etcd. Much shorter than the time after which the gardenlet considers the condition as old.
const TELL_EVERY: SignedDuration = SignedDuration::from_mins(1);

/// The input of the conditions.
#[derive(Clone, Copy, Debug)]
pub struct Basis<'a> {
    /// Wanted members.
    pub replicas: i32,
    /// The backup settings, with the owner check.
    pub backup: &'a BackupSpec,
    /// Largest size of the database; `None` for the default.
    pub quota: Option<&'a Quantity>,
    /// Whether the Etcd only copies backups.
    pub copies: bool,
    /// Whether the etcd is being handed over, so that a final snapshot ends its backups.
    pub migrating: bool,
    /// The observed objects.
    pub observed: &'a Observed,
    /// The restore of a lost volume, while the loss is reported.
    pub volume_loss: Option<&'a VolumeLoss>,
}

impl Basis<'_> {
    /// The ownership state, while clients are deliberately kept away.
    pub(super) fn fence(&self) -> Option<&SidecarOwnership> {
        let said = self.observed.ownership.as_ref();
        said.filter(|said| self.backup.owner_check.is_some() && self.replicas > 0 && said.fences())
    }

    /// Why etcd refuses writes although a member is ready, if etcd does.
    pub(super) fn no_space(&self) -> Option<String> {
        let serves = self.replicas > 0 && self.observed.members.iter().any(is_pod_ready);
        (serves && self.observed.no_space).then(|| {
            let quota = self.quota.map_or("8Gi", |quota| quota.0.as_str());
            let sidecar = self.observed.sidecar.as_ref();
            let remedy = match sidecar.and_then(SidecarHealth::full_database) {
                Some(full) => format!("{full} (spec.etcd.quota of the Etcd)"),
                None if sidecar.is_some() => {
                    "etcd-backup-restore drops former values and defragments etcd. Delete objects, or raise \
                     spec.etcd.quota of the Etcd, if that does not help"
                        .to_owned()
                }
                None => "Delete objects, then compact and defragment etcd; or raise spec.etcd.quota of the Etcd".to_owned(),
            };
            format!(
                "etcd refuses writes: alarm NOSPACE is raised, as the database has reached its quota of {quota}. {remedy}."
            )
        })
    }
}

/// The conditions as of `now`; unchanged conditions keep their times.
#[must_use]
pub fn conditions(basis: Basis<'_>, before: &[EtcdCondition], now: &Time) -> Vec<EtcdCondition> {
    let wanted = if basis.copies {
        vec![backups_copied(basis.observed)]
    } else {
        of_member(basis, before)
    };
    let answers = basis.observed.ownership.is_some();
    wanted
        .into_iter()
        .map(|judged| {
            let renewed = answers && judged.type_ == OWNERSHIP_VERIFIED;
            judged.since(before, now, renewed)
        })
        .collect()
}

struct Judged {
    type_: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl Judged {
    fn new(type_: &'static str, (status, reason, message): fenced_etcd::Word) -> Self {
        Self {
            type_,
            status,
            reason,
            message,
        }
    }

    /// The transition time stays while the status stays. All times stay while the condition is otherwise
    /// unchanged too. `renewed`: the condition was checked just now, and users must see that, so the update
    /// time is renewed at intervals.
    fn since(self, before: &[EtcdCondition], now: &Time, renewed: bool) -> EtcdCondition {
        let mut condition = EtcdCondition {
            type_: self.type_.to_owned(),
            status: self.status.to_owned(),
            last_transition_time: now.clone(),
            last_update_time: now.clone(),
            reason: self.reason.to_owned(),
            message: self.message,
        };
        if let Some(old) = before
            .iter()
            .find(|old| old.type_ == self.type_ && old.status == self.status)
        {
            condition.last_transition_time = old.last_transition_time.clone();
            let is_told = !renewed || now.0.duration_since(old.last_update_time.0).abs() < TELL_EVERY;
            if is_told && old.reason == condition.reason && old.message == condition.message {
                condition.last_update_time = old.last_update_time.clone();
            }
        }
        condition
    }
}

fn of_member(basis: Basis<'_>, before: &[EtcdCondition]) -> Vec<Judged> {
    let mut judged = vec![ready(basis), all_members_ready(basis)];
    judged.extend(ownership_verified(basis, before).map(|word| Judged::new(OWNERSHIP_VERIFIED, word)));
    if basis.backup.store.is_some() {
        judged.push(backup_ready(basis));
        if has_data(before) || basis.observed.members.iter().any(is_pod_ready) {
            judged.push(Judged {
                type_: HAS_DATA,
                status: "True",
                reason: "WasReady",
                message: "etcd has served, so it does not start empty any more.".to_owned(),
            });
        }
    }
    judged.extend(basis.volume_loss.map(|loss| {
        let (type_, word) = volume_loss::judge(loss);
        Judged::new(type_, word)
    }));
    judged
}

/// `None` for a stopped etcd, unless its process may still run and outlasts a fence.
fn ownership_verified(basis: Basis<'_>, before: &[EtcdCondition]) -> Option<fenced_etcd::Word> {
    let check = basis.backup.owner_check.as_ref()?;
    let told = before.iter().find(|told| told.type_ == OWNERSHIP_VERIFIED);
    let told = told.map(|told| told.reason.as_str());
    if basis.replicas > 0 {
        let said = basis.observed.ownership.as_ref();
        return Some(fenced_etcd::verified(check, said, told));
    }
    (told.is_some_and(fenced_etcd::is_outlasting) && !basis.observed.members.is_empty())
        .then(fenced_etcd::stopping)
}

fn ready(basis: Basis<'_>) -> Judged {
    let (status, reason, message) = if basis.replicas == 0 {
        ("Unknown", "NoMembers", "etcd is stopped, as spec.replicas is 0.")
    } else if let Some(message) = basis.no_space() {
        return Judged::new(READY, ("False", NO_SPACE, message));
    } else if basis.observed.members.iter().any(is_pod_ready) {
        ("True", "Quorate", "Clients can read and write.")
    } else if let Some(fence) = basis.fence() {
        return Judged::new(READY, ("False", "Fenced", fenced_etcd::describe(fence)));
    } else {
        ("False", "QuorumLost", "No member is ready.")
    };
    Judged {
        type_: READY,
        status,
        reason,
        message: message.to_owned(),
    }
}

fn all_members_ready(basis: Basis<'_>) -> Judged {
    let (status, reason, message) = if basis.replicas == 0 {
        ("Unknown", "NoMembers", "etcd is stopped, as spec.replicas is 0.")
    } else if ready_members(basis.observed) >= basis.replicas {
        ("True", "AllMembersReady", "Every member is ready.")
    } else if let Some(fence) = basis.fence() {
        return Judged::new(
            ALL_MEMBERS_READY,
            ("False", "Fenced", fenced_etcd::describe(fence)),
        );
    } else {
        ("False", "NotAllMembersReady", "A member is missing or not ready.")
    };
    Judged {
        type_: ALL_MEMBERS_READY,
        status,
        reason,
        message: message.to_owned(),
    }
}

/// Judges the report of the sidecar. The sidecar is asked only while both containers are ready, or while the
/// sidecar keeps clients away.
fn backup_ready(basis: Basis<'_>) -> Judged {
    let said = basis.observed.sidecar.as_ref();
    if let Some(fence) = basis.fence() {
        return Judged::new(BACKUP_READY, fenced_etcd::backups(fence, said));
    }
    let etcd_ready = basis
        .observed
        .members
        .iter()
        .flat_map(statuses)
        .any(|s| s.name == ETCD_CONTAINER && s.ready);
    let error = said.and_then(|said| said.error.as_deref());
    let finished = said.is_some_and(SidecarHealth::has_finished);
    let (status, reason, message) = match (said.map(|said| said.phase), error) {
        _ if basis.replicas == 0 => (
            "Unknown",
            "NoMembers",
            "No backups are taken while etcd is stopped.",
        ),
        _ if !etcd_ready => (
            "Unknown",
            "EtcdNotReady",
            "No backup can be taken before etcd is ready.",
        ),
        // Takes precedence over a reported error: the error concerns a single snapshot, this state concerns
        // all further snapshots.
        _ if finished && !basis.migrating => (
            "False",
            "FinishedWhileServing",
            "The final snapshot was taken although the etcd is not being handed over: nothing that is written from now on is \
             backed up. Delete the pod, so that its backup process takes snapshots again.",
        ),
        (Some(_), Some(error)) => ("False", "BackupFailed", error),
        _ if finished => (
            "True",
            "FinalSnapshotTaken",
            "The final snapshot is taken; none follows.",
        ),
        (Some(SnapshotterPhase::Active), None) => {
            ("True", "BackupSucceeded", "Snapshots are taken as they come due.")
        }
        (Some(_), None) => ("Unknown", "BackupStarting", "etcd-backup-restore begins."),
        (None, _) => (
            "Unknown",
            "NoAnswer",
            "etcd-backup-restore does not answer; its log says why.",
        ),
    };
    Judged {
        type_: BACKUP_READY,
        status,
        reason,
        message: message.to_owned(),
    }
}

fn backups_copied(observed: &Observed) -> Judged {
    let (status, reason, message) = if observed.job.as_ref().is_some_and(is_complete) {
        (
            "True",
            "CopySucceeded",
            "All snapshots of the source are in the store.",
        )
    } else {
        (
            "False",
            "CopyRunning",
            "Snapshots are being copied, or the final one is awaited.",
        )
    };
    Judged {
        type_: BACKUPS_COPIED,
        status,
        reason,
        message: message.to_owned(),
    }
}

/// Members that are ready.
#[must_use]
pub fn ready_members(observed: &Observed) -> i32 {
    i32::try_from(observed.members.iter().filter(|pod| is_pod_ready(pod)).count()).unwrap_or(i32::MAX)
}

/// Whether a pod is ready and is to stay.
#[must_use]
pub fn is_pod_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    pod.metadata.deletion_timestamp.is_none()
        && conditions
            .iter()
            .any(|c| c.type_ == "Ready" && c.status == "True")
}
