//! Creates keys, certificates, tokens and files. Pure except for randomness and the clock.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{Timestamp, ToSpan, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose as Usage, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SerialNumber,
};
use ring::rand::{SecureRandom, SystemRandom};
use runtime::{Error, Result, clock};
use serde_json::json;
use sidecar_protocol::PREPARED_CLIENT_UNIT;

use super::{config::Recipe, etcd_serial::EtcdSerial, signing_key};
use crate::{api_server::kubeconfig, hex::hex};

/// Validity of an authority and of a carried certificate, in years. Longer than the expected life of a shoot
/// without a rotation of the authorities, since a carried certificate is never renewed.
pub(super) const CARRIED_YEARS: i16 = 10;
/// Validity of a derived certificate, in years. Much longer than [`super::RENEW_BEFORE`].
pub(crate) const DERIVED_YEARS: i16 = 1;

/// The end of the validity of a certificate.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Validity {
    /// Whole years from today.
    Years(i16),
    /// A time, in whole seconds.
    Until(Timestamp),
    /// A time, in whole seconds, for a certificate of a preparation that the gate of etcd refuses unless this
    /// serial number is listed.
    WhileListed(Timestamp, EtcdSerial),
}

/// The data of a Secret.
pub(crate) type Data = BTreeMap<String, Vec<u8>>;

/// A new secret: the data and the end of validity.
#[derive(Debug)]
pub(crate) struct Issued {
    pub data: Data,
    pub valid_until: Option<Timestamp>,
}

/// Creates the content for a recipe. `authority` returns the data of the Secret of an authority by name.
pub(super) fn issue<'a>(
    name: &str,
    recipe: &Recipe,
    validity: Validity,
    authority: impl Fn(&str) -> Option<&'a Data>,
) -> Result<Issued> {
    match recipe {
        Recipe::CertificateAuthority => certificate_authority(name),
        Recipe::Certificate {
            ca,
            common_name,
            organization,
            serves,
            kubeconfig,
        } => {
            let signer = authority(ca).ok_or_else(|| Error::bug(format!("{name} is issued before {ca}")))?;
            let mut issued = certificate_until(common_name, *organization, serves, validity, (ca, signer))?;
            if let Some(server) = kubeconfig {
                let trusted = authority(super::config::CA)
                    .and_then(|ca| ca.get("ca.crt"))
                    .ok_or_else(|| {
                        Error::bug(format!("{name} is issued before the certificate authority"))
                    })?;
                let file = kubeconfig::with_certificate(
                    server,
                    trusted,
                    &issued.data["tls.crt"],
                    &issued.data["tls.key"],
                )?;
                issued.data.insert("kubeconfig".into(), file);
            }
            Ok(issued)
        }
        Recipe::StaticToken => {
            let token = hex(&random::<32>()?);
            let line = format!("{token},health-check,health-check\n");
            Ok(lasting([("static_tokens.csv", line.into_bytes())]))
        }
        Recipe::EncryptionConfiguration => encryption_configuration(),
        Recipe::SigningKey => Ok(lasting([("id_rsa", signing_key::generate()?.into_bytes())])),
        Recipe::SshKeyPair => ssh_key_pair(),
    }
}

pub(crate) fn certificate_authority(name: &str) -> Result<Issued> {
    let key = KeyPair::generate().map_err(|e| failed(name, e))?;
    let (mut params, valid_until) = params(name, None, &[], Validity::Years(CARRIED_YEARS))?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
    ];
    let certificate = params.self_signed(&key).map_err(|e| failed(name, e))?;
    let data = [
        ("ca.crt", certificate.pem().into_bytes()),
        ("ca.key", key.serialize_pem().into_bytes()),
    ];
    Ok(Issued {
        valid_until: Some(valid_until),
        ..lasting(data)
    })
}

/// A client certificate, also for servers if `serves` has names (etcd is a client of etcd).
pub(crate) fn certificate(
    common_name: &str,
    organization: Option<&str>,
    serves: &[String],
    years: i16,
    signer: (&str, &Data),
) -> Result<Issued> {
    certificate_until(common_name, organization, serves, Validity::Years(years), signer)
}

