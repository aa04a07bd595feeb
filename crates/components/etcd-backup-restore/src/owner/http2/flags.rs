//! Flags of the gate as a proxy for HTTP/2.

use super::{GateTlsPaths, PreparedLimits};
use crate::error::{Class, Error, Result};
use crate::etcd_flags::EtcdArgs;
use crate::flag_ranges::number;
use clap::Args;
use std::path::PathBuf;

/// `--gate-protocol`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum GateProtocol {
    /// The gate forwards bytes. TLS of clients ends in etcd.
    #[default]
    #[value(name = "TCP")]
    Tcp,
    /// The gate forwards requests of HTTP/2. TLS of clients ends in the gate.
    #[value(name = "HTTP2")]
    Http2,
}

/// Flags of the gate's protocol.
#[derive(Debug, Args)]
pub struct Http2GateArgs {
    /// Protocol of the gate in front of etcd. HTTP2 needs the three flags below where etcd speaks TLS.
    #[arg(long, requires = "owner_name", value_enum, default_value = "TCP")]
    pub gate_protocol: GateProtocol,
    /// Certificate that the gate shows to clients: etcd's server certificate. Renewed files are taken over
    /// within 30 s.
    #[arg(long, requires_all = ["owner_name", "gate_key", "gate_client_ca"])]
    pub gate_cert: Option<PathBuf>,
    /// Key of that certificate.
    #[arg(long, requires = "gate_cert")]
    pub gate_key: Option<PathBuf>,
    /// CA of the clients of etcd. A client without a certificate of this CA is refused.
    #[arg(long, requires = "gate_cert")]
    pub gate_client_ca: Option<PathBuf>,
    /// Connections with certificates of preparations at a time. Such connections do not count in
    /// `--gate-max-connections`.
    #[arg(long, requires = "owner_name", value_parser = number::<usize>(1, 60_000), default_value_t = PreparedLimits::CONNECTIONS)]
    pub gate_max_prepared_connections: usize,
    /// Requests and streams with such certificates at a time; more are answered with `RESOURCE_EXHAUSTED`.
    #[arg(long, requires = "owner_name", value_parser = number::<usize>(1, 4_000), default_value_t = PreparedLimits::REQUESTS)]
    pub gate_max_prepared_requests: usize,
}

/// How the gate in front of etcd forwards.
#[derive(Clone, Debug)]
pub(in crate::owner) enum GateForwarding {
    Tcp,
    /// Without paths neither side uses TLS.
    Http2(Option<GateTlsPaths>),
}

fn wrong(flag: &str, what: impl std::fmt::Display) -> Error {
    Error::new(Class::Configuration, format!("{flag}: {what}"))
}

impl Http2GateArgs {
    /// The wanted share of certificates of preparations.
    pub(in crate::owner) fn prepared_limits(&self) -> PreparedLimits {
        PreparedLimits {
            connections: self.gate_max_prepared_connections,
            requests: self.gate_max_prepared_requests,
        }
    }

    /// The validated flags. `etcd`: how this process connects to etcd.
    pub(in crate::owner) fn forwarding(&self, etcd: &EtcdArgs) -> Result<GateForwarding> {
        let certificates = self.gate_cert.clone().zip(self.gate_key.clone());
        let certificates = certificates.zip(self.gate_client_ca.clone());
        if self.gate_protocol == GateProtocol::Tcp {
            return match &self.gate_cert {
                None => Ok(GateForwarding::Tcp),
                Some(_) => Err(wrong(
                    "--gate-cert",
                    "it has no effect without --gate-protocol=HTTP2",
                )),
            };
        }
        let url = etcd
            .endpoints
            .first()
            .and_then(|url| url.parse::<http::Uri>().ok());
        let is_tls = url.as_ref().and_then(http::Uri::scheme_str) == Some("https");
        let Some(((cert, key), client_ca)) = certificates else {
            // The gate's own certificate would let every client in.
            return if is_tls {
                let what = "the gate must verify the clients of an etcd with TLS; set --gate-key and --gate-client-ca, too";
                Err(wrong("--gate-cert", what))
            } else {
                Ok(GateForwarding::Http2(None))
            };
        };
        if !is_tls {
            let what = "etcd must speak TLS, too: write https:// in --endpoints";
            return Err(wrong("--gate-cert", what));
        }
        let etcd_ca = etcd
            .cacert
            .clone()
            .ok_or_else(|| wrong("--cacert", "the gate needs the CA of etcd's certificate"))?;
        let host = url.as_ref().and_then(http::Uri::host).unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Ok(GateForwarding::Http2(Some(GateTlsPaths {
            cert,
            key,
            client_ca,
            etcd_ca,
            etcd_client: etcd.cert.clone().zip(etcd.key.clone()),
            etcd_name: etcd.etcd_server_name.clone().unwrap_or_else(|| host.to_owned()),
        })))
    }
}
