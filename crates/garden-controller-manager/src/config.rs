//! What the process is told by its flags.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::Parser;

/// Looks after projects, the life of seeds and the preconditions of moves.
#[derive(Clone, Debug, Parser)]
#[command(version, about)]
pub struct Config {
    /// Kubeconfig of the garden; the pod's own ServiceAccount without it.
    #[arg(long, env = "GARDEN_KUBECONFIG")]
    pub garden_kubeconfig: Option<PathBuf>,

    /// Where `/healthz`, `/readyz` and `/metrics` are served.
    #[arg(long, default_value = "0.0.0.0:2728")]
    pub health_address: SocketAddr,

    /// At most so many objects of a kind at the same time.
    #[arg(long, default_value_t = 5)]
    pub concurrent_syncs: u16,

    /// At most so many shoots on their way to a seed at the same time; further ones wait where they are.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    pub concurrent_migrations: u16,

    /// A seed whose Lease was not renewed for so long is unknown. Longer than three renewals of a gardenlet
    /// (10 s each), so that one lost request says nothing.
    #[arg(long, default_value_t = 40)]
    pub seed_monitor_period_seconds: u64,

    /// Seconds of silence beyond the seed monitor period after which the conditions of the seed's Shoots turn
    /// `Unknown`. Longer than a restart of a gardenlet, so that conditions stay while a new version rolls
    /// out.
    #[arg(long, default_value_t = 200)]
    pub shoot_monitor_period_seconds: u64,

    /// How often Leases are looked at. Shorter than the monitor period, whose end it may overshoot by this
    /// much.
    #[arg(long, default_value_t = 10)]
    pub seed_sync_period_seconds: u64,

    /// A shoot that is to move away from a seed whose Lease was not renewed for so long is taken over without
    /// that seed's help; 0: never, an operator decides. Much longer than an outage that ends by itself, since
    /// what was not uploaded is lost.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=2_592_000))]
    pub takeover_after_seconds: u64,

    /// Under which locks the controllers run.
    #[command(flatten)]
    pub lease: leader_migration::Flags,
}

impl Config {
    /// How long a seed's silence is borne.
    #[must_use]
    pub fn seed_monitor_period(&self) -> Duration {
        Duration::from_secs(self.seed_monitor_period_seconds)
    }

    /// The silence beyond [`Self::seed_monitor_period`] after which conditions of Shoots turn `Unknown`.
    #[must_use]
    pub fn shoot_monitor_period(&self) -> Duration {
        Duration::from_secs(self.shoot_monitor_period_seconds)
    }

    /// The silence after which shoots are taken over without anybody's word; `None`: never.
    #[must_use]
    pub fn takeover_after(&self) -> Option<Duration> {
        let grace = self.takeover_after_seconds;
        (grace > 0).then(|| Duration::from_secs(grace))
    }

    /// How often Leases are looked at.
    #[must_use]
    pub fn seed_sync_period(&self) -> Duration {
        Duration::from_secs(self.seed_sync_period_seconds)
    }
}
