//! The command line.

use std::net::SocketAddr;

use clap::{Args, Parser};
use runtime::workload::Variable;

/// Runs etcd clusters with their backups from Etcd objects.
#[derive(Clone, Debug, Parser)]
#[command(name = "etcd-druid", version)]
pub struct Flags {
    /// Defaults for unset fields of an Etcd.
    #[command(flatten)]
    pub defaults: Defaults,

    /// Number of Etcds that are reconciled in parallel.
    #[arg(long, default_value_t = 10)]
    pub concurrent_syncs: u16,

    /// Where /healthz, /readyz and /metrics are served, in plain HTTP.
    #[arg(long, default_value = "0.0.0.0:8080")]
    pub health_address: SocketAddr,

    /// The lock under which the controller runs.
    #[command(flatten)]
    pub lease: leader_migration::Flags,
}

/// `--gate-protocol`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum GateProtocol {
    /// The gate forwards bytes.
    #[default]
    #[value(name = "TCP")]
    Tcp,
    /// The gate ends TLS and forwards requests.
    #[value(name = "HTTP2")]
    Http2,
}

/// Bounds of certificates of preparations at a gate for HTTP/2. Without a flag etcd-backup-restore has the
/// default of the bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub struct PreparationBounds {
    /// Connections at a time, besides those of other clients. A change restarts the etcds with such a gate.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=60_000))]
    pub gate_max_prepared_connections: Option<u16>,

    /// Requests and streams at a time. A change restarts the etcds with such a gate.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=4_000))]
    pub gate_max_prepared_requests: Option<u16>,
}

impl PreparationBounds {
    /// The flags of etcd-backup-restore.
    #[must_use]
    pub fn args(self) -> Vec<String> {
        let bounds = [
            (
                "gate-max-prepared-connections",
                self.gate_max_prepared_connections,
            ),
            ("gate-max-prepared-requests", self.gate_max_prepared_requests),
        ];
        let set = bounds.into_iter();
        set.filter_map(|(flag, bound)| bound.map(|bound| format!("--{flag}={bound}")))
            .collect()
    }
}

/// Defaults for unset fields of an Etcd.
#[derive(Clone, Debug, Args)]
pub struct Defaults {
    /// Image with etcd at /usr/local/bin/etcd.
    #[arg(long)]
    pub etcd_image: String,

    /// Image of etcd-backup-restore.
    #[arg(long)]
    pub etcd_backup_restore_image: String,

    /// A variable of the environment of each container of etcd-backup-restore, `NAME=VALUE`, such as
    /// `HTTPS_PROXY` for buckets behind a proxy. A change restarts the etcds with backups.
    #[arg(long = "etcd-backup-restore-env", value_name = "NAME=VALUE")]
    pub etcd_backup_restore_env: Vec<Variable>,

    /// How the gate in front of an etcd with an owner check forwards:
    /// docs/understand/etcd-backup-restore.md.
    /// A change restarts these etcds.
    #[arg(long, value_enum, default_value = "TCP")]
    pub gate_protocol: GateProtocol,

    /// Bounds at a gate that forwards HTTP/2.
    #[command(flatten)]
    pub preparation_bounds: PreparationBounds,

    /// How long a copy of backups waits for the source's final snapshot before it copies the existing
    /// snapshots (R17-26). Applies if spec.backup.etcdSnapshotTimeout is unset. Must be longer than a full
    /// snapshot of the largest database takes. Must be shorter than a flow waits for the copy, or the flow
    /// fails before the copy begins.
    #[arg(long, default_value = "3m")]
    pub final_snapshot_wait: String,
}
