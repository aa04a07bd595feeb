//! ControlPlane: what this provider puts beside a shoot's control plane. That is the configuration for
//! programs that talk to the cloud, and the cloud-controller-manager. How it comes and goes is
//! [`extension::control_plane`]'s.
//!
//! A ControlPlane that is ready promises that the cloud-controller-manager runs as its spec says, and that
//! what runs as a former spec said was told to stop (its main lock keeps the two apart meanwhile): whoever
//! hands a controller over between managers (KEP-2436) goes by that.

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
use cloud_controller_manager::{MIGRATION, NAME, Settings, Wanted, migration_file, process};

/// The ConfigMap, as programs mount it.
const CLOUD_PROVIDER_CONFIG: &str = "cloud-provider-config";
/// Its key.
const FILE: &str = "cloudprovider.conf";

/// What is beside a control plane in the local cloud.
pub struct LocalControlPlane {
    /// Of the cloud-controller-manager.
    pub cloud_controller_manager: Settings,
}

impl ControlPlaneParts for LocalControlPlane {
    const PROCESSES: &'static [&'static str] = &[NAME];
    const CONFIG_MAPS: &'static [&'static str] = &[MIGRATION, CLOUD_PROVIDER_CONFIG];

    fn parts(&self, context: &Context<ControlPlane>, owner: Option<&OwnerClaim>) -> Result<Parts> {
        let spec = &context.object.spec;
        let config = cloud_provider_config(spec.infrastructure_provider_status.as_ref())?;
        let wanted = Wanted {
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
