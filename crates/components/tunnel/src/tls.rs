//! Certificates: both sides show a certificate of the shoot's authority for tunnels. This authority signs no
//! certificates for further purposes. So no different key of the shoot is accepted here, and no key of the
//! tunnel is accepted elsewhere.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Paths of certificate and key.
#[derive(Clone, Debug, clap::Args)]
pub struct Files {
    /// Certificate of the authority that both sides trust.
    #[arg(long)]
    pub ca: PathBuf,
    /// This side's certificate.
    #[arg(long)]
    pub certificate: PathBuf,
    /// The key of this side's certificate.
    #[arg(long)]
    pub key: PathBuf,
}

/// This side of every connection.
pub struct Identity {
    trusted: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Files {
    /// Reads the files.
    ///
    /// # Errors
    /// Names the file that is missing or invalid.
    pub fn read(&self) -> Result<Identity, String> {
        let named =
            |path: &Path, why: &dyn std::fmt::Display| format!("{} cannot be used: {why}", path.display());
        let certificates = |path: &Path| -> Result<Vec<_>, String> {
            CertificateDer::pem_file_iter(path)
                .and_then(Iterator::collect)
                .map_err(|error| named(path, &error))
        };
        let mut trusted = RootCertStore::empty();
        for certificate in certificates(&self.ca)? {
            trusted
                .add(certificate)
                .map_err(|error| named(&self.ca, &error))?;
        }
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| named(&self.key, &error))?;
        Ok(Identity {
            trusted: Arc::new(trusted),
            chain: certificates(&self.certificate)?,
            key,
        })
    }
}

impl Identity {
    /// For incoming connections. Peers without a certificate of the authority are rejected. `protocol`: the
    /// ALPN protocol that a peer must offer, if any.
    ///
    /// # Errors
    /// Key and certificate do not match.
    pub fn acceptor(&self, protocol: Option<&[u8]>) -> Result<TlsAcceptor, String> {
        let verifier = WebPkiClientVerifier::builder(Arc::clone(&self.trusted))
            .build()
            .map_err(|error| format!("the authority cannot be used: {error}"))?;
        let mut config = ServerConfig::builder()
            .with_client_cert_verifier(verifier)
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .map_err(|error| format!("key and certificate do not go together: {error}"))?;
        config.alpn_protocols = protocol.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// For connections to a server. The server's certificate must have this name, regardless of the dialled
    /// name. The edge finds the server by the DNS name of the API, and no certificate of a tunnel may be
    /// valid for that name.
    ///
    /// # Errors
    /// The name is invalid, or key and certificate do not match.
    pub fn connector(&self, name: &str) -> Result<TlsConnector, String> {
        let name =
            ServerName::try_from(name.to_owned()).map_err(|_| format!("{name} is no name of a server"))?;
        let inner = WebPkiServerVerifier::builder(Arc::clone(&self.trusted))
            .build()
            .map_err(|error| format!("the authority cannot be used: {error}"))?;
        let mut config = ClientConfig::builder()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Named { inner, name }))
            .with_client_auth_cert(self.chain.clone(), self.key.clone_key())
            .map_err(|error| format!("key and certificate do not go together: {error}"))?;
        config.alpn_protocols = vec![crate::limits::PROTOCOL.to_vec()];
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

/// The common name in a certificate that the authority signed.
#[must_use]
pub fn common_name(chain: Option<&[CertificateDer<'_>]>) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(chain?.first()?).ok()?;
    let name = certificate.subject().iter_common_name().next()?;
    name.as_str().ok().map(str::to_owned)
}

/// Verifies a server as usual, but by a fixed name.
#[derive(Debug)]
struct Named {
    inner: Arc<WebPkiServerVerifier>,
    name: ServerName<'static>,
}

impl ServerCertVerifier for Named {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _called: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.inner
            .verify_server_cert(certificate, others, &self.name, ocsp, now)
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
