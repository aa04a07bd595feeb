//! Where a BackupEntry belongs: a pure decision.

use api::{
    constants::{BACKUP_ENTRY_ASSIGNED_IN_EPOCH, OWNERSHIP_EPOCH},
    gardencore::{BackupEntry, Shoot},
};
use kube::ResourceExt;

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

/// The seed that gets an entry if the present seed of the entry cannot release it. Only once `spec.seedName`
/// of the entry names the new seed, or that seed would hand the entry back.
#[must_use]
pub fn heir(shoot: &Shoot, entry: &BackupEntry) -> Option<String> {
    let host = shoot.status.as_ref()?.seed_name.clone()?;
    let on = entry.status.as_ref()?.seed_name.as_deref()?;
    let is_given =
        entry.spec.seed_name.as_ref() == Some(&host) && entry.metadata.deletion_timestamp.is_none();
    (is_taken(shoot) && is_given && !on.is_empty() && on != host).then_some(host)
}

/// The seed that deletes the source BackupEntry of an earlier move, if the Shoot was taken from that seed.
/// The deletion may never end there, and an entry of the same name must name the bucket of the present
/// source. The backups that the entry names are not needed any more: the epoch of the entry has opened its
/// copy. An entry of an epoch that has opened no data names the only data.
#[must_use]
pub fn abandoned_on<'a>(shoot: &Shoot, source_entry: &'a BackupEntry) -> Option<&'a str> {
    source_entry.metadata.deletion_timestamp.as_ref()?;
    let status = shoot.status.as_ref()?;
    let opened = status.ownership.as_ref()?.source.as_ref()?.epoch;
    // A seed may write any value into the second annotation. An older version writes this one alone.
    let annotations = source_entry.annotations();
    let assigned = annotations.get(BACKUP_ENTRY_ASSIGNED_IN_EPOCH);
    let epoch = assigned.or_else(|| annotations.get(OWNERSHIP_EPOCH));
    let epoch = epoch.map_or(Some(1), |epoch| epoch.parse().ok())?;
    let on = source_entry
        .status
        .as_ref()
        .and_then(|status| status.seed_name.as_deref());
    let on = on.or(source_entry.spec.seed_name.as_deref())?;
    (is_taken(shoot) && epoch <= opened && status.seed_name.as_deref() != Some(on)).then_some(on)
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
