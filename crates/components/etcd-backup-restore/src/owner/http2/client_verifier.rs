//! Verifies the certificates of clients by etcd's CA.
//!
//! A certificate of a preparation has the usage of servers, and not of clients. So etcd itself, a gate that
//! forwards bytes to etcd, and the gate of a former version refuse the certificate. The certificate has no
//! name of a server.
//!
//! The subject is read only after the CA's signature is verified, so that only the CA chooses the bytes for
//! the parser of subjects.

use super::prepared_clients::ClientCertificate;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};
use std::slice::from_ref;
use std::sync::Arc;

/// As the verifier of rustls, but with a different usage for the certificates of preparations.
#[derive(Debug)]
pub(super) struct ClientVerifier {
    inner: Arc<dyn ClientCertVerifier>,
    roots: Arc<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientVerifier {
    /// # Errors
    /// The CA cannot be used.
    pub(super) fn new(roots: Arc<RootCertStore>) -> Result<Self, String> {
        let inner = WebPkiClientVerifier::builder(roots.clone()).build();
        let inner = inner.map_err(|error| error.to_string())?;
        let provider = CryptoProvider::get_default();
        let provider = provider.ok_or_else(|| "this process has no provider of cryptography".to_owned())?;
        Ok(Self {
            inner,
            roots,
            algorithms: provider.signature_verification_algorithms,
        })
    }

    /// Whether the certificate is valid, of the CA, and for servers.
    fn has_usage_of_servers(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> bool {
        let Ok(parsed) = ParsedCertificate::try_from(certificate) else {
            return false;
        };
        let algorithms = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, others, now, algorithms).is_ok()
    }
}

/// Reads the subject. The caller has verified the signature of the CA.
fn is_prepared(verified: &CertificateDer<'_>) -> bool {
    let read = ClientCertificate::read(Some(from_ref(verified)));
    matches!(read, Some(ClientCertificate::Prepared(_)))
}

impl ClientCertVerifier for ClientVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match self.inner.verify_client_cert(certificate, others, now) {
            // etcd itself would accept such a certificate of a preparation.
            Ok(_) if is_prepared(certificate) => {
                tracing::warn!(
                    "the gate refuses a client whose certificate has an organizational unit and the usage of clients: \
                     issue the certificate without the unit"
                );
                Err(Error::InvalidCertificate(CertificateError::InvalidPurpose))
            }
            Err(_) if self.has_usage_of_servers(certificate, others, now) && is_prepared(certificate) => {
                Ok(ClientCertVerified::assertion())
            }
            judged => judged,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use rcgen::{
        BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    };
    use sidecar_protocol::PREPARED_CLIENT_UNIT;

    /// A CA, as issuer and as root.
    fn authority() -> (Issuer<'static, KeyPair>, Arc<RootCertStore>) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let mut roots = RootCertStore::empty();
        roots
            .add(params.self_signed(&key).unwrap().der().clone())
            .unwrap();
        (Issuer::new(params, key), Arc::new(roots))
    }

    fn leaf(
        issuer: &Issuer<'static, KeyPair>,
        unit: Option<&str>,
        usages: &[ExtendedKeyUsagePurpose],
    ) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.extended_key_usages = usages.to_vec();
        if let Some(unit) = unit {
            params
                .distinguished_name
                .push(DnType::OrganizationalUnitName, unit);
        }
        let key = KeyPair::generate().unwrap();
        params.signed_by(&key, issuer).unwrap().der().clone()
    }

    /// etcd verifies clients as the verifier of rustls does: the usage of clients is required.
    #[test]
    fn the_certificate_of_a_preparation_is_valid_at_this_gate_alone() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (issuer, roots) = authority();
        let (stranger, _) = authority();
        let gate = ClientVerifier::new(roots.clone()).unwrap();
        let etcd = WebPkiClientVerifier::builder(roots).build().unwrap();
        let (unit, now) = (Some(PREPARED_CLIENT_UNIT), UnixTime::now());
        let both = [
            ExtendedKeyUsagePurpose::ClientAuth,
            ExtendedKeyUsagePurpose::ServerAuth,
        ];
        let [clients, servers] = [&both[..1], &both[1..]];
        for (certificate, at_gate, at_etcd) in [
            (leaf(&issuer, None, clients), true, true),
            (leaf(&issuer, None, &both), true, true),
            // Without the extension a certificate is for all usages.
            (leaf(&issuer, None, &[]), true, true),
            (leaf(&issuer, unit, servers), true, false),
            // A mark without the usage alone, and the usage without a mark.
            (leaf(&issuer, unit, clients), false, true),
            (leaf(&issuer, unit, &both), false, true),
            (leaf(&issuer, unit, &[]), false, true),
            (leaf(&issuer, None, servers), false, false),
            (leaf(&stranger, None, clients), false, false),
            (leaf(&stranger, unit, servers), false, false),
            (vec![0x30, 0x03, 1, 2, 3].into(), false, false),
        ] {
            let is_valid = gate.verify_client_cert(&certificate, &[], now).is_ok();
            assert_eq!(is_valid, at_gate, "{certificate:?}");
            let is_valid = etcd.verify_client_cert(&certificate, &[], now).is_ok();
            assert_eq!(is_valid, at_etcd, "{certificate:?}");
        }
    }
}
