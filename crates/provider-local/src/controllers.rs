//! Which controllers run, one for each kind, by name; and how a set of them runs under a lock (RK-01).

use api::extensions::{BackupBucket, BackupEntry, ControlPlane, DNSRecord, ExtensionClass, Infrastructure};
use extension::{
    AlwaysOwner, controller,
    reconciler::{Provider, cluster_wide, namespaced},
};
use futures::future::{BoxFuture, FutureExt, join_all};
use lease::Held;
use runtime::{Cluster, Events, Seed, runner::Settings};

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

type Start = fn(Provider, Settings) -> BoxFuture<'static, ()>;

/// In the order of [`lease::migration::PROVIDER_LOCAL`].
const CONTROLLERS: &[(&str, Start)] = &[
    ("infrastructure", |p, s| {
        controller::run::<Infrastructure, _, _>(p, namespaced, InfrastructureActuator, AlwaysOwner, s).boxed()
    }),
    ("controlplane", |p, s| {
        controller::run::<ControlPlane, _, _>(p, namespaced, ControlPlaneActuator, AlwaysOwner, s).boxed()
    }),
    ("dnsrecord", |p, s| {
        controller::run::<DNSRecord, _, _>(p, namespaced, DNSRecordActuator, AlwaysOwner, s).boxed()
    }),
    ("backupbucket", |p, s| {
        controller::run::<BackupBucket, _, _>(p, cluster_wide, BackupBucketActuator, AlwaysOwner, s).boxed()
    }),
    ("backupentry", |p, s| {
        controller::run::<BackupEntry, _, _>(p, cluster_wide, BackupEntryActuator, AlwaysOwner, s).boxed()
    }),
];

/// Runs these controllers until shutdown. Dropping the future stops all of them. With `held`, no request of theirs to the
/// seed leaves once the lock is lost.
///
/// # Errors
/// None; the signature is that of a work under a lock.
pub async fn run(
    names: Vec<&'static str>,
    seed: Seed,
    settings: Settings,
    held: Option<Held>,
) -> Result<(), String> {
    let (seed, settings) = fenced(seed, settings, held.as_ref());
    tracing::info!(controllers = names.join(","), "running");
    let chosen = CONTROLLERS.iter().filter(|(name, _)| names.contains(name));
    join_all(chosen.map(|(_, start)| start(provider(&seed), settings.clone()))).await;
    Ok(())
}

/// The same with a client that falls silent when the lock is lost.
fn fenced(seed: Seed, settings: Settings, held: Option<&Held>) -> (Seed, Settings) {
    let Some(held) = held else {
        return (seed, settings);
    };
    let seed = Seed::new(held.fence(seed.client()));
    let events = Events::new(seed.client().clone(), MANAGER.0);
    (seed, Settings { events, ..settings })
}

#[cfg(test)]
mod tests {
    use lease::migration::PROVIDER_LOCAL;

    use super::*;

    /// A name without a controller would be a controller that nobody runs (RK-34).
    #[test]
    fn what_can_be_migrated_is_what_runs() {
        let names: Vec<_> = CONTROLLERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, PROVIDER_LOCAL.controllers);
    }
}
