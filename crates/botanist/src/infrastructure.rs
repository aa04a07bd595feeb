//! Infrastructure: what the shoot needs in its provider's account. Its state must be carried (R7-12).

use api::extensions::{DefaultSpec, Infrastructure, InfrastructureSpec};
use futures::FutureExt;
use k8s_openapi::ByteString;
use kube::ResourceExt;
use runtime::Result;

use crate::{
    Botanist, ExtensionResource,
    cluster::CLOUD_PROVIDER_SECRET,
    secrets::{config::SSH_KEY_PAIR, issue::Data},
};

impl Botanist {
    /// The shoot's Infrastructure.
    #[must_use]
    pub fn infrastructure(&self) -> ExtensionResource<'_, Infrastructure> {
        ExtensionResource::new(
            self,
            self.shoot.name_any(),
            self.settings.timeouts.infrastructure,
            move || async move { Ok(infrastructure(self, &self.secret_data(SSH_KEY_PAIR).await?)) }.boxed(),
        )
    }

    /// Network of the shoot's nodes as the Infrastructure chose it, else as the Shoot says.
    pub async fn nodes_cidr(&self) -> Result<Option<String>> {
        let chosen = self
            .infrastructure()
            .get()
            .await?
            .and_then(|found| found.status?.nodes_cidr);
        Ok(chosen.or_else(|| self.shoot.spec.networking.as_ref()?.nodes.clone()))
    }

    /// What every extension object of the shoot's own provider says.
    pub(crate) fn default_spec(&self, config: Option<&api::meta::RawExtension>) -> DefaultSpec {
        DefaultSpec {
            type_: self.shoot.spec.provider.type_.clone(),
            provider_config: config.cloned(),
            ..DefaultSpec::default()
        }
    }

    /// Reference to the provider's credentials in the shoot's namespace.
    pub(crate) fn cloud_provider_ref(&self) -> api::meta::SecretReference {
        api::meta::SecretReference::new(&self.namespace, CLOUD_PROVIDER_SECRET)
    }
}

fn infrastructure(botanist: &Botanist, ssh: &Data) -> Infrastructure {
    let spec = &botanist.shoot.spec;
    Infrastructure::new(
        &botanist.shoot.name_any(),
        InfrastructureSpec {
            default: botanist.default_spec(spec.provider.infrastructure_config.as_ref()),
            region: spec.region.clone(),
            secret_ref: botanist.cloud_provider_ref(),
            ssh_public_key: ssh.get("id_rsa.pub").cloned().map(ByteString),
        },
    )
}
