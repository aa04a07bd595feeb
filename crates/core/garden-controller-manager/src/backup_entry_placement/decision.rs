//! Where a BackupEntry belongs: a pure decision.

use api::{
    constants::condition::GARDENLET_READY,
    gardencore::{BackupEntry, Seed, Shoot},
    meta::{ConditionStatus, find_condition},
};

/// The seed that must get the Shoot's entry, if the entry names a different seed. A Shoot that was never
/// handed over (its epoch is the first) leaves its entry at the seed whose gardenlet made the entry.
#[must_use]
pub fn destination(shoot: &Shoot, entry: &BackupEntry) -> Option<String> {
    let status = shoot.status.as_ref().filter(|status| status.epoch() > 1)?;
    let host = status.seed_name.clone().filter(|name| !name.is_empty())?;
    let is_going = entry.metadata.deletion_timestamp.is_some();
    (!is_going && entry.spec.seed_name.as_ref() != Some(&host)).then_some(host)
}

/// Whether the Shoot has come, in the present epoch, from a seed that cannot release the entry. That holds
/// after a takeover, and if the former destination has never begun, so that the Shoot's data are still those
/// of an earlier epoch.
#[must_use]
pub fn is_taken(shoot: &Shoot) -> bool {
    let status = shoot.status.as_ref();
    status
        .and_then(|status| status.ownership.as_ref())
        .is_some_and(|record| {
            let used = record.approval.as_ref().map(|approval| approval.epoch + 1);
            let is_consented = used == Some(record.epoch);
            let is_handed_on = record
                .source
                .as_ref()
                .is_some_and(|source| source.epoch + 1 < record.epoch);
            (is_consented || is_handed_on) && record.phase.is_some() && !record.drained
        })
}

/// Whether the present seed got the Shoot by a planned hand-over. The former seed had stopped all processes,
/// and had proved the final snapshot, or the present seed doubts that and fences the former seed as after a
/// takeover. A Shoot without recorded phases shows neither.
#[must_use]
fn is_handed_over(shoot: &Shoot) -> bool {
    let status = shoot.status.as_ref();
    let record = status.and_then(|status| status.ownership.as_ref());
    record.is_some_and(|record| record.epoch > 1 && record.phase.is_some())
}

/// The seed that gets an entry if the present seed of the entry cannot release it: after a takeover, or if
/// the present seed is lost since a planned hand-over (`is_lost`). Only once `spec.seedName` of the entry
/// names the new seed, or that seed would hand the entry back.
#[must_use]
pub fn heir(shoot: &Shoot, entry: &BackupEntry, is_lost: impl Fn(&str) -> bool) -> Option<String> {
    let host = shoot.status.as_ref()?.seed_name.clone()?;
    let on = former_host(shoot, entry)?;
    let cannot_release = is_taken(shoot) || is_handed_over(shoot) && is_lost(on);
    let is_assigned =
        entry.spec.seed_name.as_ref() == Some(&host) && entry.metadata.deletion_timestamp.is_none();
    (cannot_release && is_assigned).then_some(host)
}

/// The former seed that has not released the entry.
#[must_use]
pub fn former_host<'a>(shoot: &Shoot, entry: &'a BackupEntry) -> Option<&'a str> {
    let host = shoot.status.as_ref()?.seed_name.as_deref();
    let on = entry.status.as_ref()?.seed_name.as_deref()?;
    (!on.is_empty() && host != Some(on)).then_some(on)
}

/// Whether a seed can no longer act: the Seed does not exist, or its gardenlet is silent.
#[must_use]
pub fn is_lost(seed: Option<&Seed>) -> bool {
    let status = seed.and_then(|seed| seed.status.as_ref());
    let ready = status.and_then(|status| find_condition(&status.conditions, GARDENLET_READY));
    seed.is_none() || ready.is_some_and(|ready| ready.status == ConditionStatus::Unknown)
}

/// The seed that deletes a source BackupEntry, if the Shoot was taken from that seed. The deletion may never
/// end there, and an entry of the same name must name the bucket of the present source. The end of the entry
/// removes no backup.
#[must_use]
pub fn abandoned_on<'a>(shoot: &Shoot, source_entry: &'a BackupEntry) -> Option<&'a str> {
    source_entry.metadata.deletion_timestamp.as_ref()?;
    let host = shoot.status.as_ref()?.seed_name.as_deref();
    let on = responsible_seed(source_entry)?;
    (is_taken(shoot) && host != Some(on)).then_some(on)
}

/// The seed that acts on an entry.
#[must_use]
pub fn responsible_seed(entry: &BackupEntry) -> Option<&str> {
    let status = entry.status.as_ref();
    let on = status.and_then(|status| status.seed_name.as_deref());
    let on = on.filter(|on| !on.is_empty());
    on.or(entry.spec.seed_name.as_deref())
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
