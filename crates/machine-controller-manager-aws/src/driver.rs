//! EC2 as a driver.

use api::machine::{Machine, MachineClass};
use async_trait::async_trait;
use cloud_aws::{
    Ec2, Tagged,
    machines::{Machines, ProviderId, ProviderSpec},
};
use kube::ResourceExt;
use machine_controllers::{Driver, Found, Instance, Request};
use runtime::{Credentials, Error, Permit, Result};

/// Makes and removes instances in the account that a class's credentials are for.
pub struct AwsDriver {
    permit: Permit,
    endpoint: Option<String>,
}

impl AwsDriver {
    /// Whatever it asks of EC2 goes by this permit. `endpoint` is another place than the region's own, for tests.
    #[must_use]
    pub fn new(permit: &Permit, endpoint: Option<String>) -> Self {
        Self {
            permit: permit.clone(),
            endpoint,
        }
    }

    fn open(&self, class: &MachineClass, credentials: &Credentials) -> Result<(ProviderSpec, Machines)> {
        let spec = ProviderSpec::of(&class.name_any(), &class.spec.provider_spec)?;
        let ec2 = Ec2::open(credentials, &spec.region, self.endpoint.as_deref(), &self.permit)?;
        let machines = Machines::of(ec2, &spec.cluster);
        Ok((spec, machines))
    }
}

#[async_trait]
impl Driver for AwsDriver {
    async fn create(&self, request: &Request<'_>) -> Result<Instance> {
        let (spec, machines) = self.open(request.class, &request.credentials)?;
        let name = request.machine.name_any();
        let user_data = request
            .user_data
            .as_deref()
            .ok_or_else(|| Error::bug("an instance is to be made without user data"))?;
        let made = match machines.find(&name, None).await? {
            Some(found) => found,
            None => machines.launch(&name, &spec, user_data).await?,
        };
        Ok(instance(name, &made))
    }

    async fn delete(&self, request: &Request<'_>) -> Result<()> {
        let (_, machines) = self.open(request.class, &request.credentials)?;
        let name = request.machine.name_any();
        machines.terminate(&name, known(request.machine).as_ref()).await
    }

    async fn status(&self, request: &Request<'_>) -> Result<Option<Instance>> {
        let (_, machines) = self.open(request.class, &request.credentials)?;
        let name = request.machine.name_any();
        let found = machines.find(&name, known(request.machine).as_ref()).await?;
        Ok(found.map(|found| instance(name, &found)))
    }

    async fn list(&self, class: &MachineClass, credentials: Credentials) -> Result<Vec<Found>> {
        let (_, machines) = self.open(class, &credentials)?;
        let found = |instance: &cloud_aws::instances::Instance| Found {
            machine_name: instance.name().to_owned(),
            provider_id: ProviderId::from(instance).to_string(),
        };
        Ok(machines.list().await?.iter().map(found).collect())
    }
}

/// The id that the Machine is known by. One of another cloud is none: it is looked for by its name.
fn known(machine: &Machine) -> Option<ProviderId> {
    machine.spec.provider_id.as_deref()?.parse().ok()
}

/// Its kubelet registers under the Machine's name, which the user data tells it.
fn instance(node_name: String, instance: &cloud_aws::instances::Instance) -> Instance {
    Instance {
        provider_id: ProviderId::from(instance).to_string(),
        node_name,
    }
}
