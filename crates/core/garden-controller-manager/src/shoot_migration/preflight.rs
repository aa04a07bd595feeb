//! The preflight: pure decisions.

use std::time::Duration;

use api::{
    constants::{
        LEFTOVER_NAMESPACES,
        condition::{
            BACKUP_BUCKETS_READY, CONTROL_PLANE_HEALTHY, EDGE_ADDRESS_READY, ETCD_NO_SPACE, GARDENLET_READY,
            SEED_EMERGENCY_STOP, SEED_SYSTEM_COMPONENTS_HEALTHY, SHOOT_NOT_RECONCILED, WEBHOOKS_ON_LEASES,
        },
    },
    gardencore::{BackupBucket, BackupEntry, Seed, Shoot},
    meta::{ConditionStatus, ErrorCode, LastOperationState, find_condition},
};
use kube::ResourceExt;
use ownership::Phase;
use placement::credentials::foreign_credentials;

use super::{
    extensions::Extensions,
    returning,
    seed_defaults::{difference, remedy},
};
use crate::shoot_takeover::{host_clock, servers};

/// Annotation of a Shoot whose value says why the shoot may move between seeds of different provider types.
pub const ALLOW_DIFFERENT_PROVIDER: &str = "migration.gardener.cloud/allow-different-provider";

/// The reason of a move that waits for a slot on the way (`migration_slots`).
pub(super) const BUSY: &str = "DestinationSeedBusy";
/// The reason of a move to a seed without room (`capacity`).
pub(super) const FULL: &str = "DestinationSeedFull";
/// The reason of a move while the source BackupEntry of an earlier move is being deleted.
pub(super) const SOURCE_ENTRY_LEFT: &str = "SourceBackupEntryNotDeleted";
/// The reason of a move while the bucket of the source is not ready.
pub(super) const SOURCE_BUCKET_NOT_READY: &str = "SourceBackupBucketNotReady";

/// Pause between checks of a destination that is expected to recover. Only its Seed is watched, not all
/// inputs of the preflight.
const RECHECK_OF_DESTINATION: Duration = Duration::from_secs(60);

/// A requested move, and its inputs.
#[derive(Clone, Copy, Debug)]
pub struct Move<'a> {
    /// The shoot.
    pub shoot: &'a Shoot,
    /// The seed that `spec.seedName` names, if there is one.
    pub destination: Option<&'a Seed>,
    /// The seed that `status.seedName` names, if there still is one.
    pub source: Option<&'a Seed>,
    /// The BackupEntry of the shoot.
    pub backup_entry: Option<&'a BackupEntry>,
    /// The destination's bucket.
    pub bucket: Option<&'a BackupBucket>,
    /// The extensions that are registered in the garden, and the installations in the destination.
    pub extensions: &'a Extensions,
}

/// The outcome: a reason for machines and a sentence for humans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the move may begin.
    pub ready: bool,
    /// CamelCase.
    pub reason: &'static str,
    /// Obstacle and remedy.
    pub message: String,
}

/// An obstacle, as a sentence, and whether the obstacle disappears without an edit of a user. This type alone
/// decides whether a takeover waits or is refused. The error codes of a report follow from the type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Permanent: the user must repeat the request after the obstacle is gone.
    Final(String),
    /// The obstacle may disappear without action within this time.
    Passing(String, Duration),
}

impl Verdict {
    /// The obstacle; `None` if the move may begin. A reason that is not listed here is final.
    #[must_use]
    pub fn obstacle(&self) -> Option<Obstacle> {
        let sentence = || self.message.trim_end_matches('.').to_owned();
        match self.reason {
            _ if self.ready => None,
            "DestinationSeedNotReady"
            | "DestinationSeedNotHealthy"
            | "DestinationBackupBucketNotReady"
            | "DestinationExtensionsNotReady"
            | "DestinationSeedNotCleanedUp"
            | SOURCE_ENTRY_LEFT
            | SOURCE_BUCKET_NOT_READY
            | FULL
            | SEED_EMERGENCY_STOP
            | SHOOT_NOT_RECONCILED
            | BUSY => Some(Obstacle::Passing(sentence(), RECHECK_OF_DESTINATION)),
            _ => Some(Obstacle::Final(sentence())),
        }
    }

    /// Error codes of the verdict for a report: an edit of a user is needed unless the obstacle is passing.
    #[must_use]
    pub fn codes(&self) -> Vec<ErrorCode> {
        match self.obstacle() {
            None => Vec::new(),
            Some(Obstacle::Passing(..)) => vec![ErrorCode::ErrRetryableInfraDependencies],
            Some(Obstacle::Final(_)) if self.reason == WEBHOOKS_ON_LEASES => {
                vec![ErrorCode::ErrProblematicWebhook]
            }
            Some(Obstacle::Final(_)) => vec![ErrorCode::ErrConfigurationProblem],
        }
    }
}

