//! Certificates for the servers of a test and for the servers' users.

use std::{path::Path, sync::Arc};

use anyhow::{Result, bail};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The certificate authority of a test.
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate with the private key, both as PEM.
#[derive(Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl Authority {
    /// A new authority.
    pub fn new(name: &str) -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(name, &[])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        Ok(Self {
            issuer: CertifiedIssuer::self_signed(params, KeyPair::generate()?)?,
        })
    }

    /// The authority's certificate as PEM.
    #[must_use]
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// Opens connections to servers of this authority, without a client certificate.
    pub fn connector(&self) -> Result<TlsConnector> {
        let config = ClientConfig::builder()
            .with_root_certificates(self.roots()?)
            .with_no_client_auth();
        Ok(TlsConnector::from(Arc::new(config)))
    }

    pub(crate) fn roots(&self) -> Result<Arc<RootCertStore>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.certificate().as_bytes())?)?;
        Ok(Arc::new(roots))
    }

    /// A server certificate for these DNS names and addresses.
    pub fn server(&self, names: &[&str]) -> Result<Identity> {
        let mut params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        params.distinguished_name = subject(names.first().unwrap_or(&"server"), &[])?;
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        self.issue(params)
    }

    /// A client certificate that the API server takes as this user in these groups.
    pub fn user(&self, user: &str, groups: &[&str]) -> Result<Identity> {
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(user, groups)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(params)
    }

    fn issue(&self, mut params: CertificateParams) -> Result<Identity> {
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
        ];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Identity {
            certificate,
            key: key.serialize_pem(),
        })
    }

    /// Writes `<name>.crt` and `<name>.key` of the authority.
    pub(crate) fn write(&self, folder: &Path, name: &str) -> Result<()> {
        let identity = Identity {
            certificate: self.certificate(),
            key: self.issuer.key().serialize_pem(),
        };
        identity.write(folder, name)
    }
}

impl Identity {
    /// Writes `<name>.crt` and `<name>.key`.
    pub fn write(&self, folder: &Path, name: &str) -> Result<()> {
        std::fs::write(folder.join(format!("{name}.crt")), &self.certificate)?;
        std::fs::write(folder.join(format!("{name}.key")), &self.key)?;
        Ok(())
    }

    /// Accepts connections as this server, without client certificates.
    pub fn acceptor(&self) -> Result<TlsAcceptor> {
        let (certificates, key) = self.parsed()?;
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(certificates, key)?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    pub(crate) fn parsed(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes())?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())?;
        Ok((vec![certificate], key))
    }
}

/// The API server reads groups from O. rcgen allows each attribute type once per name, but accepts the same
/// type a second time as an object identifier.
fn subject(user: &str, groups: &[&str]) -> Result<DistinguishedName> {
    let kinds = [DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10])];
    if groups.len() > kinds.len() {
        bail!(
            "a client certificate carries at most {} groups here; {user} has {}",
            kinds.len(),
            groups.len()
        );
    }
    let mut subject = DistinguishedName::new();
    for (kind, group) in kinds.into_iter().zip(groups) {
        subject.push(kind, *group);
    }
    subject.push(DnType::CommonName, user);
    Ok(subject)
}

/// A new pair of keys as PEM: private, public.
pub(crate) fn keys() -> Result<(String, String)> {
    let pair = KeyPair::generate()?;
    Ok((pair.serialize_pem(), pair.public_key_pem()))
}
