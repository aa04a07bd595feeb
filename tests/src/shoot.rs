//! A Shoot from the user's point of view: the object in the garden, the kubeconfig, the API under the shoot's
//! own name.

use std::{net::SocketAddr, path::Path, time::Duration};

use anyhow::{Context, Result, anyhow, bail};
use api::{
    gardencore::Shoot,
    meta::{LastOperationState as State, LastOperationType as Type},
};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, Config,
    api::{Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use testkit::WaitBound;

use crate::{dns, landscape::Landscape, watched};

/// A Shoot under test.
pub struct UserShoot {
    /// The project's namespace in the garden.
    pub namespace: String,
    /// The name of the Shoot.
    pub name: String,
    garden: Client,
    dns: SocketAddr,
}

impl UserShoot {
    /// The Shoot `namespace/name` of a landscape.
    #[must_use]
    pub fn new(landscape: &Landscape, namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            garden: landscape.garden.clone(),
            dns: landscape.dns,
        }
    }

    /// The Shoots of the project.
    #[must_use]
    pub fn api(&self) -> Api<Shoot> {
        Api::namespaced(self.garden.clone(), &self.namespace)
    }

    /// The present object.
    pub async fn get(&self) -> Result<Shoot> {
        Ok(self.api().get(&self.name).await?)
    }

    /// Waits on a watch until `done` returns true.
    #[track_caller]
    pub fn wait(
        &self,
        what: impl Into<String>,
        within: Duration,
        done: impl Fn(&Shoot) -> bool,
    ) -> impl Future<Output = Result<Shoot>> {
        let what = what.into();
        let bound = WaitBound::new(what.clone(), within);
        async move {
            let condition = |shoot: Option<&Shoot>| shoot.is_some_and(&done);
            let shoots = self.api();
            let seen = bound.timeout(watched::without_bound(&shoots, &self.name, condition));
            if let Ok(shoot) = seen.await {
                return shoot.context("the Shoot is gone");
            }
            let status = self.get().await?.status.unwrap_or_default();
            bail!(
                "{what}: not so within {within:?}; last operation {:?}, errors {:#?}",
                status.last_operation,
                status.last_errors
            )
        }
    }

    /// Waits until the shoot is on `seed` and the last operation there (Create, Restore or Reconcile) has
    /// succeeded.
    #[track_caller]
    pub fn wait_until_on(&self, seed: &str, within: Duration) -> impl Future<Output = Result<Shoot>> {
        self.wait(format!("the Shoot lives on {seed}"), within, move |shoot| {
            let Some(status) = &shoot.status else { return false };
            let Some(last) = &status.last_operation else {
                return false;
            };
            status.seed_name.as_deref() == Some(seed)
                && matches!(last.type_, Type::Create | Type::Restore | Type::Reconcile)
                && last.state == State::Succeeded
        })
    }

    /// Moves the shoot like a user: `kubectl patch shoot … -p '{"spec":{"seedName":"…"}}'`.
    pub async fn set_seed(&self, seed: &str) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"seedName": seed}}));
        self.api()
            .patch(&self.name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// Hibernates or wakes up the shoot like a user.
    pub async fn set_hibernation(&self, enabled: bool) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"hibernation": {"enabled": enabled}}}));
        self.api()
            .patch(&self.name, &PatchParams::default(), &patch)
            .await?;
        Ok(())
    }

    /// Deletes the shoot like a user: confirms, then deletes.
    pub async fn delete(&self) -> Result<()> {
        let confirm = json!({"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}});
        self.api()
            .patch(&self.name, &PatchParams::default(), &Patch::Merge(confirm))
            .await?;
        self.api()
            .delete(&self.name, &kube::api::DeleteParams::default())
            .await?;
        Ok(())
    }

    /// The kubeconfig of the user.
    pub async fn kubeconfig(&self) -> Result<Kubeconfig> {
        let secrets: Api<Secret> = Api::namespaced(self.garden.clone(), &self.namespace);
        let secret = secrets.get(&format!("{}.kubeconfig", self.name)).await?;
        let data = secret.data.unwrap_or_default();
        let text = data
            .get("kubeconfig")
            .context("the Secret has no key kubeconfig")?;
        Ok(Kubeconfig::from_yaml(&String::from_utf8(text.0.clone())?)?)
    }

    /// The host name of the API.
    pub async fn host(&self) -> Result<String> {
        let kubeconfig = self.kubeconfig().await?;
        let server = kubeconfig
            .clusters
            .first()
            .and_then(|named| named.cluster.as_ref()?.server.clone());
        let server = server.context("the kubeconfig names no server")?;
        let url: http::Uri = server.parse()?;
        Ok(url
            .host()
            .ok_or_else(|| anyhow!("{server} has no host"))?
            .to_owned())
    }

    /// Writes a kubeconfig for programs with a different DNS server: the address is the *present* address of
    /// the name.
    pub async fn write_kubeconfig(&self, file: &Path) -> Result<()> {
        let (mut kubeconfig, host) = (self.kubeconfig().await?, self.host().await?);
        let addresses = dns::addresses(self.dns, &host).await?;
        let address = addresses
            .first()
            .with_context(|| format!("{host} has no address"))?;
        for cluster in kubeconfig
            .clusters
            .iter_mut()
            .filter_map(|named| named.cluster.as_mut())
        {
            cluster.server = Some(format!("https://{address}:443"));
            cluster.tls_server_name = Some(host.clone());
        }
        tokio::fs::write(file, serde_yaml_ng::to_string(&kubeconfig)?).await?;
        Ok(())
    }

    /// A client for the *present* address of the name, through the seed's edge, with TLS verified for the
    /// name.
    pub async fn client(&self) -> Result<Client> {
        self.client_with(self.kubeconfig().await?).await
    }

    /// As [`Self::client`], with different credentials, e.g. a service account's token.
    pub async fn client_with(&self, kubeconfig: Kubeconfig) -> Result<Client> {
        let host = self.host().await?;
        let address = *dns::addresses(self.dns, &host)
            .await?
            .first()
            .with_context(|| format!("{host} has no address"))?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.cluster_url = format!("https://{address}:443").parse()?;
        config.tls_server_name = Some(host);
        // Longer than many concurrent handshakes take on a busy machine; the writer bounds the attempts
        // separately.
        config.connect_timeout = Some(Duration::from_secs(10));
        // Longer than a watch is ever silent: an API server sends a bookmark each minute.
        config.read_timeout = Some(Duration::from_secs(120));
        Ok(Client::try_from(config)?)
    }
}
