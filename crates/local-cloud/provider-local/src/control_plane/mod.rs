//! ControlPlane: the objects that this provider adds beside a shoot's control plane: the configuration for
//! programs that use the cloud, and the cloud-controller-manager. [`extension::control_plane`] deploys and
//! removes the objects.
//!
//! A ready ControlPlane promises that the cloud-controller-manager runs according to the spec, and that a
//! process of a former spec is terminating. The main lock separates the two meanwhile. A hand-over of a
//! controller between managers (KEP-2436) relies on this promise.

pub mod cloud_controller_manager;

use std::collections::BTreeMap;

use api::{
    extensions::ControlPlane,
    meta::{ErrorCode, RawExtension},
};
use extension::{
    Context,
    control_plane::{ControlPlaneParts, Parts},
};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use owner_checks::OwnerClaim;
use runtime::{Error, Result};

use crate::infrastructure::InfrastructureStatus;
use cloud_controller_manager::{MIGRATION, ManagerInputs, NAME, Settings, migration_file, process};

/// The ConfigMap that programs mount.
const CLOUD_PROVIDER_CONFIG: &str = "cloud-provider-config";
/// The key of the ConfigMap.
const FILE: &str = "cloudprovider.conf";

/// The parts beside a control plane in the local cloud.
pub struct LocalControlPlane {
    /// Settings of the cloud-controller-manager.
    pub cloud_controller_manager: Settings,
}

impl ControlPlaneParts for LocalControlPlane {
    const PROCESSES: &'static [&'static str] = &[NAME];
    const CONFIG_MAPS: &'static [&'static str] = &[MIGRATION, CLOUD_PROVIDER_CONFIG];

    fn parts(&self, context: &Context<ControlPlane>, owner: Option<&OwnerClaim>) -> Result<Parts> {
        let spec = &context.object.spec;
        let config = cloud_provider_config(spec.infrastructure_provider_status.as_ref())?;
        let wanted = ManagerInputs {
            cluster: &context.namespace()?,
            spec: spec.cloud_controller_manager.as_ref(),
            owner,
        };
        let files = [Some(config), migration_file(wanted.spec)];
        Ok(Parts {
            config_maps: files.into_iter().flatten().collect(),
            processes: vec![process(&self.cloud_controller_manager, wanted)],
        })
    }
}

fn cloud_provider_config(infrastructure: Option<&RawExtension>) -> Result<ConfigMap> {
    let status = infrastructure
        .and_then(|raw| raw.decode::<InfrastructureStatus>().ok())
        .unwrap_or_default();
    if status.network_id.is_empty() {
        return Err(Error::config(
            ErrorCode::ErrConfigurationProblem,
            "spec.infrastructureProviderStatus names no networkID: the control plane is wanted before its infrastructure",
        ));
    }
    Ok(ConfigMap {
        metadata: ObjectMeta {
            name: Some(CLOUD_PROVIDER_CONFIG.into()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([(
            FILE.into(),
            format!("networkID: {}\n", status.network_id),
        )])),
        ..ConfigMap::default()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn the_network_comes_from_the_infrastructure() {
        let object =
            cloud_provider_config(Some(&RawExtension(json!({"networkID": "net-1", "more": 1})))).unwrap();
        assert_eq!(object.data.unwrap()["cloudprovider.conf"], "networkID: net-1\n");
        assert_eq!(
            cloud_provider_config(None).unwrap_err().codes(),
            [ErrorCode::ErrConfigurationProblem]
        );
    }
}
