//! The configuration of the process, from flags.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::Parser;

/// Looks after projects, the life of seeds and the preconditions of moves.
#[derive(Clone, Debug, Parser)]
#[command(version, about)]
pub struct Config {
    /// Kubeconfig of the garden; without this flag the process uses the pod's own ServiceAccount.
    #[arg(long, env = "GARDEN_KUBECONFIG")]
    pub garden_kubeconfig: Option<PathBuf>,

    /// Address of `/healthz`, `/readyz` and `/metrics`.
    #[arg(long, default_value = "0.0.0.0:2728")]
    pub health_address: SocketAddr,

    /// Maximum number of objects of a kind that are reconciled at the same time.
    #[arg(long, default_value_t = 5)]
    pub concurrent_syncs: u16,

    /// Maximum number of shoots on their way to a seed at the same time; further shoots wait at their source.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrent_migrations: u16,

    /// A seed whose Lease was not renewed for this time is unknown. Longer than three renewals of a gardenlet
    /// (10 s each), so that a single lost request has no effect.
    #[arg(long, default_value_t = 40)]
    pub seed_monitor_period_seconds: u64,

    /// Seconds of silence beyond the seed monitor period after which the conditions of the seed's Shoots turn
    /// `Unknown`. Longer than a restart of a gardenlet, so that conditions stay while a new version rolls
    /// out.
    #[arg(long, default_value_t = 200)]
    pub shoot_monitor_period_seconds: u64,

    /// How often Leases are checked. Shorter than the monitor period: silence may be detected late by this
    /// time.
    #[arg(long, default_value_t = 10)]
    pub seed_sync_period_seconds: u64,

    /// A shoot that is to move away from a seed whose Lease was not renewed for this time is taken over
    /// without that seed's help; 0: never, an operator decides. Much longer than an outage that ends without
    /// action, because changes that were not uploaded are lost.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=2_592_000))]
    pub takeover_after_seconds: u64,

    /// The locks under which the controllers run.
    #[command(flatten)]
    pub lease: leader_migration::Flags,
}

impl Config {
    /// How long a seed may be silent.
    #[must_use]
    pub fn seed_monitor_period(&self) -> Duration {
        Duration::from_secs(self.seed_monitor_period_seconds)
    }

    /// The silence beyond [`Self::seed_monitor_period`] after which conditions of Shoots turn `Unknown`.
    #[must_use]
    pub fn shoot_monitor_period(&self) -> Duration {
        Duration::from_secs(self.shoot_monitor_period_seconds)
    }

    /// The silence after which shoots are taken over without an operator; `None`: never.
    #[must_use]
    pub fn takeover_after(&self) -> Option<Duration> {
        let grace = self.takeover_after_seconds;
        (grace > 0).then(|| Duration::from_secs(grace))
    }

    /// How often Leases are checked.
    #[must_use]
    pub fn seed_sync_period(&self) -> Duration {
        Duration::from_secs(self.seed_sync_period_seconds)
    }
}