/// The seeds of a move that is wanted or running: (source, destination).
#[must_use]
pub fn wanted_move(shoot: &Shoot) -> Option<(&str, &str)> {
    let destination = shoot.spec.seed_name.as_deref().filter(|n| !n.is_empty())?;
    let source = shoot
        .status
        .as_ref()?
        .seed_name
        .as_deref()
        .filter(|n| !n.is_empty())?;
    (source != destination).then_some((source, destination))
}

/// Whether the move may begin; `None` if no move is requested. Reports the first obstacle, in the order in
/// which users fix the obstacles.
#[must_use]
pub fn judge(wanted: &Move<'_>) -> Option<Verdict> {
    let (source, destination) = wanted_move(wanted.shoot)?;
    let no = |reason, message| {
        Some(Verdict {
            ready: false,
            reason,
            message,
        })
    };
    let back = format!("or set spec.seedName back to {source}");
    if wanted.shoot.metadata.deletion_timestamp.is_some() {
        return no(
            "ShootIsBeingDeleted",
            "The shoot is being deleted and cannot be moved any more.".to_owned(),
        );
    }
    let Some(seed) = wanted.destination else {
        return no(
            "DestinationSeedNotFound",
            format!("There is no seed {destination}: register it, name another seed, {back}."),
        );
    };
    if seed.metadata.deletion_timestamp.is_some() {
        let message = format!("Seed {destination} is being deleted: name another seed, {back}.");
        return no("DestinationSeedIsBeingDeleted", message);
    }
    if let Some(verdict) = seed_obstacle(wanted, seed, destination, &back) {
        return Some(verdict);
    }
    if wanted.backup_entry.is_none() {
        return no(
            "BackupEntryNotFound",
            format!(
                "The shoot has no BackupEntry, so that its data could not be found on seed {destination}: {source} must reconcile the shoot with backups first ({back})."
            ),
        );
    }
    Some(Verdict {
        ready: true,
        reason: "DestinationSeedReady",
        message: format!(
            "Seed {destination} can take the shoot over from {source}.{}{}",
            no_space_note(wanted.shoot).unwrap_or_default(),
            takeover_note(wanted).unwrap_or_default()
        ),
    })
}

/// The effect of the move on an etcd that refuses writes. The restore makes room, so that a move is a remedy
/// and no risk for the data.
fn no_space_note(shoot: &Shoot) -> Option<String> {
    let conditions = shoot.status.as_ref().map(|status| &status.conditions)?;
    let healthy = find_condition(conditions, CONTROL_PLANE_HEALTHY)?;
    (healthy.reason == ETCD_NO_SPACE).then(|| {
        " The etcd of the shoot refuses writes (alarm NOSPACE). The restore on the destination compacts and defragments the data and \
         disarms the alarm if there is room below the quota of the destination; otherwise the shoot refuses writes there too. Delete \
         objects first, or raise spec.etcd.quota of the Etcd."
            .to_owned()
    })
}

/// Whether a takeover of the shoot without the help of its source would be refused, or would need an
/// operator. A planned move needs no fence.
fn takeover_note(wanted: &Move<'_>) -> Option<String> {
    let (source, destination) = (wanted.source?, wanted.destination?);
    if !source.spec.checks_owners() || !destination.spec.checks_owners() {
        return None;
    }
    let from = source.name_any();
    let has_opened =
        placement::ownership_status::ownership(wanted.shoot).map_or(true, |now| now.phase != Phase::Claiming);
    if let Some(why) = servers::obstacle(wanted.shoot, source, destination, has_opened) {
        return Some(format!(
            " Without the help of {from} the shoot would not be taken over: {why}."
        ));
    }
    let why = host_clock::obstacle_to_silence(wanted.shoot)?;
    Some(format!(
        " If {from} fails on the way, silence alone begins no takeover: {why}."
    ))
}

