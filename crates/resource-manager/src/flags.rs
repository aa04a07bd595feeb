//! The command line.

use std::net::SocketAddr;

use clap::Parser;

/// Keeps the objects of ManagedResources in a seed and in its shoots.
#[derive(Clone, Debug, Parser)]
#[command(name = "resource-manager", version)]
pub struct Flags {
    /// ManagedResources that are worked on at the same time, two at most for one shoot.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrent_syncs: u16,

    /// Where /healthz, /readyz and /metrics are served, in plain HTTP.
    #[arg(long, default_value = "0.0.0.0:8080")]
    pub health_address: SocketAddr,

    /// Under which lock the controller runs.
    #[command(flatten)]
    pub lease: leader_migration::Flags,
}
