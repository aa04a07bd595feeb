//! The command line.

use std::net::SocketAddr;

use clap::Parser;

/// Applies the objects of ManagedResources to a seed and to the shoots of the seed.
#[derive(Clone, Debug, Parser)]
#[command(name = "resource-manager", version)]
pub struct Flags {
    /// ManagedResources that are processed at the same time, at most two for each shoot.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrent_syncs: u16,

    /// Address of /healthz, /readyz and /metrics, in plain HTTP.
    #[arg(long, default_value = "0.0.0.0:8080")]
    pub health_address: SocketAddr,

    /// The lock of the controller.
    #[command(flatten)]
    pub lease: leader_migration::Flags,
}
