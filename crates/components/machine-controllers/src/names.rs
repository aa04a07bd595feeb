//! The controllers by name, and the start of a list of controllers.

use std::sync::Arc;

use api::machine::{Machine, MachineClass, MachineDeployment, MachineSet};
use futures::{
    FutureExt,
    future::{BoxFuture, join_all},
};
use k8s_openapi::api::core::v1::Node;
use runtime::client::Cluster as _;

use crate::{
    context::Context,
    feed::Feed,
    machine::{self, Machines},
    machine_class::MachineClasses,
    machine_deployment::{self, MachineDeployments},
    machine_set::{self, MachineSets},
    outgoing::Outgoing,
    reach::Reach,
    safety::{self, Safety},
};

/// All controllers, for the process's table of names. The controllers share watches, so that all of them
/// belong under the same lock.
pub const NAMES: [&str; 5] = [
    "machine",
    "machine-class",
    "machine-deployment",
    "machine-safety",
    "machine-set",
];

/// Runs these controllers until shutdown. Dropping the future stops all controllers with all work.
///
/// # Errors
/// A name that is not in [`NAMES`].
pub async fn run(names: Vec<&'static str>, context: Context) -> Result<(), String> {
    let mut parts = Parts::new(&context);
    let controllers: Vec<_> = names
        .iter()
        .map(|name| parts.start(name, &context))
        .collect::<Result<_, _>>()?;
    // Also with no controller at all: a lock may be held for others' sake.
    let running = async { tokio::join!(join_all(controllers), context.settings.shutdown.cancelled()) };
    tokio::select! {
        () = parts.watch(&context) => {}
        _ = running => {}
    }
    Ok(())
}

/// The watches that controllers share.
struct Parts {
    classes: Feed<MachineClass>,
    deployments: Feed<MachineDeployment>,
    sets: Feed<MachineSet>,
    machines: Feed<Machine>,
    nodes: Feed<Node>,
    reach: Arc<Reach>,
    outgoing: Arc<Outgoing>,
}

impl Parts {
    fn new(context: &Context) -> Self {
        let nodes = Feed::new(machine::trim_node);
        let reach = Arc::new(Reach::new(&context.shoot, context.timing.poll_interval));
        let outgoing = Outgoing::new(context, Arc::clone(&reach), nodes.cache());
        Self {
            classes: Feed::new(|_| {}),
            deployments: Feed::new(|_| {}),
            sets: Feed::new(|_| {}),
            machines: Feed::new(|_| {}),
            nodes,
            reach,
            outgoing: Arc::new(outgoing),
        }
    }

    fn start(&mut self, name: &str, context: &Context) -> Result<BoxFuture<'static, ()>, String> {
        let settings = context.settings.clone();
        let reach = || Arc::clone(&self.reach);
        let outgoing = || Arc::clone(&self.outgoing);
        let (classes, machines, sets) = (self.classes.cache(), self.machines.cache(), self.sets.cache());
        Ok(match name {
            "machine" => {
                let controller = Machines::new(context, reach(), machines, self.nodes.cache());
                let changes = self.machines.subscribe(machine::fingerprint);
                let nodes = self.nodes.subscribe(machine::node_fingerprint);
                let classes = self.classes.subscribe(safety::fingerprint);
                controller.run(changes, nodes, classes, settings).boxed()
            }
            "machine-class" => {
                let changes = self.classes.subscribe(safety::fingerprint);
                let machines = self.machines.subscribe(machine_set::machine_fingerprint);
                MachineClasses::new(context, classes)
                    .run(changes, machines, settings)
                    .boxed()
            }
            "machine-deployment" => {
                let controller =
                    MachineDeployments::new(context, self.deployments.cache(), machines, outgoing());
                let changes = self.deployments.subscribe(machine_deployment::fingerprint);
                let sets = self.sets.subscribe(machine_deployment::set_fingerprint);
                let machines = self.machines.subscribe(machine_set::machine_fingerprint);
                controller.run(changes, sets, machines, settings).boxed()
            }
            "machine-safety" => {
                let changes = self.classes.subscribe(safety::fingerprint);
                Safety::new(context, classes, machines, self.nodes.cache())
                    .run(changes, settings)
                    .boxed()
            }
            "machine-set" => {
                let controller = MachineSets::new(context, reach(), sets, machines, outgoing());
                let changes = self.sets.subscribe(machine_set::fingerprint);
                let machines = self.machines.subscribe(machine_set::machine_fingerprint);
                controller.run(changes, machines, settings).boxed()
            }
            unknown => {
                let known = NAMES.join(", ");
                return Err(format!("there is no controller {unknown:?}; known: {known}"));
            }
        })
    }

    async fn watch(self, context: &Context) {
        let (seed, namespace) = (&context.control, &context.namespace);
        tokio::join!(
            self.classes.run(seed.namespaced(namespace)),
            self.deployments.run(seed.namespaced(namespace)),
            self.sets.run(seed.namespaced(namespace)),
            self.machines.run(seed.namespaced(namespace)),
            self.nodes.run(context.shoot.cluster_wide()),
        );
    }
}