fn certificate_until(
    common_name: &str,
    organization: Option<&str>,
    serves: &[String],
    validity: Validity,
    (ca, signer): (&str, &Data),
) -> Result<Issued> {
    let issuer = issuer(ca, signer)?;
    let key = KeyPair::generate().map_err(|e| failed(common_name, e))?;
    let (mut params, valid_until) = params(common_name, organization, serves, validity)?;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
    ];
    params.extended_key_usages = vec![match validity {
        Validity::Years(_) | Validity::Until(_) => Usage::ClientAuth,
        // etcd itself, and a gate that knows no list, accept only clients with the usage of clients.
        Validity::WhileListed(..) => Usage::ServerAuth,
    }];
    if !serves.is_empty() {
        params.extended_key_usages.push(Usage::ServerAuth);
    }
    let certificate = params
        .signed_by(&key, &issuer)
        .map_err(|e| failed(common_name, e))?;
    let data = [
        ("ca.crt", signer.get("ca.crt").cloned().unwrap_or_default()),
        ("tls.crt", certificate.pem().into_bytes()),
        ("tls.key", key.serialize_pem().into_bytes()),
    ];
    Ok(Issued {
        valid_until: Some(valid_until),
        ..lasting(data)
    })
}

fn issuer(ca: &str, data: &Data) -> Result<Issuer<'static, KeyPair>> {
    let text = |key: &str| data.get(key).and_then(|bytes| std::str::from_utf8(bytes).ok());
    let parse = || {
        let key = KeyPair::from_pem(text("ca.key")?).ok()?;
        Issuer::from_ca_cert_pem(text("ca.crt")?, key).ok()
    };
    parse().ok_or_else(|| {
        crate::configuration_problem(format!(
            "Secret {ca} does not hold a certificate authority in ca.crt and ca.key: put its former content back"
        ))
    })
}

fn params(
    common_name: &str,
    organization: Option<&str>,
    serves: &[String],
    validity: Validity,
) -> Result<(CertificateParams, Timestamp)> {
    let mut params = CertificateParams::new(serves.to_vec()).map_err(|e| failed(common_name, e))?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        params
            .distinguished_name
            .push(DnType::OrganizationName, organization);
    }
    if let Validity::WhileListed(_, serial) = validity {
        params.serial_number = Some(SerialNumber::from_slice(serial.as_ref()));
        params
            .distinguished_name
            .push(DnType::OrganizationalUnitName, PREPARED_CLIENT_UNIT);
    }
    // Whole days: validity begins a day earlier, for clocks that are behind.
    let today = clock::now().to_zoned(TimeZone::UTC).date();
    let from = today.saturating_sub(1.day());
    params.not_before = rcgen::date_time_ymd(
        from.year().into(),
        from.month().unsigned_abs(),
        from.day().unsigned_abs(),
    );
    let valid_until = match validity {
        Validity::Years(years) => today
            .saturating_add(i64::from(years).years())
            .to_zoned(TimeZone::UTC)
            .map_err(|e| Error::bug("the end of validity is no time").caused_by(e))?
            .timestamp(),
        Validity::Until(until) | Validity::WhileListed(until, _) => until,
    };
    let seconds = u64::try_from(valid_until.as_second()).unwrap_or_default();
    params.not_after = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
    Ok((params, valid_until))
}

/// Secrets are encrypted with a key of the shoot. The provider `identity` could read plain data of earlier
/// writes (there are no earlier writes).
fn encryption_configuration() -> Result<Issued> {
    let key = STANDARD.encode(random::<32>()?);
    let body = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{
            "resources": ["secrets"],
            "providers": [{"secretbox": {"keys": [{"name": "key1", "secret": key}]}}, {"identity": {}}],
        }],
    });
    let text =
        serde_yaml_ng::to_string(&body).map_err(|e| Error::bug(runtime::ErrorMessage::from_source(e)))?;
    Ok(lasting([("encryption-configuration.yaml", text.into_bytes())]))
}

fn ssh_key_pair() -> Result<Issued> {
    let pair = ssh_key::private::Ed25519Keypair::from_seed(&random::<32>()?);
    let key = ssh_key::PrivateKey::from(pair);
    let broken = |e: ssh_key::Error| Error::bug(format!("an SSH key pair cannot be encoded: {e}"));
    let private = key.to_openssh(ssh_key::LineEnding::LF).map_err(broken)?;
    let public = key.public_key().to_openssh().map_err(broken)?;
    Ok(lasting([
        ("id_rsa", private.as_bytes().to_vec()),
        ("id_rsa.pub", format!("{public}\n").into_bytes()),
    ]))
}

fn lasting<const N: usize>(data: [(&str, Vec<u8>); N]) -> Issued {
    Issued {
        data: data
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect(),
        valid_until: None,
    }
}

fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Error::transient("the system gave no random bytes"))?;
    Ok(bytes)
}

fn failed(name: &str, error: rcgen::Error) -> Error {
    Error::bug(format!("{name} cannot be issued")).caused_by(error)
}
