//! The next write to the source BackupEntry of a Shoot: a pure decision.

use api::gardencore::{BackupEntry, Seed, Shoot};
use kube::ResourceExt;

use super::{
    entries::is_assigned,
    source::{is_restored, needs_source_entry},
};

/// The next write to the source entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceEntryStep {
    /// The entry is as it must be, or is not needed.
    Keep,
    /// The entry does not exist, and must be created.
    Create,
    /// The entry is being deleted by a seed that may have lost the shoot.
    Release,
    /// The entry is assigned to the host. A former seed that cannot release the entry may have to lose it.
    Take,
    /// The entry must be assigned to the host and the bucket.
    Assign,
}

/// Decides about the source entry. `bucket`: the bucket with the data of the present epoch. `own`: the
/// shoot's own entry.
#[must_use]
pub(super) fn source_entry_step(
    shoot: &Shoot,
    host: &Seed,
    bucket: &str,
    source: Option<&BackupEntry>,
    own: Option<&BackupEntry>,
) -> SourceEntryStep {
    let is_needed = own.is_none_or(|own| needs_source_entry(shoot, host, bucket, own));
    let is_needed = is_needed && host.uid().as_deref() != Some(bucket);
    let Some(source) = source else {
        return if is_needed {
            SourceEntryStep::Create
        } else {
            SourceEntryStep::Keep
        };
    };
    if source.metadata.deletion_timestamp.is_some() {
        return SourceEntryStep::Release;
    }
    if is_assigned(shoot, host, bucket, source) {
        return SourceEntryStep::Take;
    }
    // A seed that has taken the shoot back needs no source entry, and deletes that of the destination.
    let is_hosted = source.spec.seed_name.as_ref() == Some(&host.name_any());
    if !is_needed && (is_hosted || !is_restored(shoot)) {
        return SourceEntryStep::Keep;
    }
    SourceEntryStep::Assign
}

/// Whether the own entry must not be assigned yet: no source entry can name the bucket while a source entry
/// of an earlier move is being deleted.
#[must_use]
pub(super) fn holds_own_entry(step: SourceEntryStep, host: &Seed, bucket: &str) -> bool {
    step == SourceEntryStep::Release && host.uid().as_deref() != Some(bucket)
}
