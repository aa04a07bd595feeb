//! Who is asked whose a shoot is: the record at its authorities, and the process beside etcd.

use std::{fmt::Display, sync::Arc};

use api::{extensions::Cluster as ClusterObject, meta::ErrorCode};
use futures::future::BoxFuture;
use ownership::{Authorities, Claim, Loss, Network, Report, Terms, Watch, Witnesses};
use permit::Clock;
use runtime::{Error, Result, Seed};
use tokio::sync::watch::Receiver;

use super::{
    sidecar::{self, Sidecar},
    wanted::Wanted,
};

/// A check that has begun: it goes on while `run` is polled, and its right ends when that is dropped.
pub(crate) struct Begun {
    pub reports: Receiver<Report>,
    pub run: BoxFuture<'static, Loss>,
}

/// Asks. Another one only where a test plays the world.
pub(crate) trait Ask: Send + Sync {
    /// What is to be asked for the shoot of a Cluster; nothing where its seed does not check owners.
    fn wanted(&self, cluster: Option<&ClusterObject>) -> Result<Option<Wanted>>;

    /// Begins to ask, for the shoot of that namespace.
    fn begin(&self, wanted: &Wanted, seed: &Seed, namespace: &str) -> Result<Begun>;
}

/// As it is done in a seed.
pub(super) struct Asking {
    /// Where the processes beside etcd answer, by `{namespace}`.
    pub sidecars: String,
}

impl Default for Asking {
    fn default() -> Self {
        Self {
            sidecars: sidecar::URL.to_owned(),
        }
    }
}

impl Ask for Asking {
    fn wanted(&self, cluster: Option<&ClusterObject>) -> Result<Option<Wanted>> {
        cluster.map_or(Ok(None), Wanted::of)
    }

    fn begin(&self, wanted: &Wanted, seed: &Seed, namespace: &str) -> Result<Begun> {
        let claim = Claim::new(&wanted.name, &wanted.identity, wanted.epoch).map_err(wrong)?;
        let authorities = match wanted.authorities.as_slice() {
            [] => Authorities::found(&wanted.zone),
            named => Authorities::named(&wanted.zone, named.iter().copied()),
        };
        let witnesses = Witnesses {
            authorities: Arc::new(authorities.map_err(wrong)?),
            wire: Arc::new(Network),
            second: Arc::new(Sidecar {
                seed: seed.clone(),
                namespace: namespace.to_owned(),
                url: self.sidecars.clone(),
            }),
        };
        let watch = Watch::new(claim, Terms::default(), witnesses, Clock::default()).map_err(wrong)?;
        Ok(Begun {
            reports: watch.reports(),
            run: Box::pin(watch.run()),
        })
    }
}

fn wrong(error: impl Display) -> Error {
    Error::config(
        ErrorCode::ErrConfigurationProblem,
        format!("it cannot be asked who owns the shoot: {error}"),
    )
}
