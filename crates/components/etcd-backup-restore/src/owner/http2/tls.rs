//! Certificates of the gate. Clients show a certificate of etcd's client CA, as to etcd itself. Towards etcd
//! the gate shows the certificate of this process.

use super::client_verifier::ClientVerifier;
use crate::error::{Class, Error, Result};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::NoServerSessionStorage;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// How often the files are read. Far shorter than the time between renewal and expiry.
const READ_PERIOD: Duration = Duration::from_secs(30);

const HTTP2: &[u8] = b"h2";

/// Files of the certificates.
#[derive(Clone, Debug)]
pub struct GateTlsPaths {
    /// Certificate that the gate shows to clients: etcd's server certificate.
    pub cert: PathBuf,
    /// Key of that certificate.
    pub key: PathBuf,
    /// CA of the clients.
    pub client_ca: PathBuf,
    /// CA of etcd's server certificate.
    pub etcd_ca: PathBuf,
    /// Client certificate and key of the gate at etcd.
    pub etcd_client: Option<(PathBuf, PathBuf)>,
    /// Name in etcd's server certificate.
    pub etcd_name: String,
}

/// TLS on both sides of the gate, or on neither.
#[derive(Default)]
pub(super) struct TlsConfigs {
    pub(super) clients: Option<TlsAcceptor>,
    pub(super) etcd: Option<(TlsConnector, ServerName<'static>)>,
}

/// The present certificates; renewed files are taken over.
pub(super) struct GateTls {
    paths: Option<GateTlsPaths>,
    current: Mutex<(Instant, Arc<TlsConfigs>)>,
}

impl GateTls {
    /// # Errors
    /// Names the file that is missing or invalid.
    pub(super) fn new(paths: Option<GateTlsPaths>) -> Result<Self> {
        let configs = paths.as_ref().map(GateTlsPaths::read).transpose()?;
        Ok(Self {
            paths,
            current: Mutex::new((Instant::now(), Arc::new(configs.unwrap_or_default()))),
        })
    }

    pub(super) fn current(&self) -> Arc<TlsConfigs> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let (read_at, configs) = &mut *current;
        if let Some(paths) = &self.paths
            && read_at.elapsed() > READ_PERIOD
        {
            *read_at = Instant::now();
            match paths.read() {
                Ok(renewed) => *configs = Arc::new(renewed),
                Err(error) => tracing::warn!(%error, "the gate keeps its former certificates"),
            }
        }
        configs.clone()
    }
}

fn wrong(path: &Path, why: impl std::fmt::Display) -> Error {
    let what = format!("{} cannot be used by the gate: {why}", path.display());
    Error::new(Class::Configuration, what)
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    found.map_err(|error| wrong(path, error))
}

fn roots(path: &Path) -> Result<Arc<RootCertStore>> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(path)? {
        roots.add(certificate).map_err(|error| wrong(path, error))?;
    }
    Ok(Arc::new(roots))
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| wrong(path, error))
}

impl GateTlsPaths {
    fn read(&self) -> Result<TlsConfigs> {
        let verifier = ClientVerifier::new(roots(&self.client_ca)?);
        let verifier = verifier.map_err(|error| wrong(&self.client_ca, error))?;
        let mut clients = ServerConfig::builder()
            .with_client_cert_verifier(Arc::new(verifier))
            .with_single_cert(chain(&self.cert)?, key(&self.key)?)
            .map_err(|error| wrong(&self.cert, error))?;
        clients.alpn_protocols = vec![HTTP2.to_vec()];
        // A resumed session would not show the certificate again, which may have expired since.
        clients.session_storage = Arc::new(NoServerSessionStorage {});
        clients.send_tls13_tickets = 0;
        let etcd = ClientConfig::builder().with_root_certificates(roots(&self.etcd_ca)?);
        let mut etcd = match &self.etcd_client {
            Some((cert, path)) => etcd
                .with_client_auth_cert(chain(cert)?, key(path)?)
                .map_err(|error| wrong(cert, error))?,
            None => etcd.with_no_client_auth(),
        };
        etcd.alpn_protocols = vec![HTTP2.to_vec()];
        etcd.resumption = Resumption::disabled();
        let name = ServerName::try_from(self.etcd_name.clone()).map_err(|error| {
            let what = format!("{} is no name in a certificate of etcd: {error}", self.etcd_name);
            Error::new(Class::Configuration, what)
        })?;
        Ok(TlsConfigs {
            clients: Some(TlsAcceptor::from(Arc::new(clients))),
            etcd: Some((TlsConnector::from(Arc::new(etcd)), name)),
        })
    }
}
