//! The kubeconfig for users: the shoot's API by the shoot's name, with a client certificate from the shoot's
//! own CA.

use std::time::Duration;

use api::constants;
use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, ResourceExt};
use placement::credentials::kubeconfig_secret;
use runtime::{
    Error, Result,
    client::{Cluster, apply},
    clock,
    error::Explain,
    workload::rollout::checksum,
};
use serde_json::json;

use crate::{
    FIELD_MANAGER, Facts,
    api_server::kubeconfig,
    configuration_problem,
    facts::no_right_yet,
    secrets::{
        RENEW_BEFORE,
        config::{CA, CA_CLIENT},
        issue::{DERIVED_YEARS, Data, certificate},
    },
    task::{NONE, PartTask},
};

/// Requeue interval for a missing Secret. A running garden-controller-manager creates the Secret within a
/// second.
const LOOK_FOR_SECRET: Duration = Duration::from_secs(5);
/// Common name of the certificate in a user's kubeconfig.
const USER: &str = "gardener.cloud:user";

/// The users' kubeconfig: `<shoot>.kubeconfig` in the project's namespace.
#[derive(Debug)]
pub struct Kubeconfig;

impl Kubeconfig {
    /// [`Self::deploy`], as a task.
    pub const DEPLOY: PartTask<Facts> = PartTask::new("Deploying kubeconfig of the Shoot", NONE, |input| {
        Box::pin(Self::deploy(input))
    });
    /// [`Self::destroy`], as a task.
    pub const DESTROY: PartTask<Facts> = PartTask::new("Deleting kubeconfig of the Shoot", NONE, |input| {
        Box::pin(Self::destroy(input))
    });

    /// "Deploying kubeconfig of the Shoot": fills the Secret that garden-controller-manager creates, because
    /// no seed creates a Secret in the garden. A valid kubeconfig stays unchanged, also when the shoot moves.
    /// A Shoot that is restored only for a deletion needs no kubeconfig. A foreground deletion deletes the
    /// Secret first, and no controller creates a new Secret.
    pub async fn deploy(f: &Facts) -> Result<()> {
        if f.shoot.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let api: Api<Secret> = f.garden.namespaced(&f.shoot_namespace());
        let (trusted, signer) = (
            f.residency.secret_data(CA).await?,
            f.residency.secret_data(CA_CLIENT).await?,
        );
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
        let found = match api.get_opt(&name).await {
            Err(kube::Error::Api(status)) if status.is_forbidden() => {
                return Err(no_right_yet(&f.shoot_namespace(), &name));
            }
            other => other.context(format_args!("could not read Secret {name}"))?,
        };
        // A Secret that is left of an earlier Shoot of the same name will soon be deleted.
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
    kubeconfig_secret(&f.shoot.name_any())
}

fn owns(f: &Facts, secret: &Secret) -> bool {
    let uid = f.shoot.uid().unwrap_or_default();
    secret.owner_references().iter().any(|owner| owner.uid == uid)
}

/// The kubeconfig is from the same authorities and for the same address, and does not expire soon.
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
