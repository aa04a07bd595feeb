//! ControlPlane: the provider's part of the control plane.

use api::extensions::{self, ControlPlaneSpec};
use kube::ResourceExt;
use runtime::Result;

use crate::{
    ExtensionResource, Facts, Residency,
    controllers::controller_leaders::{Stage, configure_guest, current_stage},
    extensions::infrastructure::Infrastructure,
    task::{CLOUD, ExternalSystems},
    verbs::{Deploy, Destroy, Migrate, Sleep, Tasks},
};

/// The shoot's ControlPlane.
#[derive(Debug)]
pub struct ControlPlane;

impl Deploy for ControlPlane {
    const TASKS: Tasks = [
        "Deploying shoot control plane components",
        "Waiting until shoot control plane has been reconciled",
    ];
    const TOUCHES: ExternalSystems = CLOUD;

    async fn deploy(f: &Facts) -> Result<()> {
        Self::deploy_at(f, f.stage).await
    }

    async fn ready(f: &Facts) -> Result<()> {
        Self::object(&f.residency).wait_until_ready().await
    }
}

/// The provider stops the provider's part when the shoot is hibernated and no kube-apiserver is wanted any
/// more.
impl Sleep for ControlPlane {
    const TASKS: Tasks = [
        "Scaling shoot control plane components down",
        "Waiting until shoot control plane components have stopped",
    ];
    const TOUCHES: ExternalSystems = CLOUD;

    async fn sleep(f: &Facts) -> Result<()> {
        // Not the stage from the start of the flow: node IPAM may have moved since.
        let wanted = Stage::wanted(&f.shoot.spec.kubernetes.controller_leaders);
        let stage = current_stage(
            &f.residency.seed,
            &f.residency.namespace,
            &f.shoot.name_any(),
            wanted,
        )
        .await?;
        Self::deploy_at(f, stage).await
    }

    async fn asleep(f: &Facts) -> Result<()> {
        Self::object(&f.residency).wait_until_ready().await
    }
}

impl Migrate for ControlPlane {
    const TASKS: Tasks = [
        "Migrating shoot control plane",
        "Waiting until shoot control plane has been migrated",
    ];

    async fn migrate(residency: &Residency) -> Result<()> {
        Self::object(residency).migrate().await
    }

    async fn migrated(residency: &Residency) -> Result<()> {
        Self::object(residency).wait_until_migrated().await
    }
}

impl Destroy for ControlPlane {
    const TASKS: Tasks = [
        "Destroying shoot control plane",
        "Waiting until shoot control plane has been destroyed",
    ];
    const TOUCHES: ExternalSystems = CLOUD;

    async fn destroy(residency: &Residency) -> Result<()> {
        Self::object(residency).delete().await
    }

    async fn gone(residency: &Residency) -> Result<()> {
        Self::object(residency).wait_until_deleted().await
    }
}

impl ControlPlane {
    /// The object in the seed.
    #[must_use]
    pub fn object(residency: &Residency) -> ExtensionResource<'_, extensions::ControlPlane> {
        ExtensionResource::new(
            residency,
            &residency.tenant.name,
            residency.settings.timeouts.extension,
        )
    }

    /// Deploys the ControlPlane with the cloud-controller-manager configuration of this stage.
    pub(crate) async fn deploy_at(f: &Facts, stage: Stage) -> Result<()> {
        let infrastructure = Infrastructure::object(&f.residency).get().await?;
        let spec = &f.shoot.spec;
        let object = extensions::ControlPlane::new(
            &f.shoot.name_any(),
            ControlPlaneSpec {
                default: f.default_spec(spec.provider.control_plane_config.as_ref()),
                infrastructure_provider_status: infrastructure
                    .and_then(|infrastructure| infrastructure.status?.default.provider_status),
                region: spec.region.clone(),
                secret_ref: f.cloud_provider_ref(),
                cloud_controller_manager: configure_guest(stage, &f.names),
            },
        );
        Self::object(&f.residency).deploy(f, object).await
    }
}
