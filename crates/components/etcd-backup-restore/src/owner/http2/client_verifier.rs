//! Verifies the certificates of clients by etcd's CA.
//!
//! A certificate of a preparation has the usage of servers, and not of clients. So etcd itself, a gate that
//! forwards bytes to etcd, and the gate of a former version refuse the certificate. The certificate has no
//! name of a server.

use super::prepared_clients::ClientCertificate;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
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
        let read = ClientCertificate::read(Some(from_ref(certificate)));
        if !matches!(read, Some(ClientCertificate::Prepared(_))) {
            return self.inner.verify_client_cert(certificate, others, now);
        }
        let parsed = ParsedCertificate::try_from(certificate)?;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, others, now, self.algorithms.all)?;
        Ok(ClientCertVerified::assertion())
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
        usage: ExtendedKeyUsagePurpose,
    ) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.extended_key_usages = vec![usage];
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
        let (clients, servers) = (
            ExtendedKeyUsagePurpose::ClientAuth,
            ExtendedKeyUsagePurpose::ServerAuth,
        );
        for (certificate, at_gate, at_etcd) in [
            (leaf(&issuer, None, clients.clone()), true, true),
            (leaf(&issuer, unit, servers.clone()), true, false),
            // A mark without the usage, and the usage without a mark.
            (leaf(&issuer, unit, clients.clone()), false, true),
            (leaf(&issuer, None, servers.clone()), false, false),
            (leaf(&stranger, None, clients), false, false),
            (leaf(&stranger, unit, servers), false, false),
        ] {
            let is_valid = gate.verify_client_cert(&certificate, &[], now).is_ok();
            assert_eq!(is_valid, at_gate, "{certificate:?}");
            let is_valid = etcd.verify_client_cert(&certificate, &[], now).is_ok();
            assert_eq!(is_valid, at_etcd, "{certificate:?}");
        }
    }
}
