//! Finds and deletes instances without a Machine: such instances cost money, and the kubelets may come back.
//! An instance that has a Node is never deleted here. Nodes without a Machine, and instances that are kept,
//! are reported on the Worker.

mod memory;
mod report;
mod strays;

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
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
    Result,
    client::{Cluster as _, Seed, Shoot, apply::FieldManager},
    controller::{
        Events, Next, Reconciler,
        runner::{self, Settings},
    },
    error::Explain as _,
};
use tokio::time::Instant;
use tracing::{debug, warn};

use self::{memory::Memory, report::Unmanaged, strays::Strays};
use crate::{
    cloud::Cloud,
    context::{Context, Timing},
    driver::ListedInstance,
    feed::Cache,
    machine::provider_id,
};

/// The controller of instances and Nodes without a Machine.
pub struct Safety {
    seed: Seed,
    shoot: Shoot,
    namespace: String,
    events: Events,
    timing: Timing,
    cloud: Cloud,
    manager: FieldManager,
    classes: Cache<MachineClass>,
    machines: Cache<Machine>,
    nodes: Cache<Node>,
    /// By class, since each class may have a separate account.
    listed: Mutex<BTreeMap<String, Listed>>,
    /// Held while Nodes are checked: each class leads to the same check.
    strays: tokio::sync::Mutex<NodeCheck>,
}

/// The results of the listings of a class.
#[derive(Default)]
struct Listed {
    last: Option<Instant>,
    memory: Memory,
    /// Instances that the last listing found no Machine for, and that are kept.
    kept: BTreeSet<ListedInstance>,
}

/// The checks of Nodes so far.
#[derive(Default)]
struct NodeCheck {
    last: Option<Instant>,
    strays: Strays,
    /// The last report is in the Worker, and has no finding.
    is_settled: bool,
}

impl Safety {
    /// The controller, with the parts that several controllers share.
    pub fn new(
        context: &Context,
        classes: Cache<MachineClass>,
        machines: Cache<Machine>,
        nodes: Cache<Node>,
    ) -> Self {
        Self {
            seed: context.control.clone(),
            shoot: context.shoot.clone(),
            namespace: context.namespace.clone(),
            events: context.settings.events.clone(),
            timing: context.timing.clone(),
            cloud: Cloud::new(context),
            manager: context.manager,
            classes,
            machines,
            nodes,
            listed: Mutex::default(),
            strays: tokio::sync::Mutex::default(),
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

    /// All names and ids of Machines, read live.
    async fn list_names_and_ids(&self) -> Result<(BTreeSet<String>, BTreeSet<String>)> {
        let machines: Api<Machine> = self.seed.namespaced(&self.namespace);
        let live = machines.list(&ListParams::default()).await;
        let live = live.context("could not list Machines")?.items;
        let ids = live.iter().filter_map(provider_id).map(ToOwned::to_owned);
        Ok((live.iter().map(ResourceExt::name_any).collect(), ids.collect()))
    }

    /// The orphans that have no Node. An error while the shoot's API does not answer, because the Nodes are
    /// unknown.
    async fn filter_without_node(&self, orphans: Vec<ListedInstance>) -> Result<Vec<ListedInstance>> {
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

    async fn delete_orphan(&self, class: &Arc<MachineClass>, orphan: ListedInstance) -> Result<()> {
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

    /// The time until the class may be listed again.
    fn time_until_listing(&self, class: &str) -> Option<Duration> {
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let last = listed.get(class)?.last?;
        let left = self.timing.orphans_every.saturating_sub(last.elapsed());
        (!left.is_zero()).then_some(left)
    }

    /// Lists the instances of a class, and collects those that have no Machine. Returns when to list again.
    async fn check_instances(&self, class: &Arc<MachineClass>) -> Result<Duration> {
        let name = class.name_any();
        if let Some(left) = self.time_until_listing(&name) {
            return Ok(left);
        }
        // Instances are listed before Machines: a Machine exists before the instance, so that every instance
        // of the list has a Machine in the later read.
        let found = self.cloud.list(class).await?;
        let (names, ids) = self.list_names_and_ids().await?;
        let result = {
            let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
            let listed = listed.entry(name).or_default();
            listed.last = Some(Instant::now());
            let result = listed.memory.record(&found, &names, &ids);
            listed.kept = result.untrusted.iter().cloned().collect();
            result
        };
        if !result.untrusted.is_empty() {
            let names: Vec<_> = result
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
        if !result.orphans.is_empty() {
            for orphan in self.filter_without_node(result.orphans).await? {
                self.delete_orphan(class, orphan).await?;
            }
        }
        Ok(self.timing.orphans_every)
    }

    /// Checks all Nodes, and reports on the Worker. Returns when to check again.
    async fn check_nodes(&self) -> Result<Duration> {
        let every = self.timing.without_machine_for / 5;
        let mut check = self.strays.lock().await;
        if let Some(last) = check.last
            && let left = every.saturating_sub(last.elapsed())
            && !left.is_zero()
        {
            return Ok(left);
        }
        let (Ok(nodes), Ok(machines)) = (self.nodes.all(), self.machines.all()) else {
            // Not listed yet.
            return Ok(every);
        };
        let nodes = nodes.iter().map(Arc::as_ref);
        let now = Instant::now();
        let strays = check
            .strays
            .record(nodes, &machines, now, self.timing.without_machine_for);
        let (instances, is_listed) = self.kept_instances()?;
        check.last = Some(now);
        let is_decided = is_listed && !strays.is_undecided;
        let report = Unmanaged {
            nodes: strays.names,
            instances,
        };
        if report.is_empty() && (check.is_settled || !is_decided) {
            return Ok(every);
        }
        match report::write(&self.seed, &self.namespace, self.manager, &report).await {
            Ok(()) => check.is_settled = report.is_empty(),
            Err(error) if error.is_failure() => debug!(
                error = format_args!("{error:#}"),
                "Nodes without a Machine are not reported"
            ),
            Err(error) => return Err(error),
        }
        Ok(every)
    }

    /// All instances that are kept, and whether each class was listed since the process began.
    fn kept_instances(&self) -> Result<(BTreeSet<ListedInstance>, bool)> {
        let classes = self.classes.all()?;
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = listed
            .values()
            .flat_map(|listed| listed.kept.iter().cloned())
            .collect();
        let is_listed = |class: &Arc<MachineClass>| {
            let listed = listed.get(&class.name_any());
            listed.is_some_and(|listed| listed.last.is_some())
        };
        Ok((kept, classes.iter().all(is_listed)))
    }
}

impl Reconciler<MachineClass> for Safety {
    const NAME: &'static str = "machine-safety";

    async fn apply(&self, class: Arc<MachineClass>) -> Result<Next> {
        // Nodes are checked also where the cloud cannot be asked.
        let listed = self.check_instances(&class).await;
        let checked = self.check_nodes().await;
        Ok(Next::After(listed?.min(checked?)))
    }

    async fn cleanup(&self, class: Arc<MachineClass>) -> Result<Next> {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed.remove(&class.name_any());
        Ok(Next::Change)
    }
}

/// The fields of a class that wake the controller.
pub fn fingerprint(class: &MachineClass) -> Option<u64> {
    let meta = class.meta();
    runner::fingerprint((&meta.uid, meta.generation, meta.deletion_timestamp.is_some()))
}
