//! An etcd that is deliberately kept away from clients: no witness confirms that this seed owns the shoot, or
//! the seed has lost the shoot (R17-40..49). Such an etcd is not ready, and that is no failure.

use api::{
    constants::condition::{NEVER_ANSWERED, OUTLASTS_ANY_FENCE, OUTLASTS_FENCE},
    druid::{OwnerCheckSilence, OwnerCheckSpec},
};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use sidecar_protocol::{SidecarHealth, SidecarOwnership};

use crate::{
    names::ETCD_CONTAINER,
    sidecar,
    wanted::{lasts_beyond, lasts_beyond_a_fence, outlasts_a_fence},
};

/// Exit code of a process that SIGTERM ended, as the kubelet reports it.
const BY_SIGTERM: i32 = 128 + 15;

/// Longest reason that is copied to the status: the reason names every server of the zone, and humans read
/// it.
const LONGEST: usize = 1000;

/// Status, reason and message of a condition.
pub(super) type Word = (&'static str, &'static str, String);

/// Condition `OwnershipVerified` of an etcd that should run. Unless the shoot is lost, the reason states that
/// the etcd outlasts a fence. A user who wants to take over the shoot must know that. `told`: the last
/// reported reason.
#[must_use]
pub(super) fn verified(check: &OwnerCheckSpec, said: Option<&SidecarOwnership>, told: Option<&str>) -> Word {
    match (judge_report(said, told), outlasting(check, said, told)) {
        ((status @ ("True" | "Unknown"), _, message), Some(reason)) => (status, reason, message),
        (word, _) => word,
    }
}

/// The running process reports its settings. The specification counts too, because a process with the
/// specified settings may start at any time. Without a report the process may still have the settings that
/// were reported last.
fn outlasting(
    check: &OwnerCheckSpec,
    said: Option<&SidecarOwnership>,
    told: Option<&str>,
) -> Option<&'static str> {
    let other = match said.and_then(sidecar::reported_fence) {
        Some((ends, fence)) => lasts_beyond_a_fence(ends, fence) && lasts_beyond(check, ends, fence),
        None => {
            told == Some(OUTLASTS_ANY_FENCE) || (told == Some(OUTLASTS_FENCE) && !outlasts_a_fence(check))
        }
    };
    let any = other || check.silence == Some(OwnerCheckSilence::Tolerate);
    match (any, outlasts_a_fence(check)) {
        (true, _) => Some(OUTLASTS_ANY_FENCE),
        (false, true) => Some(OUTLASTS_FENCE),
        (false, false) => None,
    }
}

/// Whether the reason states that the etcd outlasts a fence.
#[must_use]
pub(super) fn is_outlasting(reason: &str) -> bool {
    [OUTLASTS_FENCE, OUTLASTS_ANY_FENCE].contains(&reason)
}

/// The condition of an etcd that should stop, and whose pod still exists.
#[must_use]
pub(super) fn stopping() -> Word {
    let message = "etcd is being stopped, and its process may still run: it serves for longer than a fence lasts while nobody \
                   confirms that the shoot is this seed's.";
    ("Unknown", OUTLASTS_ANY_FENCE, message.to_owned())
}

fn judge_report(said: Option<&SidecarOwnership>, told: Option<&str>) -> Word {
    match said {
        None if told.is_none_or(|told| told == NEVER_ANSWERED) => (
            "Unknown",
            NEVER_ANSWERED,
            "etcd-backup-restore has not answered yet whether the shoot is this seed's.".to_owned(),
        ),
        None => (
            "Unknown",
            "NoAnswer",
            "etcd-backup-restore does not answer whether the shoot is this seed's.".to_owned(),
        ),
        Some(said) if said.is_lost() => ("False", "Lost", describe(said)),
        Some(said) if said.fences() => ("Unknown", "NotConfirmed", describe(said)),
        Some(said) => ("True", "Owner", confirmed(said)),
    }
}

/// That the owner is confirmed, and why not by the owner record where that is so.
fn confirmed(said: &SidecarOwnership) -> String {
    let message = "It is confirmed that the shoot is this seed's";
    let why = said.why.strip_prefix(ownership::OWNED_BY_BUCKET_ALONE);
    why.map_or_else(
        || format!("{message}."),
        |why| {
            let why: String = why.trim_end_matches('.').chars().take(LONGEST).collect();
            format!("{message}, by its bucket alone: {why}.")
        },
    )
}

/// Describes what happens to etcd, with the reason.
#[must_use]
pub(super) fn describe(said: &SidecarOwnership) -> String {
    let why: String = match said.why.trim_end_matches('.') {
        "" => "nobody has been asked yet".to_owned(),
        why => why.chars().take(LONGEST).collect(),
    };
    if said.is_lost() {
        format!(
            "etcd is not served any more in this ownership epoch, as the shoot is not this seed's: {why}."
        )
    } else {
        format!("etcd is not served until it is confirmed that the shoot is this seed's: {why}.")
    }
}

/// Describes the state of the backups: a single final snapshot if the shoot is lost (R17-40), and no snapshot
/// before the loss is known (R17-47).
#[must_use]
pub(super) fn backups(fence: &SidecarOwnership, said: Option<&SidecarHealth>) -> Word {
    if !fence.is_lost() {
        let message = "No snapshot is taken until it is confirmed that the shoot is this seed's.";
        return ("Unknown", "NotConfirmed", message.to_owned());
    }
    match (said, said.and_then(|said| said.error.as_deref())) {
        (Some(said), _) if said.has_finished() => (
            "True",
            "FinalSnapshotTaken",
            "The final snapshot is taken; none follows.".to_owned(),
        ),
        (_, Some(error)) => ("False", "FinalSnapshotMissing", error.to_owned()),
        _ => (
            "Unknown",
            "FinalSnapshotPending",
            "The final snapshot is not taken yet.".to_owned(),
        ),
    }
}

/// The pods, without the status of an etcd that was terminated because clients are kept away (R17-41).
#[must_use]
pub(super) fn without_told_etcd(pods: &[Pod]) -> Vec<Pod> {
    let mut pods = pods.to_vec();
    for pod in &mut pods {
        let statuses = pod
            .status
            .as_mut()
            .and_then(|status| status.container_statuses.as_mut());
        if let Some(statuses) = statuses {
            statuses.retain(|status| status.name != ETCD_CONTAINER || !was_told_to_end(status));
        }
    }
    pods
}

/// Whether SIGTERM ended the container, also while the kubelet delays the next start.
pub(crate) fn was_told_to_end(status: &ContainerStatus) -> bool {
    let waits = status.state.as_ref().and_then(|state| state.waiting.as_ref());
    let state = match waits.and_then(|waits| waits.reason.as_deref()) {
        Some("CrashLoopBackOff") => status.last_state.as_ref(),
        _ => status.state.as_ref(),
    };
    let ended = state.and_then(|state| state.terminated.as_ref());
    ended.is_some_and(|ended| ended.exit_code == BY_SIGTERM)
}
