//! The clients and settings of every controller of the process.

use std::sync::Arc;

use api::gardencore::{BackupEntry, Shoot};
use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt, runtime::Controller};
use runtime::{
    Result,
    bounds::SharePercent,
    client::{
        Cluster, Garden,
        apply::{FieldManager, Object},
    },
    controller::{Events, Reconciler, SharedWatch, runner},
    error::Explain as _,
    process::metrics::Metrics,
};
use tokio_util::sync::CancellationToken;

use crate::Config;

/// Field manager of all writes.
pub const MANAGER: FieldManager = FieldManager("garden-controller-manager");

/// The clients and settings of every controller of the process.
#[derive(Clone)]
pub struct Context {
    /// The garden.
    pub garden: Garden,
    /// All Shoots, for all controllers: [`shoots::watch`](crate::shoots::watch).
    pub shoots: SharedWatch<Shoot>,
    /// All BackupEntries, for all controllers: [`backup_entries::watch`](crate::backup_entries::watch).
    pub backup_entries: SharedWatch<BackupEntry>,
    /// Flags.
    pub config: Arc<Config>,
    /// Events in the garden.
    pub events: Events,
    /// The process's metrics.
    pub metrics: Metrics,
    /// Cancelled when the process is to end.
    pub shutdown: CancellationToken,
}

impl Context {
    /// The settings for the runner of a controller.
    #[must_use]
    pub fn runner(&self) -> runner::Settings {
        runner::Settings {
            concurrency: self.config.concurrent_syncs,
            shutdown: self.shutdown.clone(),
            permit: self.garden.permit().clone(),
            metrics: self.metrics.clone(),
            events: self.events.clone(),
        }
    }

    /// The Shoot of the same name, read from the API server: caches are late, and keep a part of the fields.
    pub(crate) async fn latest(&self, cached: &Shoot) -> Result<Option<Shoot>> {
        let name = cached.name_any();
        let shoots: Api<Shoot> = self.garden.namespaced(&cached.namespace().unwrap_or_default());
        let found = shoots.get_opt(&name).await;
        found.context(format_args!("could not read Shoot {name}"))
    }

    /// Runs a controller of namespaced objects until shutdown, and the watch of Shoots. `of` makes its
    /// reconciler. The projects share the workers of the controller.
    pub async fn run<K, R>(self, controller: Controller<K>, of: impl FnOnce(Self) -> R)
    where
        K: Object + Resource<Scope = NamespaceResourceScope> + Sync,
        R: Reconciler<K>,
    {
        let (garden, shoots, settings) = (self.garden.clone(), self.shoots.clone(), self.runner());
        let share = SharePercent::new(self.config.project_share_percent);
        let running =
            runner::run_namespaced_by_project(controller, &garden, Arc::new(of(self)), settings, share);
        shoots.run_beside(running).await;
    }
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
