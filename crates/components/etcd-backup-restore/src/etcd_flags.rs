//! The flags of the connection to etcd.

use crate::etcd::EtcdConfig;
use crate::flag_ranges::period;
use clap::Args;
use permit::Permit;
use std::path::PathBuf;
use std::time::Duration;

/// The etcd that is backed up.
#[derive(Debug, Args)]
pub struct EtcdArgs {
    /// Client URLs of etcd.
    #[arg(long, value_delimiter = ',', default_value = "http://127.0.0.1:2379")]
    pub endpoints: Vec<String>,
    /// CA of etcd's server certificate.
    #[arg(long)]
    pub cacert: Option<PathBuf>,
    /// Client certificate for etcd.
    #[arg(long, requires = "key")]
    pub cert: Option<PathBuf>,
    /// Key of the client certificate.
    #[arg(long, requires = "cert")]
    pub key: Option<PathBuf>,
    /// Name to expect in etcd's server certificate, if the name differs from the host of the URL.
    #[arg(long)]
    pub etcd_server_name: Option<String>,
    /// Timeout of a short call to etcd.
    #[arg(long, value_parser = period("1s", "10m"), default_value = "30s")]
    pub etcd_connection_timeout: Duration,
}

impl EtcdArgs {
    /// The connection's settings.
    #[must_use]
    pub fn config(&self, permit: &Permit) -> EtcdConfig {
        EtcdConfig {
            endpoints: self.endpoints.clone(),
            cacert: self.cacert.clone(),
            cert: self.cert.clone(),
            key: self.key.clone(),
            server_name: self.etcd_server_name.clone(),
            timeout: self.etcd_connection_timeout,
            permit: permit.clone(),
        }
    }
}
