//! The local cloud as a driver.

use std::sync::Arc;

use api::machine::MachineClass;
use async_trait::async_trait;
use cloud_local::{Cloud, Compute, Launch, ProviderSpec, State, Wrap};
use kube::ResourceExt;
use machine_controllers::{Driver, Instance, InstancePower, ListedInstance, Request};
use runtime::{
    Error, Result,
    client::{Credentials, Permit},
};

use crate::MANAGER;

/// Makes and removes instances in the account that a class's credentials are for.
pub struct LocalDriver {
    wrap: Wrap,
}

impl LocalDriver {
    /// All requests of the driver to the cloud go by this permit.
    #[must_use]
    pub fn new(permit: &Permit) -> Self {
        let permit = permit.clone();
        Self {
            wrap: Arc::new(move |cloud| cloud.client(&permit)),
        }
    }

    async fn compute(&self, cluster: &str, credentials: &Credentials) -> Result<Compute> {
        let cloud = Cloud::open(credentials, MANAGER, &self.wrap).await?;
        Ok(Compute::new(cloud, cluster))
    }
}

#[async_trait]
impl Driver for LocalDriver {
    async fn create(&self, request: &Request<'_>) -> Result<Instance> {
        let spec = ProviderSpec::from_class(request.class)?;
        let compute = self.compute(&spec.cluster, &request.credentials).await?;
        let name = request.machine.name_any();
        let user_data = request
            .user_data
            .as_deref()
            .ok_or_else(|| Error::bug("an instance is to be made without user data"))?;
        let launch = Launch {
            name: &name,
            zone: &spec.zone,
            region: &spec.region,
            type_: &spec.machine_type,
            image: &spec.image,
            user_data,
        };
        Ok(instance(name.clone(), &compute.launch(&launch).await?))
    }

    async fn delete(&self, request: &Request<'_>) -> Result<()> {
        let spec = ProviderSpec::from_class(request.class)?;
        let compute = self.compute(&spec.cluster, &request.credentials).await?;
        compute.terminate(&request.machine.name_any()).await
    }

    async fn status(&self, request: &Request<'_>) -> Result<Option<Instance>> {
        let spec = ProviderSpec::from_class(request.class)?;
        let compute = self.compute(&spec.cluster, &request.credentials).await?;
        let name = request.machine.name_any();
        let found = Box::pin(compute.find(&name)).await?;
        Ok(found.map(|found| instance(name, &found)))
    }

    async fn power(&self, request: &Request<'_>) -> Result<InstancePower> {
        let spec = ProviderSpec::from_class(request.class)?;
        let compute = self.compute(&spec.cluster, &request.credentials).await?;
        Ok(match compute.power(&request.machine.name_any()).await? {
            Some(State::Running) => InstancePower::Running,
            Some(State::Stopped) => InstancePower::Off,
            None => InstancePower::Unclear,
        })
    }

    async fn list(&self, class: &MachineClass, credentials: Credentials) -> Result<Vec<ListedInstance>> {
        let spec = ProviderSpec::from_class(class)?;
        let compute = self.compute(&spec.cluster, &credentials).await?;
        let found = compute.list().await?;
        Ok(found
            .into_iter()
            .map(|(machine_name, provider_id)| ListedInstance {
                machine_name,
                provider_id: provider_id.to_string(),
            })
            .collect())
    }
}

/// The kubelet registers under the Machine's name, given in the user data.
fn instance(node_name: String, instance: &cloud_local::Instance) -> Instance {
    Instance {
        provider_id: instance.provider_id().to_string(),
        node_name,
    }
}
