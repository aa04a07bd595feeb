//! ControlPlane: Kubernetes' own cloud-controller-manager for AWS beside a shoot's control plane, and its
//! configuration.
//!
//! Without an image nothing is put there. The gardenlet sees that no Deployment of this name exists, and
//! kubelets start without `--cloud-provider=external`.

pub mod cloud_controller_manager;

use std::collections::BTreeMap;

use api::extensions::ControlPlane;
use extension::{
    Context,
    control_plane::{ControlPlaneParts, Parts},
};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use owner_checks::OwnerClaim;
use runtime::Result;

use crate::zone;
use cloud_controller_manager::{
    CLOUD_PROVIDER_CONFIG, CloudControllerManagerSettings, FILE, NAME, cloud_config, process, refuse_guests,
};

/// The parts beside a control plane.
pub struct AwsControlPlane {
    /// Settings of the cloud-controller-manager. None is deployed by default.
    pub cloud_controller_manager: Option<CloudControllerManagerSettings>,
}

impl ControlPlaneParts for AwsControlPlane {
    const PROCESSES: &'static [&'static str] = &[NAME];
    const CONFIG_MAPS: &'static [&'static str] = &[CLOUD_PROVIDER_CONFIG];

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
}