fn seed_obstacle(wanted: &Move<'_>, seed: &Seed, name: &str, back: &str) -> Option<Verdict> {
    let no = |reason, message| {
        Some(Verdict {
            ready: false,
            reason,
            message,
        })
    };
    if seed.spec.backup.is_none() {
        return no(
            "DestinationSeedHasNoBackup",
            format!(
                "Seed {name} has no spec.backup, without which no shoot can be moved to it: configure a backup there, name another seed, {back}."
            ),
        );
    }
    if let Some(why) = foreign_credentials(seed) {
        return no(
            "DestinationSeedCredentialsElsewhere",
            format!("Seed {name}, {why}, name another seed, {back}."),
        );
    }
    if let Some(message) = provider_obstacle(wanted, seed, name, back) {
        return no("ProviderTypesDiffer", message);
    }
    if let Some(source) = wanted.source
        && let Some(difference) = difference(wanted.shoot, source, seed)
    {
        let message = format!(
            "{}: {}, name another seed, {back}.",
            difference.what,
            remedy(source, seed)
        );
        return no(difference.reason, message);
    }
    if let Some((reason, message)) = health_obstacle(wanted, seed, name, back) {
        return no(reason, message);
    }
    if let Some((reason, message)) = wanted.extensions.obstacle(wanted.shoot, seed) {
        return no(reason, format!("{message}; name another seed, {back}."));
    }
    if let Some(message) = returning::obstacle(wanted.shoot, seed, back) {
        return no("DestinationSeedNotCleanedUp", message);
    }
    let message = leftover_obstacle(wanted.shoot, seed, name, back)?;
    no("DestinationSeedHasLeftovers", message)
}

/// An earlier control plane of the shoot in the seed that no process cleans up. The present move would find
/// processes of an old epoch in its namespace.
fn leftover_obstacle(shoot: &Shoot, seed: &Seed, name: &str, back: &str) -> Option<String> {
    let id = placement::names::recorded_technical_id(shoot)?;
    let reported = seed.annotations().get(LEFTOVER_NAMESPACES)?;
    reported.split(',').any(|namespace| namespace == id).then(|| {
        format!(
            "Seed {name} has namespace {id} with an earlier control plane of the shoot, and status.formerSeeds does not name the seed: clean up as Event ShootElsewhere of the namespace says; the move begins once the gardenlet does not report the namespace any more; name another seed, {back}."
        )
    })
}

/// The health that the seed reports. `GardenletReady` is checked first: if the gardenlet is silent, all later
/// conditions are outdated.
fn health_obstacle(wanted: &Move<'_>, seed: &Seed, name: &str, back: &str) -> Option<(&'static str, String)> {
    let conditions = seed
        .status
        .as_ref()
        .map(|s| s.conditions.as_slice())
        .unwrap_or_default();
    for (condition, reason) in [
        (GARDENLET_READY, "DestinationSeedNotReady"),
        (SEED_SYSTEM_COMPONENTS_HEALTHY, "DestinationSeedNotHealthy"),
        (EDGE_ADDRESS_READY, "DestinationSeedNotHealthy"),
        (BACKUP_BUCKETS_READY, "DestinationBackupBucketNotReady"),
    ] {
        let found = find_condition(conditions, condition);
        // An older gardenlet does not report the address of the edge.
        let is_optional = condition == EDGE_ADDRESS_READY;
        if found.map_or(is_optional, |c| c.status == ConditionStatus::True) {
            continue;
        }
        let state = found.map_or_else(
            || "is not reported yet".to_owned(),
            |c| format!("is {:?} ({})", c.status, c.message.trim_end_matches('.')),
        );
        let message = format!(
            "Condition {condition} of seed {name} {state}: the move begins once it is True; mend the seed, {back}."
        );
        return Some((reason, message));
    }
    if !wanted.bucket.is_some_and(is_bucket_ready) {
        let message = format!(
            "The BackupBucket of seed {name} is not ready: look at its status.lastError, mend it, {back}."
        );
        return Some(("DestinationBackupBucketNotReady", message));
    }
    None
}

/// Whether the provider has succeeded with the credentials and the settings of the bucket.
pub(super) fn is_bucket_ready(bucket: &BackupBucket) -> bool {
    let status = bucket.status.as_ref();
    let last = status.and_then(|status| status.last_operation.as_ref());
    last.is_some_and(|last| last.state == LastOperationState::Succeeded)
}

fn provider_obstacle(wanted: &Move<'_>, seed: &Seed, name: &str, back: &str) -> Option<String> {
    let source = wanted.source?;
    let (from, to) = (&source.spec.provider.type_, &seed.spec.provider.type_);
    let allowed = wanted
        .shoot
        .annotations()
        .get(ALLOW_DIFFERENT_PROVIDER)
        .is_some_and(|why| !why.trim().is_empty());
    (from != to && !allowed).then(|| {
        format!("Seed {name} runs on provider {to} and seed {} on {from}: name a seed of the same provider, say why it may be another one in the annotation {ALLOW_DIFFERENT_PROVIDER}, {back}.", source.name_any())
    })
}

#[cfg(test)]
#[path = "preflight_takeover_tests.rs"]
mod takeover_tests;
#[cfg(test)]
#[path = "preflight_tests.rs"]
mod tests;
#[cfg(test)]
#[path = "preflight_fixture.rs"]
mod world;
