//! Access to the shoot's own API: the gardenlet's, inside the seed, and the users', by the shoot's name.

use std::time::Duration;

use api::{constants, gardencore::Shoot as ShootObject};
use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, ResourceExt};
use placement::names;
use runtime::{Cluster, Connection, Error, Result, Shoot, apply, clock, error::Explain, rollout::checksum};
use serde_json::json;

use crate::{
    FIELD_MANAGER, Facts, Stay,
    backups::client_config,
    configuration_problem, kubeconfig,
    secrets::{
        RENEW_BEFORE,
        config::{CA, CA_CLIENT, GARDENLET, KUBE_APISERVER},
        issue::{DERIVED_YEARS, Data, certificate},
    },
};

/// Pause between two tries to reach an API that does not answer yet: there is nothing to watch. Much shorter than a start
/// of kube-apiserver takes.
const TRY_EVERY: Duration = Duration::from_millis(500);
/// For one try. Longer than a busy API takes, shorter than the patience of the step.
const TRY_FOR: Duration = Duration::from_secs(5);
/// When a Secret that is not there is looked for again. It is made within a second, unless nobody makes any.
const LOOK_FOR_SECRET: Duration = Duration::from_secs(5);
/// Whom the certificate in a user's kubeconfig names.
const USER: &str = "gardener.cloud:user";

impl Stay {
    /// A client for the shoot's API, through the Service in its namespace.
    pub async fn shoot_client(&self) -> Result<Shoot> {
        let mut secret = self.secret_data(GARDENLET).await?;
        let trusted = self.secret_data(CA).await?.remove("ca.crt").unwrap_or_default();
        secret.insert("ca.crt".into(), trusted);
        let mut config = client_config(&self.settings.shoot_api_url.of(&self.namespace), &secret)?;
        config.tls_server_name = Some(KUBE_APISERVER.into());
        config.connect_timeout = Some(TRY_FOR);
        let connection = Connection::new(config).context("could not prepare the connection to the shoot")?;
        Ok(Shoot::new(connection, self.seed.permit()))
    }
}

/// The shoot's own API.
#[derive(Debug)]
pub struct ShootApi;

