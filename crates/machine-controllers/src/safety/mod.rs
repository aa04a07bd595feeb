//! Instances that no Machine stands for are found and taken away: they cost money, and their kubelets may come back. An instance
//! that has a Node is never taken away, whatever else is known of it.

mod memory;

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use api::machine::{Machine, MachineClass, MachineSpec};
use futures::Stream;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Resource, ResourceExt,
    api::ListParams,
    runtime::{controller::Controller, watcher},
};
use runtime::{
    Cluster as _, Events, Next, Reconciler, Result, Seed, Shoot,
    error::Explain as _,
    runner::{self, Settings},
};
use tokio::time::Instant;
use tracing::warn;

use self::memory::Memory;
use crate::{
    cloud::Cloud,
    context::{Context, Timing},
    driver::Found,
    feed::Cache,
    machine::provider_id,
};

/// The controller of what is left over.
pub struct Safety {
    seed: Seed,
    shoot: Shoot,
    namespace: String,
    events: Events,
    timing: Timing,
    cloud: Cloud,
    classes: Cache<MachineClass>,
    /// By class, since each may have an account of its own: when it was listed last, and what was found.
    listed: Mutex<BTreeMap<String, (Option<Instant>, Memory)>>,
}

impl Safety {
    /// The controller with what it shares with others.
    pub fn new(context: &Context, classes: Cache<MachineClass>) -> Self {
        Self {
            seed: context.control.clone(),
            shoot: context.shoot.clone(),
            namespace: context.namespace.clone(),
            events: context.settings.events.clone(),
            timing: context.timing.clone(),
            cloud: Cloud::new(context),
            classes,
            listed: Mutex::default(),
        }
    }

    /// Runs until shutdown.
    pub fn run(
        self,
        classes: impl Stream<Item = Result<MachineClass, watcher::Error>> + Send + 'static,
        settings: Settings,
    ) -> impl Future<Output = ()> + Send {
        let controller = Controller::for_stream(classes, self.classes.store());
        let seed = self.seed.clone();
        async move { runner::run_namespaced(controller, &seed, Arc::new(self), settings).await }
    }

    /// All names and ids of Machines, as they are now.
    async fn known(&self) -> Result<(BTreeSet<String>, BTreeSet<String>)> {
        let machines: Api<Machine> = self.seed.namespaced(&self.namespace);
        let live = machines.list(&ListParams::default()).await;
        let live = live.context("could not list Machines")?.items;
        let ids = live.iter().filter_map(provider_id).map(ToOwned::to_owned);
        Ok((live.iter().map(ResourceExt::name_any).collect(), ids.collect()))
    }

    /// Which of these have a Node. While the shoot's API does not answer, nobody can say.
    async fn without_node(&self, orphans: Vec<Found>) -> Result<Vec<Found>> {
        let nodes = self
            .shoot
            .cluster_wide::<Node>()
            .list(&ListParams::default())
            .await;
        let nodes = nodes.context("could not list the shoot's Nodes, so that no instance is collected")?;
        let (mut names, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for node in &nodes.items {
            names.insert(node.name_any());
            ids.extend(node.spec.as_ref().and_then(|spec| spec.provider_id.clone()));
        }
        Ok(orphans
            .into_iter()
            .filter(|found| !names.contains(&found.machine_name) && !ids.contains(&found.provider_id))
            .collect())
    }

    async fn collect(&self, class: &Arc<MachineClass>, orphan: Found) -> Result<()> {
        let mut machine = Machine::new(
            &orphan.machine_name,
            MachineSpec {
                provider_id: Some(orphan.provider_id.clone()),
                ..MachineSpec::default()
            },
        );
        machine.metadata.namespace = Some(self.namespace.clone());
        let note = format!(
            "the instance {} of a Machine {} that does not exist is deleted",
            orphan.provider_id, orphan.machine_name
        );
        warn!("{note}");
        self.events
            .warning(class.as_ref(), "OrphanCollected", &note)
            .await;
        self.cloud.delete(&Arc::new(machine), class).await
    }

    /// How long it is until the class may be listed again.
    fn pause(&self, class: &str) -> Option<std::time::Duration> {
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let last = listed.get(class)?.0?;
        let left = self.timing.orphans_every.saturating_sub(last.elapsed());
        (!left.is_zero()).then_some(left)
    }
}

impl Reconciler<MachineClass> for Safety {
    const NAME: &'static str = "machine-safety";

    async fn apply(&self, class: Arc<MachineClass>) -> Result<Next> {
        let name = class.name_any();
        if let Some(left) = self.pause(&name) {
            return Ok(Next::After(left));
        }
        // In this order: a Machine is there before its instance, so that no instance of the list lacks one that was read later.
        let found = self.cloud.list(&class).await?;
        let (names, ids) = self.known().await?;
        let look = {
            let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
            let (last, memory) = listed.entry(name).or_default();
            *last = Some(Instant::now());
            memory.take(&found, &names, &ids)
        };
        if !look.untrusted.is_empty() {
            let names: Vec<_> = look
                .untrusted
                .iter()
                .map(|found| found.machine_name.as_str())
                .collect();
            let note = format!(
                "no Machine stands for the instances of {}: nothing is collected until there was a listing in which every \
                 instance had its Machine; delete them in the cloud if they are really left over",
                names.join(", ")
            );
            warn!("{note}");
            self.events.warning(class.as_ref(), "OrphansAreKept", &note).await;
        }
        if !look.orphans.is_empty() {
            for orphan in self.without_node(look.orphans).await? {
                self.collect(&class, orphan).await?;
            }
        }
        Ok(Next::After(self.timing.orphans_every))
    }

    async fn cleanup(&self, class: Arc<MachineClass>) -> Result<Next> {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed.remove(&class.name_any());
        Ok(Next::Change)
    }
}

/// What a look at a class depends on.
pub fn fingerprint(class: &MachineClass) -> Option<u64> {
    let meta = class.meta();
    runner::fingerprint((&meta.uid, meta.generation, meta.deletion_timestamp.is_some()))
}
