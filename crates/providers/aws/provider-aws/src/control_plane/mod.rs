//! ControlPlane: Kubernetes' own cloud-controller-manager for AWS beside a shoot's control plane, with a
//! configuration.
//!
//! The cloud-controller-manager is a program of Kubernetes that compares no account. With keys of a different
//! account the program finds no instance, and deletes Nodes with running instances. The gardenlet copies the
//! keys of the user into the Secret `cloudprovider` at any time, and a pod may restart at any time. So the
//! program reads the keys from a Secret of this provider, and only keys of the recorded account get into that
//! Secret.
//!
//! Without an image the actuator deploys no object. The gardenlet sees that no Deployment of this name
//! exists, and kubelets start without `--cloud-provider=external`.

pub mod cloud_controller_manager;

use std::collections::BTreeMap;

use api::extensions::ControlPlane;
use async_trait::async_trait;
use cloud_aws::identity::HomeAccount;
use extension::{
    Context,
    control_plane::{ControlPlaneParts, Parts},
};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use owner_checks::OwnerClaim;
use runtime::Result;

use crate::{account::AccountAccess, identity::account_of, zone};
use cloud_controller_manager::{
    ACCOUNT, CLOUD_PROVIDER_CONFIG, CloudControllerManagerSettings, FILE, NAME, account_secret, cloud_config,
    process, refuse_guests,
};

/// The parts beside a control plane.
pub struct AwsControlPlane {
    /// Settings of the cloud-controller-manager. None is deployed by default.
    pub cloud_controller_manager: Option<CloudControllerManagerSettings>,
    /// Access to EC2 and STS, for the account of the keys.
    pub place: AccountAccess,
}

#[async_trait]
impl ControlPlaneParts for AwsControlPlane {
    const PROCESSES: &'static [&'static str] = &[NAME];
    const CONFIG_MAPS: &'static [&'static str] = &[CLOUD_PROVIDER_CONFIG];
    const SECRETS: &'static [&'static str] = &[ACCOUNT];

    fn parts(&self, context: &Context<ControlPlane>, owner: Option<&OwnerClaim>) -> Result<Parts> {
        let spec = &context.object.spec;
        // A shoot without a network is reported here, and not when the first machine is made.
        let infrastructure = zone::infrastructure(spec.infrastructure_provider_status.as_ref())?;
        refuse_guests(spec.cloud_controller_manager.as_ref())?;
        let Some(settings) = &self.cloud_controller_manager else {
            return Ok(Parts::default());
        };
        let cluster = context.namespace()?;
        let endpoint = settings.endpoint.as_deref();
        let config = cloud_config(&infrastructure, &spec.region, &cluster, endpoint)?;
        Ok(Parts {
            config_maps: vec![ConfigMap {
                metadata: ObjectMeta {
                    name: Some(CLOUD_PROVIDER_CONFIG.into()),
                    ..ObjectMeta::default()
                },
                data: Some(BTreeMap::from([(FILE.into(), config)])),
                ..ConfigMap::default()
            }],
            processes: vec![process(settings, &cluster, owner)],
        })
    }

    /// The keys of the recorded account. Keys of a different account have no effect: the former keys and the
    /// running process stay.
    async fn secrets(&self, context: &Context<ControlPlane>) -> Result<Vec<Secret>> {
        if self.cloud_controller_manager.is_none() {
            return Ok(Vec::new());
        }
        let spec = &context.object.spec;
        let infrastructure = zone::infrastructure(spec.infrastructure_provider_status.as_ref())?;
        // The same keys are compared and written.
        let credentials = context.credentials().await?;
        let ec2 = self
            .place
            .access
            .open(&credentials, &spec.region, context.permit())?;
        let account = account_of(&infrastructure, context.cluster.as_ref());
        let subnet = infrastructure.vpc.subnets.first();
        let home =
            HomeAccount::new(account.as_deref()).with_subnet(subnet.map_or("", |subnet| subnet.id.as_str()));
        let network = format!("the network of {}", context.namespace()?);
        home.confirm(&ec2, &network).await?;
        Ok(vec![account_secret(&credentials)])
    }
}
