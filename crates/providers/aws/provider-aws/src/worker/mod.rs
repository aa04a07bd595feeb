//! Worker: the instance parameters of a pool's machines, and the program that makes machines.
//! [`extension::worker`] manages the machine objects.

mod images;
mod size;

use api::{
    extensions::{Worker, WorkerPool},
    meta::RawExtension,
};
use cloud_aws::{
    infrastructure::InfrastructureStatus,
    machines::{ProviderSpec, RootVolume},
    zones::ID_LABEL,
};
use extension::{
    Context,
    worker::{Class, Machines, Manager},
};
use runtime::{Error, Result, workload::Variable};

use crate::{
    TYPE,
    account::AccountAccess,
    identity::{account_of, shoot_uid},
    problem::problem,
    zone,
};

/// Machines in EC2.
pub struct AwsMachines {
    /// Image of the machine-controller-manager, with a tag.
    pub manager_image: String,
    /// Environment variables of the machine-controller-manager.
    pub manager_environment: Vec<Variable>,
    /// Where EC2 is.
    pub place: AccountAccess,
}

impl Machines for AwsMachines {
    fn class(&self, context: &Context<Worker>, pool: &WorkerPool, zone: &str) -> Result<Class> {
        refuse_what_is_not_there_yet(pool)?;
        let object = &context.object;
        let infrastructure = zone::infrastructure(object.spec.infrastructure_provider_status.as_ref())?;
        let profile = context
            .cluster
            .as_ref()
            .map(|cluster| &cluster.spec.cloud_profile);
        let spec = ProviderSpec {
            ami: images::image_of(profile, pool, &object.spec.region)?,
            machine_type: pool.machine_type.clone(),
            subnet_id: subnet_of(&infrastructure, pool, zone)?,
            security_group_ids: infrastructure.groups_of_nodes(),
            root_volume: root_volume(pool)?,
            account_id: account_of(&infrastructure, context.cluster.as_ref()),
            shoot_uid: context.cluster.as_ref().and_then(shoot_uid).map(str::to_owned),
            ..ProviderSpec::new(&context.namespace()?, &object.spec.region)
        };
        let encoded = RawExtension::encode(&spec)
            .map_err(|e| Error::bug("a machine's specification does not serialise").caused_by(e))?;
        Ok(Class {
            provider: TYPE.into(),
            provider_spec: encoded,
            node_labels: zone_id_label(&infrastructure, zone).into_iter().collect(),
            ..Class::default()
        })
    }

    fn zone_of(&self, context: &Context<Worker>, id: &str) -> Result<String> {
        let infrastructure =
            zone::infrastructure(context.object.spec.infrastructure_provider_status.as_ref())?;
        zone::named(&infrastructure.zones, id).map(str::to_owned)
    }

    fn manager(&self, context: &Context<Worker>) -> Result<Manager> {
        let program = "/machine-controller-manager-aws";
        let mut manager = Manager::of_suite(&self.manager_image, program, &context.namespace()?);
        manager.environment.clone_from(&self.manager_environment);
        let endpoint = self.place.access.endpoint();
        manager
            .args
            .extend(endpoint.map(|endpoint| format!("--ec2-endpoint={endpoint}")));
        Ok(manager)
    }
}

/// The label is the cloud-controller-manager's as well; here the label does not depend on that process.
fn zone_id_label(infrastructure: &InfrastructureStatus, zone: &str) -> Option<(String, String)> {
    let zone = infrastructure.zones.iter().find(|other| other.name == zone)?;
    Some((ID_LABEL.to_owned(), zone.id.clone()))
}

fn subnet_of(infrastructure: &InfrastructureStatus, pool: &WorkerPool, zone: &str) -> Result<String> {
    let subnet = infrastructure.subnet_for_nodes(zone);
    subnet.map(str::to_owned).ok_or_else(|| {
        let known: Vec<_> = infrastructure.zones.iter().map(|zone| zone.name.as_str()).collect();
        problem(format!(
            "worker pool {} names the zone {zone:?}, and the infrastructure has subnets in {} only: name one of these, or add the \
             zone to networks.zones of the infrastructureConfig",
            pool.name,
            known.join(", ")
        ))
    })
}

/// Refuses fields without an effect: a user who relies on such a field would be misled.
fn refuse_what_is_not_there_yet(pool: &WorkerPool) -> Result<()> {
    let refused = [
        ("dataVolumes", !pool.data_volumes.is_empty()),
        (
            "providerConfig",
            pool.provider_config
                .as_ref()
                .is_some_and(|config| !config.is_null()),
        ),
    ];
    match refused.iter().find(|(_, is_there)| *is_there) {
        None => Ok(()),
        Some((field, _)) => Err(problem(format!(
            "{field} of worker pool {} has no effect in this provider yet: take it out",
            pool.name
        ))),
    }
}

fn root_volume(pool: &WorkerPool) -> Result<Option<RootVolume>> {
    let Some(volume) = &pool.volume else {
        return Ok(None);
    };
    let size_gib = size::gib(&volume.size).ok_or_else(|| {
        problem(format!(
            "the volume of worker pool {} has the size {:?}: EC2 takes whole GiB from 1Gi to 16384Gi",
            pool.name, volume.size
        ))
    })?;
    Ok(Some(RootVolume {
        size_gib,
        type_: volume.type_.clone(),
        // As in Gardener for a volume without the setting.
        encrypted: volume.encrypted.unwrap_or(true),
    }))
}

#[cfg(test)]
mod tests;
