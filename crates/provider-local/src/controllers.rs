//! Which controllers run: one for each kind.

use api::extensions::{BackupBucket, BackupEntry, ControlPlane, DNSRecord, ExtensionClass, Infrastructure};
use extension::{
    AlwaysOwner, controller,
    reconciler::{Provider, cluster_wide, namespaced},
};
use runtime::{Process, Seed, runner::Settings};

use crate::{
    MANAGER, TYPE, backup_bucket::BackupBucketActuator, backup_entry::BackupEntryActuator,
    control_plane::ControlPlaneActuator, dns_record::DNSRecordActuator,
    infrastructure::InfrastructureActuator,
};

/// Classes of clusters that are served: shoots and the seed itself.
const CLASSES: &[ExtensionClass] = &[ExtensionClass::Shoot, ExtensionClass::Seed];

/// What the reconcilers of this provider share in a seed.
#[must_use]
pub fn provider(seed: &Seed) -> Provider {
    Provider {
        seed: seed.clone(),
        manager: MANAGER,
        type_: TYPE,
        classes: CLASSES,
    }
}

/// Adds the controllers of all kinds to a process.
pub fn add(process: &mut Process, seed: &Seed, settings: &Settings) {
    let with = || (provider(seed), settings.clone());
    let (p, s) = with();
    process.part(
        "infrastructure",
        controller::run::<Infrastructure, _, _>(p, namespaced, InfrastructureActuator, AlwaysOwner, s),
    );
    let (p, s) = with();
    process.part(
        "control plane",
        controller::run::<ControlPlane, _, _>(p, namespaced, ControlPlaneActuator, AlwaysOwner, s),
    );
    let (p, s) = with();
    process.part(
        "DNS record",
        controller::run::<DNSRecord, _, _>(p, namespaced, DNSRecordActuator, AlwaysOwner, s),
    );
    let (p, s) = with();
    process.part(
        "backup bucket",
        controller::run::<BackupBucket, _, _>(p, cluster_wide, BackupBucketActuator, AlwaysOwner, s),
    );
    let (p, s) = with();
    process.part(
        "backup entry",
        controller::run::<BackupEntry, _, _>(p, cluster_wide, BackupEntryActuator, AlwaysOwner, s),
    );
}
