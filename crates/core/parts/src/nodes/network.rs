//! Network: the network between pods on different nodes.

use api::extensions::{self, DefaultSpec, NetworkSpec};
use kube::ResourceExt;
use runtime::Result;

use crate::{
    ExtensionResource, Facts, Residency, configuration_problem,
    task::{CLOUD, ExternalSystems},
    verbs::{Deploy, Tasks},
};

/// The shoot's Network.
#[derive(Debug)]
pub struct Network;

impl Deploy for Network {
    const TASKS: Tasks = [
        "Deploying shoot network plugin",
        "Waiting until shoot network plugin has been reconciled",
    ];
    const TOUCHES: ExternalSystems = CLOUD;

    async fn deploy(f: &Facts) -> Result<()> {
        let object = network(f)?;
        object_of(&f.residency).deploy(f, object).await
    }

    async fn ready(f: &Facts) -> Result<()> {
        object_of(&f.residency).wait_until_ready().await
    }
}

fn object_of(residency: &Residency) -> ExtensionResource<'_, extensions::Network> {
    ExtensionResource::new(
        residency,
        &residency.tenant.name,
        residency.settings.timeouts.extension,
    )
}

fn network(f: &Facts) -> Result<extensions::Network> {
    let networking = f.shoot.spec.networking.clone().unwrap_or_default();
    let type_ = networking.type_.ok_or_else(|| {
        configuration_problem(
            "spec.networking.type is not set: a shoot with workers needs a network plugin, so name one",
        )
    })?;
    Ok(extensions::Network::new(
        &f.shoot.name_any(),
        NetworkSpec {
            default: DefaultSpec {
                type_,
                provider_config: networking.provider_config,
                ..DefaultSpec::default()
            },
            pod_cidr: f.names.pods.clone(),
            service_cidr: f.names.services.clone(),
            ip_families: networking.ip_families,
        },
    ))
}
