//! The controllers by name, one per kind, and the start of a set of controllers under a lock (RK-01).

use api::extensions::{
    BackupBucket, BackupEntry, ControlPlane, DNSRecord, ExtensionClass, ExtensionObject, Infrastructure,
    Network, OperatingSystemConfig, SubnetIsolation, Worker,
};
use extension::{
    Actuator, OwnerChecks,
    control_plane::ControlPlaneActuator,
    controller,
    reconciler::{Provider, Scope, cluster_wide, namespaced},
    subnet_isolation::SubnetIsolationActuator,
    worker::WorkerActuator,
};
use futures::future::{BoxFuture, FutureExt, join_all};
use runtime::client::Seed;

use crate::{
    MANAGER, TYPE, backup_bucket::BackupBucketActuator, backup_entry::BackupEntryActuator, context::Context,
    control_plane::LocalControlPlane, dns_record::DNSRecordActuator, guests,
    infrastructure::InfrastructureActuator, network::NetworkActuator,
    operating_system_config::OperatingSystemConfigActuator, subnet_isolation::LocalZones,
    worker::LocalMachines,
};

/// Supported classes of clusters: shoots and the seed.
const CLASSES: &[ExtensionClass] = &[ExtensionClass::Shoot, ExtensionClass::Seed];

/// The common settings of this provider's reconcilers in a seed.
#[must_use]
pub fn provider(seed: &Seed, owners: &OwnerChecks) -> Provider {
    Provider {
        seed: seed.clone(),
        manager: MANAGER,
        type_: TYPE,
        classes: CLASSES,
        owners: owners.clone(),
    }
}

type Start = fn(&Context) -> BoxFuture<'static, ()>;

/// In the order of [`manager::PROVIDER_LOCAL`].
const CONTROLLERS: &[(&str, Start)] = &[
    ("infrastructure", |context| {
        context.start::<Infrastructure, _>(namespaced, InfrastructureActuator)
    }),
    ("controlplane", |context| {
        let parts = LocalControlPlane {
            cloud_controller_manager: context.cloud_controller_manager.clone(),
        };
        context.start::<ControlPlane, _>(namespaced, ControlPlaneActuator(parts))
    }),
    ("network", |context| {
        let actuator = NetworkActuator {
            image: context.network_image.clone(),
        };
        context.start::<Network, _>(namespaced, actuator)
    }),
    ("operatingsystemconfig", |context| {
        context.start::<OperatingSystemConfig, _>(namespaced, OperatingSystemConfigActuator)
    }),
    ("worker", |context| {
        let machines = LocalMachines {
            manager_image: context.machine_controller_manager_image.clone(),
        };
        context.start::<Worker, _>(namespaced, WorkerActuator(machines))
    }),
    ("subnetisolation", |context| {
        context.start::<SubnetIsolation, _>(namespaced, SubnetIsolationActuator(LocalZones))
    }),
    ("dnsrecord", |context| {
        context.start::<DNSRecord, _>(namespaced, DNSRecordActuator)
    }),
    ("backupbucket", |context| {
        context.start::<BackupBucket, _>(cluster_wide, BackupBucketActuator)
    }),
    ("backupentry", |context| {
        context.start::<BackupEntry, _>(cluster_wide, BackupEntryActuator)
    }),
];

/// Runs these controllers, including guests, until shutdown. Dropping the future stops all of them.
///
/// # Errors
/// The names include a guest, and the context has no inputs for guests.
pub async fn run(names: Vec<&'static str>, context: Context) -> Result<(), String> {
    tracing::info!(controllers = names.join(","), "running");
    let guests = guests::start(&names, &context)?;
    let own = CONTROLLERS.iter().filter(|(name, _)| names.contains(name));
    join_all(own.map(|(_, start)| start(&context)).chain(guests)).await;
    Ok(())
}

impl Context {
    fn start<K: ExtensionObject, A: Actuator<K>>(
        &self,
        scope: Scope<K>,
        actuator: A,
    ) -> BoxFuture<'static, ()> {
        let (provider, settings) = (provider(&self.seed, &self.owners), self.settings.clone());
        controller::run(provider, scope, actuator, settings).boxed()
    }
}

#[cfg(test)]
mod tests {
    use manager::PROVIDER_LOCAL;

    use super::*;

    /// A name without a controller would be a controller that never runs (RK-34).
    #[test]
    fn what_can_be_migrated_is_what_runs() {
        let names: Vec<_> = CONTROLLERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, PROVIDER_LOCAL.controllers);
    }
}
