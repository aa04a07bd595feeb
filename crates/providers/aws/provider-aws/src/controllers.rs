//! The controllers of this process, a controller for each kind, by name. A set of these controllers runs
//! under a lock (RK-01).

use api::extensions::{
    ControlPlane, ExtensionClass, ExtensionObject, Infrastructure, SubnetIsolation, Worker,
};
use extension::{
    Actuator, OwnerChecks,
    control_plane::ControlPlaneActuator,
    controller,
    reconciler::{Provider, namespaced},
    subnet_isolation::SubnetIsolationActuator,
    worker::WorkerActuator,
};
use futures::future::{BoxFuture, FutureExt, join_all};
use runtime::{client::Seed, controller::runner::Settings, workload::Variable};

use crate::{
    MANAGER, TYPE,
    account::AccountAccess,
    control_plane::{AwsControlPlane, cloud_controller_manager::CloudControllerManagerSettings},
    infrastructure::InfrastructureActuator,
    subnet_isolation::AwsZones,
    worker::AwsMachines,
};

/// The inputs of the controllers.
#[derive(Clone)]
pub struct Context {
    /// The seed with the objects.
    pub seed: Seed,
    /// The check of the seed's right to act for a shoot.
    pub owners: OwnerChecks,
    /// The settings of each controller.
    pub settings: Settings,
    /// Where EC2 is.
    pub place: AccountAccess,
    /// Settings of the cloud-controller-manager of each shoot. None is deployed by default.
    pub cloud_controller_manager: Option<CloudControllerManagerSettings>,
    /// Image of the machine-controller-manager of each shoot, with a tag.
    pub machine_controller_manager_image: String,
    /// Environment variables of the machine-controller-manager.
    pub machine_controller_manager_env: Vec<Variable>,
}

/// The inputs that all reconcilers of this provider share in a seed.
#[must_use]
pub fn provider(seed: &Seed, owners: &OwnerChecks) -> Provider {
    Provider {
        seed: seed.clone(),
        manager: MANAGER,
        type_: TYPE,
        classes: &[ExtensionClass::Shoot],
        owners: owners.clone(),
    }
}

type Start = fn(&Context) -> BoxFuture<'static, ()>;

/// In the order of [`manager::PROVIDER_AWS`].
const CONTROLLERS: &[(&str, Start)] = &[
    ("infrastructure", |context| {
        context.start::<Infrastructure, _>(InfrastructureActuator(context.place.clone()))
    }),
    ("controlplane", |context| {
        let parts = AwsControlPlane {
            cloud_controller_manager: context.cloud_controller_manager.clone(),
            place: context.place.clone(),
        };
        context.start::<ControlPlane, _>(ControlPlaneActuator(parts))
    }),
    ("worker", |context| {
        let machines = AwsMachines {
            manager_image: context.machine_controller_manager_image.clone(),
            manager_environment: context.machine_controller_manager_env.clone(),
            place: context.place.clone(),
        };
        context.start::<Worker, _>(WorkerActuator(machines))
    }),
    ("subnetisolation", |context| {
        let zones = AwsZones(context.place.clone());
        context.start::<SubnetIsolation, _>(SubnetIsolationActuator(zones))
    }),
];

/// Runs these controllers until shutdown. A caller that drops the future stops all controllers.
///
/// # Errors
/// This function returns no error; controllers of different managers may return errors.
pub async fn run(names: Vec<&'static str>, context: Context) -> Result<(), String> {
    tracing::info!(controllers = names.join(","), "running");
    let own = CONTROLLERS.iter().filter(|(name, _)| names.contains(name));
    join_all(own.map(|(_, start)| start(&context))).await;
    Ok(())
}

impl Context {
    fn start<K, A>(&self, actuator: A) -> BoxFuture<'static, ()>
    where
        K: ExtensionObject + kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        A: Actuator<K>,
    {
        let (provider, settings) = (provider(&self.seed, &self.owners), self.settings.clone());
        controller::run(provider, namespaced, actuator, settings).boxed()
    }
}

#[cfg(test)]
mod tests {
    use manager::PROVIDER_AWS;

    use super::*;

    /// A name without a controller would be a controller that no process runs (RK-34).
    #[test]
    fn what_can_be_migrated_is_what_runs() {
        let names: Vec<_> = CONTROLLERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, PROVIDER_AWS.controllers);
    }
}
