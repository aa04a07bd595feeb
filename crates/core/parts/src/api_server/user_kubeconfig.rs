//! The kubeconfig for users: the shoot's API by the shoot's name, with a client certificate from the shoot's
//! own CA.

use std::time::Duration;

use api::constants;
use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, ResourceExt};
use placement::credentials::kubeconfig_secret;
use rcgen::{KeyPair, PublicKeyData};
use runtime::{
    Error, Result,
    client::{Cluster, apply},
    clock,
    error::Explain,
    workload::rollout::checksum,
};
use serde_json::json;
use x509_parser::{parse_x509_certificate, prelude::X509Certificate};

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
/// Group of the certificate in a user's kubeconfig.
const GROUP: &str = "system:masters";
/// A certificate with a later end of validity is not of this gardenlet. Longer than [`DERIVED_YEARS`] in
/// whole days, with a leap day.
const LONGEST_VALIDITY: SignedDuration = SignedDuration::from_hours(367 * 24);
/// Limit for the certificate and the key in PEM that are taken over from a present file. A certificate of
/// this gardenlet has less than 1 KiB.
const LONGEST_PEM: usize = 8192;

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
        let file = KubeconfigFile {
            name: format!("{}--{}", f.project.name_any(), f.shoot.name_any()),
            server,
            trusted,
            signer,
        };
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
        match file.fill(&found, clock::now()) {
            Fill::Keep => return Ok(()),
            Fill::Delete => {
                apply::delete_exactly(&api, &found).await?;
                return Err(Error::not_ready(
                    LOOK_FOR_SECRET,
                    format!(
                        "Secret {name} was immutable, and was deleted: garden-controller-manager has not made the next Secret yet"
                    ),
                ));
            }
            Fill::Replace => {}
        }
        let issued = certificate(USER, Some(GROUP), &[], DERIVED_YEARS, (CA_CLIENT, &file.signer))?;
        let text = file.render(&issued.data["tls.crt"], &issued.data["tls.key"])?;
        let body = json!({
            "metadata": {
                "resourceVersion": found.resource_version(),
                "labels": {
                    (constants::CHECKSUM_OF_CONFIG): file.checksum(),
                    (constants::VALID_UNTIL_TIME): issued.valid_until.map(|until| until.as_second().to_string()),
                },
            },
            "data": {"kubeconfig": ByteString(text), "ca.crt": ByteString(file.trusted)},
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

/// The step that gives the Secret a valid kubeconfig.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    /// The Secret has a valid kubeconfig.
    Keep,
    /// The data of the Secret are replaced.
    Replace,
    /// The Secret is immutable, so its data can change only by a new Secret. An earlier host set the field
    /// without policy `gardenlet-secret`.
    Delete,
}

/// The content of the file, except the certificate and the key of the user. Not `Debug`: `signer` has a key.
struct KubeconfigFile {
    name: String,
    server: String,
    /// The authority of the API server, in PEM.
    trusted: Vec<u8>,
    /// The data of the authority for clients.
    signer: Data,
}

impl KubeconfigFile {
    fn render(&self, certificate: &[u8], key: &[u8]) -> Result<Vec<u8>> {
        kubeconfig::named(&self.name, &self.server, &self.trusted, certificate, key)
    }

    fn checksum(&self) -> String {
        let inputs: Data = [
            ("server".to_owned(), self.server.clone().into_bytes()),
            ("trusted".to_owned(), self.trusted.clone()),
            (
                "signer".to_owned(),
                self.signer.get("ca.crt").cloned().unwrap_or_default(),
            ),
        ]
        .into();
        checksum(&inputs)
    }

    fn fill(&self, secret: &Secret, now: Timestamp) -> Fill {
        if self.is_valid(secret, now) {
            Fill::Keep
        } else if secret.immutable == Some(true) {
            Fill::Delete
        } else {
            Fill::Replace
        }
    }

    /// Whether the Secret has exactly the content that this gardenlet would write, with a valid certificate
    /// that does not expire soon.
    ///
    /// Each earlier host of the shoot could write the Secret, labels included. A kubeconfig can name a
    /// program that kubectl runs, or a foreign server. So only certificate and key are taken over, and are
    /// verified.
    fn is_valid(&self, secret: &Secret, now: Timestamp) -> bool {
        let Some(data) = &secret.data else {
            return false;
        };
        let value = |key: &str| data.get(key).map(|bytes| bytes.0.as_slice());
        let is_expected = || {
            let text = value("kubeconfig")?;
            let certificate = read_value(text, "client-certificate-data")?;
            let key = read_value(text, "client-key-data")?;
            let end = self.end_of_validity(&certificate, &key)?;
            let left = end.duration_since(now);
            let rendered = self.render(&certificate, &key).ok()?;
            Some(left > RENEW_BEFORE && left <= LONGEST_VALIDITY && rendered == text)
        };
        value("ca.crt") == Some(self.trusted.as_slice())
            && secret.labels().get(constants::CHECKSUM_OF_CONFIG) == Some(&self.checksum())
            && is_expected() == Some(true)
    }

    /// The end of validity of a certificate for users that the authority for clients has signed for this key.
    fn end_of_validity(&self, certificate: &[u8], key: &[u8]) -> Option<Timestamp> {
        let certificate = pem::parse(certificate).ok()?;
        let (_, certificate) = parse_x509_certificate(certificate.contents()).ok()?;
        let authority = pem::parse(self.signer.get("ca.crt")?).ok()?;
        let (_, authority) = parse_x509_certificate(authority.contents()).ok()?;
        let key = KeyPair::from_pem(std::str::from_utf8(key).ok()?).ok()?;
        let is_signed = certificate.issuer() == authority.subject()
            && certificate.verify_signature(Some(authority.public_key())).is_ok();
        let has_key = certificate.public_key().raw == key.subject_public_key_info();
        if !is_signed || !has_key || !is_for_users(&certificate) {
            return None;
        }
        Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
    }
}

fn is_for_users(certificate: &X509Certificate<'_>) -> bool {
    let subject = certificate.subject();
    let names: Vec<_> = subject
        .iter_common_name()
        .map(|name| name.as_str().ok())
        .collect();
    let groups: Vec<_> = subject
        .iter_organization()
        .map(|name| name.as_str().ok())
        .collect();
    names == [Some(USER)] && groups == [Some(GROUP)]
}

/// The decoded value of a key of a kubeconfig with one key per line, as [`kubeconfig::named`] writes such
/// files. No YAML parser reads the file: a different file does not equal the rendered file.
fn read_value(file: &[u8], key: &str) -> Option<Vec<u8>> {
    let mut lines = std::str::from_utf8(file).ok()?.lines();
    let value = lines.find_map(|line| line.trim_start().strip_prefix(key)?.strip_prefix(": "))?;
    STANDARD
        .decode(value)
        .ok()
        .filter(|decoded| decoded.len() <= LONGEST_PEM)
}

#[cfg(test)]
#[path = "user_kubeconfig_tests.rs"]
mod tests;
