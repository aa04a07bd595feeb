//! The shoot's own API, which the gardenlet reaches inside the seed.

use std::time::Duration;

use runtime::{
    Error, Result,
    client::{Cluster, Connection, Shoot},
    error::Explain,
};

use crate::{
    Residency,
    etcd::sidecar::client_config,
    secrets::config::{CA, GARDENLET, KUBE_APISERVER},
    task::{NONE, PartTask},
};

/// Interval between two attempts to reach an API that does not answer yet, because no watch is possible. Much
/// shorter than a start of kube-apiserver.
const TRY_EVERY: Duration = Duration::from_millis(500);
/// Timeout of an attempt. Longer than a busy API needs, shorter than the timeout of the step.
const TRY_FOR: Duration = Duration::from_secs(5);

impl Residency {
    /// A client for the shoot's API, through the Service in the shoot's namespace.
    pub async fn shoot_client(&self) -> Result<Shoot> {
        let mut secret = self.secret_data(GARDENLET).await?;
        let trusted = self.secret_data(CA).await?.remove("ca.crt").unwrap_or_default();
        secret.insert("ca.crt".into(), trusted);
        let mut config = client_config(&self.settings.shoot_api_url.build(&self.namespace), &secret)?;
        config.tls_server_name = Some(KUBE_APISERVER.into());
        config.connect_timeout = Some(TRY_FOR);
        let connection =
            Connection::to_users_cluster(config).context("could not prepare the connection to the shoot")?;
        Ok(Shoot::new(connection, self.seed.permit()))
    }
}

/// The shoot's own API.
#[derive(Debug)]
pub struct ShootApi;

impl ShootApi {
    /// [`Self::ready`], as a task.
    pub const READY: PartTask<Residency> = PartTask::new("Initializing connection to Shoot", NONE, |input| {
        Box::pin(Self::ready(input))
    });

    /// "Initializing connection to Shoot": waits until the shoot's API answers a request.
    pub async fn ready(residency: &Residency) -> Result<()> {
        let client = residency.shoot_client().await?;
        let mut why = String::from("it was not asked yet");
        let tries = async {
            loop {
                match tokio::time::timeout(TRY_FOR, client.client().apiserver_version()).await {
                    Ok(Ok(_)) => return,
                    Ok(Err(error)) => why = error.to_string(),
                    Err(_) => why = format!("no answer within {TRY_FOR:?}"),
                }
                tokio::time::sleep(TRY_EVERY).await;
            }
        };
        if tokio::time::timeout(residency.settings.timeouts.shoot_client, tries)
            .await
            .is_ok()
        {
            return Ok(());
        }
        Err(Error::transient(format!(
            "the shoot's API does not answer: {why}"
        )))
    }
}
