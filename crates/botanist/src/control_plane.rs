//! ControlPlane: what the provider adds to the control plane.

use api::extensions::{ControlPlane, ControlPlaneSpec};
use futures::FutureExt;
use kube::ResourceExt;

use crate::{
    Botanist, ExtensionResource,
    controller_leaders::{Stage, told},
};

impl Botanist {
    /// The shoot's ControlPlane.
    #[must_use]
    pub fn control_plane(&self) -> ExtensionResource<'_, ControlPlane> {
        self.control_plane_at(self.stage)
    }

    /// The same, where its cloud-controller-manager is told what it does in this stage.
    pub(crate) fn control_plane_at(&self, stage: Stage) -> ExtensionResource<'_, ControlPlane> {
        ExtensionResource::new(
            self,
            self.shoot.name_any(),
            self.settings.timeouts.extension,
            move || {
                async move {
                    let infrastructure = self.infrastructure().get().await?;
                    let spec = &self.shoot.spec;
                    Ok(ControlPlane::new(
                        &self.shoot.name_any(),
                        ControlPlaneSpec {
                            default: self.default_spec(spec.provider.control_plane_config.as_ref()),
                            infrastructure_provider_status: infrastructure
                                .and_then(|infrastructure| infrastructure.status?.default.provider_status),
                            region: spec.region.clone(),
                            secret_ref: self.cloud_provider_ref(),
                            cloud_controller_manager: told(stage, &self.names),
                        },
                    ))
                }
                .boxed()
            },
        )
    }
}
