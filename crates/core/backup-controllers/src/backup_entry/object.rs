//! Builds the seed's BackupEntry, which the provider reads: pure.

use api::{
    constants::{OPERATION, OWNERSHIP_EPOCH, TIMESTAMP, finalizer, operation},
    extensions::{self, DefaultSpec},
    gardencore::BackupBucket,
    meta::SecretReference,
};
use kube::ResourceExt;
use placement::Operation;

/// The specification, from the bucket that the entry names.
pub(super) fn wanted(bucket: &BackupBucket, secret: SecretReference) -> extensions::BackupEntrySpec {
    extensions::BackupEntrySpec {
        default: DefaultSpec {
            type_: bucket.spec.provider.type_.clone(),
            provider_config: bucket.spec.provider_config.clone(),
            ..DefaultSpec::default()
        },
        backup_bucket_provider_status: bucket.status.as_ref().and_then(|s| s.provider_status.clone()),
        region: bucket.spec.provider.region.clone(),
        bucket_name: bucket.name_any(),
        secret_ref: secret,
    }
}

/// The object with the annotation that requests an operation, and with the ownership epoch of the garden's
/// entry. A BackupEntry has no state that must be written first (R7-12), so a restore is requested at once.
pub(super) fn ask(
    name: &str,
    spec: extensions::BackupEntrySpec,
    what: Operation,
    timestamp: String,
    epoch: Option<&String>,
) -> extensions::BackupEntry {
    let value = if what == Operation::Restore {
        operation::RESTORE
    } else {
        operation::RECONCILE
    };
    let mut object = extensions::BackupEntry::new(name, spec);
    let asked = [
        (OPERATION.to_owned(), value.to_owned()),
        (TIMESTAMP.to_owned(), timestamp),
    ];
    let epoch = epoch.map(|epoch| (OWNERSHIP_EPOCH.to_owned(), epoch.clone()));
    object.metadata.annotations = Some(asked.into_iter().chain(epoch).collect());
    object
}

/// The object for the removal of backups, in a seed without an object of the entry. The finalizer is that of
/// the provider: without the finalizer, the deletion would end before the provider sees the object.
pub(super) fn for_removal(
    name: &str,
    spec: extensions::BackupEntrySpec,
    epoch: Option<String>,
) -> extensions::BackupEntry {
    let mut object = extensions::BackupEntry::new(name, spec);
    object.metadata.finalizers = Some(vec![finalizer::BACKUP_ENTRY.to_owned()]);
    object.metadata.annotations = epoch.map(|epoch| [(OWNERSHIP_EPOCH.to_owned(), epoch)].into());
    object
}
