//! EC2 as a driver.

use std::time::Duration;

use api::machine::{Machine, MachineClass};
use async_trait::async_trait;
use cloud_aws::{
    Ec2Access, Tagged,
    identity::HomeAccount,
    machines::{Ec2Power, Machines, ProviderId, ProviderSpec},
};
use kube::ResourceExt;
use machine_controllers::{Driver, Instance, InstancePower, ListedInstance, Request};
use runtime::{
    Error, Result,
    client::{Credentials, Permit},
    clock,
};

/// Makes and removes instances in the account that a class's credentials are for.
pub struct AwsDriver {
    permit: Permit,
    access: Ec2Access,
}

impl AwsDriver {
    /// Requests to EC2 end with this permit. Tests set `endpoint` in the place of the region's endpoint.
    #[must_use]
    pub fn new(permit: &Permit, endpoint: Option<String>) -> Self {
        Self {
            permit: permit.clone(),
            access: Ec2Access::new(endpoint),
        }
    }

    fn open(&self, class: &MachineClass, credentials: &Credentials) -> Result<(ProviderSpec, Machines)> {
        let spec = ProviderSpec::from_class(&class.name_any(), &class.spec.provider_spec)?;
        let ec2 = self.access.open(credentials, &spec.region, &self.permit)?;
        let home = HomeAccount::new(spec.account_id.as_deref()).with_subnet(&spec.subnet_id);
        let machines = Machines::for_cluster(ec2, &spec.cluster).in_account(home);
        let machines = machines.of_shoot(spec.shoot_uid.as_deref());
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
        let (name, known) = (request.machine.name_any(), parse_provider_id(request.machine));
        let machines = machines.ending_for(request.ending_for);
        // An orphan has no Machine in the API. The name of an orphan is the name tag, and instances with
        // Machines may have the same tag.
        if let (None, Some(known)) = (request.machine.uid(), &known) {
            return machines.terminate_only(known).await;
        }
        let since_launch = since_last_launch(request.machine);
        machines.terminate(&name, known.as_ref(), since_launch).await
    }

    async fn status(&self, request: &Request<'_>) -> Result<Option<Instance>> {
        let (_, machines) = self.open(request.class, &request.credentials)?;
        let name = request.machine.name_any();
        let (known, since_launch) = (
            parse_provider_id(request.machine),
            since_last_change(request.machine),
        );
        let found = machines
            .find_launched(&name, known.as_ref(), since_launch)
            .await?;
        Ok(found.map(|found| instance(name, &found)))
    }

    async fn power(&self, request: &Request<'_>) -> Result<InstancePower> {
        let (_, machines) = self.open(request.class, &request.credentials)?;
        let name = request.machine.name_any();
        let power = machines
            .power(&name, parse_provider_id(request.machine).as_ref())
            .await?;
        Ok(match power {
            Ec2Power::Running => InstancePower::Running,
            Ec2Power::Off => InstancePower::Off,
            Ec2Power::Unclear => InstancePower::Unclear,
        })
    }

    async fn launch_failure(&self, request: &Request<'_>) -> Result<Option<Error>> {
        let (_, machines) = self.open(request.class, &request.credentials)?;
        match parse_provider_id(request.machine) {
            Some(known) => machines.launch_failure(&known).await,
            None => Ok(None),
        }
    }

    async fn list(&self, class: &MachineClass, credentials: Credentials) -> Result<Vec<ListedInstance>> {
        let (_, machines) = self.open(class, &credentials)?;
        let found = |instance: &cloud_aws::instances::Instance| ListedInstance {
            machine_name: instance.name().to_owned(),
            provider_id: ProviderId::from(instance).to_string(),
        };
        Ok(machines.list().await?.iter().map(found).collect())
    }
}

/// The recorded id of the instance. The id of a different cloud does not count, and the driver searches by
/// name.
fn parse_provider_id(machine: &Machine) -> Option<ProviderId> {
    machine.spec.provider_id.as_deref()?.parse().ok()
}

/// The shortest time since the last launch for a Machine. The controller launches no instance for a Machine
/// that is `Terminating`, so that the phase's time counts and not the Machine's age: a launch may come long
/// after the creation of the Machine. An orphan has no deletion time, and EC2 has listed the instance.
fn since_last_launch(machine: &Machine) -> Duration {
    if machine.metadata.deletion_timestamp.is_none() {
        return Duration::MAX;
    }
    let status = machine.status.as_ref();
    let phase = status.and_then(|status| status.current_status.as_ref());
    let terminating = phase.filter(|phase| phase.phase.as_deref() == Some("Terminating"));
    let begun = terminating.and_then(|phase| phase.last_update_time.as_ref());
    let passed = begun.map(|begun| clock::now().duration_since(begun.0));
    passed
        .and_then(|passed| Duration::try_from(passed).ok())
        .unwrap_or_default()
}

/// The shortest time since the launch for a Machine that is not being deleted: the controller writes the
/// phase after the launch.
fn since_last_change(machine: &Machine) -> Duration {
    let status = machine.status.as_ref();
    let phase = status.and_then(|status| status.current_status.as_ref());
    let changed = phase.and_then(|phase| phase.last_update_time.as_ref());
    let changed = changed.or(machine.metadata.creation_timestamp.as_ref());
    changed.map_or(Duration::MAX, |changed| {
        let passed = clock::now().duration_since(changed.0);
        Duration::try_from(passed).unwrap_or_default()
    })
}

/// The kubelet registers under the Machine's name, given in the user data.
fn instance(node_name: String, instance: &cloud_aws::instances::Instance) -> Instance {
    Instance {
        provider_id: ProviderId::from(instance).to_string(),
        node_name,
    }
}
