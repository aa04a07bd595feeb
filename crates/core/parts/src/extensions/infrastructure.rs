//! Infrastructure: the shoot's resources in the provider's account. The state must be carried (R7-12).

use api::{
    extensions::{self, DefaultSpec, InfrastructureSpec},
    meta::{PackedExtension, SecretReference},
};
use k8s_openapi::ByteString;
use kube::ResourceExt;
use runtime::Result;

use crate::{
    ExtensionResource, Facts, Residency,
    secrets::{
        config::{CLOUD_PROVIDER_SECRET, SSH_KEY_PAIR},
        issue::Data,
    },
    task::{CLOUD, ExternalSystems},
    verbs::{Deploy, Destroy, Migrate, Tasks},
};

/// The shoot's Infrastructure.
#[derive(Debug)]
pub struct Infrastructure;

impl Deploy for Infrastructure {
    const TASKS: Tasks = [
        "Deploying Shoot infrastructure",
        "Waiting until shoot infrastructure has been reconciled",
    ];
    const TOUCHES: ExternalSystems = CLOUD;

    async fn deploy(f: &Facts) -> Result<()> {
        let object = infrastructure(f, &f.residency.secret_data(SSH_KEY_PAIR).await?);
        Self::object(&f.residency).deploy(f, object).await
    }

    async fn ready(f: &Facts) -> Result<()> {
        Self::object(&f.residency).wait_until_ready().await
    }
}

impl Migrate for Infrastructure {
    const TASKS: Tasks = [
        "Migrating shoot infrastructure",
        "Waiting until shoot infrastructure has been migrated",
    ];

    async fn migrate(residency: &Residency) -> Result<()> {
        Self::object(residency).migrate().await
    }

    async fn migrated(residency: &Residency) -> Result<()> {
        Self::object(residency).wait_until_migrated().await
    }
}

impl Destroy for Infrastructure {
    const TASKS: Tasks = [
        "Destroying shoot infrastructure",
        "Waiting until shoot infrastructure has been destroyed",
    ];
    const TOUCHES: ExternalSystems = CLOUD;

    async fn destroy(residency: &Residency) -> Result<()> {
        Self::object(residency).delete().await
    }

    async fn gone(residency: &Residency) -> Result<()> {
        Self::object(residency).wait_until_deleted().await
    }
}

impl Infrastructure {
    /// The object in the seed.
    #[must_use]
    pub fn object(residency: &Residency) -> ExtensionResource<'_, extensions::Infrastructure> {
        ExtensionResource::new(
            residency,
            &residency.tenant.name,
            residency.settings.timeouts.infrastructure,
        )
    }
}

impl Facts {
    /// The common fields of every extension object of the shoot's own provider.
    pub(crate) fn default_spec(&self, config: Option<&PackedExtension>) -> DefaultSpec {
        DefaultSpec {
            type_: self.shoot.spec.provider.type_.clone(),
            provider_config: config.cloned(),
            ..DefaultSpec::default()
        }
    }

    /// Reference to the provider's credentials in the shoot's namespace.
    pub(crate) fn cloud_provider_ref(&self) -> SecretReference {
        SecretReference::new(&self.residency.namespace, CLOUD_PROVIDER_SECRET)
    }
}

fn infrastructure(f: &Facts, ssh: &Data) -> extensions::Infrastructure {
    let spec = &f.shoot.spec;
    extensions::Infrastructure::new(
        &f.shoot.name_any(),
        InfrastructureSpec {
            default: f.default_spec(spec.provider.infrastructure_config.as_ref()),
            region: spec.region.clone(),
            secret_ref: f.cloud_provider_ref(),
            ssh_public_key: ssh.get("id_rsa.pub").cloned().map(ByteString),
        },
    )
}