impl ShootApi {
    /// "Initializing connection to Shoot": waits until the shoot's API answers as a user would find it.
    pub async fn ready(stay: &Stay) -> Result<()> {
        let client = stay.shoot_client().await?;
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
        if tokio::time::timeout(stay.settings.timeouts.shoot_client, tries)
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

/// The shoot's identity, in its status.
#[derive(Debug)]
pub struct ClusterIdentity;

impl ClusterIdentity {
    /// "Ensuring Shoot cluster identity". Once there it never changes.
    pub async fn ensure(f: &Facts) -> Result<()> {
        if f.shoot
            .status
            .as_ref()
            .is_some_and(|status| status.cluster_identity.is_some())
        {
            return Ok(());
        }
        let identity = cluster_identity(&f.namespace, &names::uid(&f.shoot), &f.settings.garden_identity);
        let api: Api<ShootObject> = f.garden.namespaced(&f.shoot_namespace());
        FIELD_MANAGER
            .merge_status(&api, &f.shoot.name_any(), &json!({"clusterIdentity": identity}))
            .await
            .map(|_| ())
    }
}

/// The users' kubeconfig: `<shoot>.kubeconfig` in the project's namespace.
#[derive(Debug)]
pub struct Kubeconfig;

impl Kubeconfig {
    /// "Deploying kubeconfig of the Shoot": fills the Secret, which garden-controller-manager makes: no seed makes a Secret in
    /// the garden. It stays as it is while it is good: also when the shoot moves.
    pub async fn deploy(f: &Facts) -> Result<()> {
        let api: Api<Secret> = f.garden.namespaced(&f.shoot_namespace());
        let (trusted, signer) = (f.secret_data(CA).await?, f.secret_data(CA_CLIENT).await?);
        let trusted = trusted.get("ca.crt").cloned().unwrap_or_default();
        let server = f.names.public_api().map(|host| format!("https://{host}")).ok_or_else(|| {
            configuration_problem("the shoot has no name: add spec.dns.internal to the Seed or spec.dns.domain to the Shoot")
        })?;
        let inputs: Data = [
            ("server".to_owned(), server.clone().into_bytes()),
            ("trusted".to_owned(), trusted.clone()),
            (
                "signer".to_owned(),
                signer.get("ca.crt").cloned().unwrap_or_default(),
            ),
        ]
        .into();
        let sum = checksum(&inputs);
        let name = name(f);
        let found = api
            .get_opt(&name)
            .await
            .context(format_args!("could not read Secret {name}"))?;
        // One that is left of an earlier Shoot of the same name is about to go.
        let Some(found) = found.filter(|found| owns(f, found)) else {
            return Err(Error::not_ready(
                LOOK_FOR_SECRET,
                format!("garden-controller-manager has not made Secret {name} of this Shoot yet"),
            ));
        };
        if is_good(&found, &sum, clock::now()) {
            return Ok(());
        }
        let issued = certificate(
            USER,
            Some("system:masters"),
            &[],
            DERIVED_YEARS,
            (CA_CLIENT, &signer),
        )?;
        let file = kubeconfig::named(
            &format!("{}--{}", f.project.name_any(), f.shoot.name_any()),
            &server,
            &trusted,
            &issued.data["tls.crt"],
            &issued.data["tls.key"],
        )?;
        let body = json!({
            "metadata": {
                "resourceVersion": found.resource_version(),
                "labels": {
                    (constants::CHECKSUM_OF_CONFIG): sum,
                    (constants::VALID_UNTIL_TIME): issued.valid_until.map(|until| until.as_second().to_string()),
                },
            },
            "data": {"kubeconfig": ByteString(file), "ca.crt": ByteString(trusted)},
        });
        FIELD_MANAGER.merge(&api, &name, &body).await.map(|_| ())
    }

    /// "Deleting kubeconfig of the Shoot".
    pub async fn destroy(f: &Facts) -> Result<()> {
        let api: Api<Secret> = f.garden.namespaced(&f.shoot_namespace());
        apply::delete(&api, &name(f)).await
    }
}

fn name(f: &Facts) -> String {
    format!("{}.kubeconfig", f.shoot.name_any())
}

fn owns(f: &Facts, secret: &Secret) -> bool {
    let uid = f.shoot.uid().unwrap_or_default();
    secret.owner_references().iter().any(|owner| owner.uid == uid)
}

fn cluster_identity(technical_id: &str, uid: &str, garden: &str) -> String {
    format!("{technical_id}-{uid}-{garden}")
}

/// Made from the same authorities for the same address, and not about to end.
fn is_good(secret: &Secret, sum: &str, now: Timestamp) -> bool {
    let label = |key: &str| secret.labels().get(key).map(String::as_str);
    let ends =
        label(constants::VALID_UNTIL_TIME).and_then(|text| Timestamp::from_second(text.parse().ok()?).ok());
    let complete = secret
        .data
        .as_ref()
        .is_some_and(|data| data.contains_key("kubeconfig"));
    complete
        && label(constants::CHECKSUM_OF_CONFIG) == Some(sum)
        && ends.is_some_and(|ends| ends.duration_since(now) > RENEW_BEFORE)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_kubeconfig_is_kept_while_it_is_good() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let secret = |ends: &str, data: bool| -> Secret {
            let ends: Timestamp = ends.parse().unwrap();
            let mut secret: Secret = crate::from_json(json!({"metadata": {"labels": {
                (constants::CHECKSUM_OF_CONFIG): "sum",
                (constants::VALID_UNTIL_TIME): ends.as_second().to_string(),
            }}}))
            .unwrap();
            secret.data = data.then(|| [("kubeconfig".to_owned(), ByteString(vec![1]))].into());
            secret
        };
        assert!(is_good(&secret("2026-12-31T00:00:00Z", true), "sum", now));
        assert!(!is_good(&secret("2026-01-15T00:00:00Z", true), "sum", now));
        assert!(!is_good(&secret("2026-12-31T00:00:00Z", true), "other", now));
        assert!(!is_good(&secret("2026-12-31T00:00:00Z", false), "sum", now));
    }
}
