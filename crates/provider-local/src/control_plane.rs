//! ControlPlane: what this provider puts beside a shoot's control plane. That is the configuration for programs that talk to the
//! cloud, and the cloud-controller-manager. There is nothing outside, so restore is a plain reconcile (RX-32) and migrate cleans
//! up (RX-20).
//!
//! A ControlPlane that is ready promises that the cloud-controller-manager runs as its spec says, and that what runs as a former
//! spec said was told to stop (its main lock keeps the two apart meanwhile): whoever hands a controller over between managers
//! (KEP-2436) goes by that. Of a shoot that is to sleep it stops when no kube-apiserver is wanted any more, and its Deployment
//! stays. One that has migrated or is gone promises that no process of it is left (I3).

pub mod cloud_controller_manager;
mod removal;
mod rollout;

use std::collections::BTreeMap;

use api::{
    extensions::ControlPlane,
    meta::{ErrorCode, RawExtension},
};
use async_trait::async_trait;
use extension::{Actuator, Context, Outcome};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use runtime::{Cluster, Error, Result};

use crate::infrastructure::InfrastructureStatus;
use cloud_controller_manager::{MIGRATION, Settings};

/// The ConfigMap, as programs mount it.
const CLOUD_PROVIDER_CONFIG: &str = "cloud-provider-config";
/// Its key.
const FILE: &str = "cloudprovider.conf";

/// Looks after ControlPlanes.
pub struct ControlPlaneActuator {
    /// Of the cloud-controller-manager.
    pub cloud_controller_manager: Settings,
}

#[async_trait]
impl Actuator<ControlPlane> for ControlPlaneActuator {
    const NAME: &'static str = "controlplane";

    async fn reconcile(&self, context: &Context<ControlPlane>) -> Result<Outcome> {
        let object = cloud_provider_config(context.object.spec.infrastructure_provider_status.as_ref())?;
        context
            .manager
            .apply(&context.seed.namespaced(&context.namespace()?), &object)
            .await?;
        Box::pin(rollout::roll_out(context, &self.cloud_controller_manager)).await?;
        Ok(Outcome::none())
    }

    async fn restore(&self, context: &Context<ControlPlane>) -> Result<Outcome> {
        self.reconcile(context).await
    }

    async fn migrate(&self, context: &Context<ControlPlane>) -> Result<Outcome> {
        self.delete(context).await.map(|()| Outcome::none())
    }

    async fn delete(&self, context: &Context<ControlPlane>) -> Result<()> {
        let namespace = context.namespace()?;
        let config_maps = [MIGRATION, CLOUD_PROVIDER_CONFIG];
        Box::pin(removal::remove(&context.seed, &namespace, &config_maps)).await
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
