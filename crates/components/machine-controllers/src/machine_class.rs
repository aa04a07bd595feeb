//! Keeps a MachineClass for as long as a Machine needs the class: without the credentials of the class no
//! instance could be deleted.

use std::{future::Future, sync::Arc, time::Duration};

use api::machine::{Machine, MachineClass};
use futures::Stream;
use kube::{
    Api, Resource, ResourceExt,
    api::ListParams,
    runtime::{controller::Controller, reflector::ObjectRef, watcher},
};
use runtime::{
    Error, Result,
    client::{Cluster as _, Seed},
    controller::{
        Events, Next, Reconciler,
        runner::{self, Settings},
    },
    error::Explain as _,
};

use crate::{constants::FINALIZER, context::Context, feed::Cache};

/// The longest time between two checks; a Machine that is deleted wakes the class earlier.
const DELETION_REQUEUE: Duration = Duration::from_secs(60);
/// Machines named in a sentence.
const NAMED: usize = 5;

/// The controller of MachineClasses.
pub struct MachineClasses {
    seed: Seed,
    namespace: String,
    events: Events,
    classes: Cache<MachineClass>,
}

impl MachineClasses {
    /// The controller, with the parts that several controllers share.
    pub fn new(context: &Context, classes: Cache<MachineClass>) -> Self {
        Self {
            seed: context.control.clone(),
            namespace: context.namespace.clone(),
            events: context.settings.events.clone(),
            classes,
        }
    }

    /// Runs until shutdown.
    pub fn run(
        self,
        classes: impl Stream<Item = Result<MachineClass, watcher::Error>> + Send + 'static,
        machines: impl Stream<Item = Result<Machine, watcher::Error>> + Send + 'static,
        settings: Settings,
    ) -> impl Future<Output = ()> + Send {
        let all = self.classes.store();
        let going = move |_: Machine| {
            let going = all.state_filter(|class| class.meta().deletion_timestamp.is_some());
            going
                .iter()
                .map(|class| ObjectRef::from_obj(class.as_ref()))
                .collect::<Vec<_>>()
        };
        let controller =
            Controller::for_stream(classes, self.classes.store()).watches_stream(machines, going);
        let seed = self.seed.clone();
        async move { runner::run_namespaced(controller, &seed, Arc::new(self), settings).await }
    }
}

impl Reconciler<MachineClass> for MachineClasses {
    const NAME: &'static str = "machine-class";
    const FINALIZER: Option<&'static str> = Some(FINALIZER);

    async fn apply(&self, _: Arc<MachineClass>) -> Result<Next> {
        Ok(Next::Change)
    }

    async fn cleanup(&self, class: Arc<MachineClass>) -> Result<Next> {
        let name = class.name_any();
        let machines: Api<Machine> = self.seed.namespaced(&self.namespace);
        let live = machines.list(&ListParams::default()).await;
        let live = live.context("could not list Machines")?.items;
        let is_user = |machine: &&Machine| {
            let of = machine
                .spec
                .class
                .as_ref()
                .and_then(|class| class.name.as_deref());
            of == Some(&name)
        };
        let users: Vec<_> = live.iter().filter(is_user).map(ResourceExt::name_any).collect();
        if users.is_empty() {
            return Ok(Next::Change);
        }
        let named = &users[..users.len().min(NAMED)];
        let why = format!(
            "{} Machines need MachineClass {name}: {}",
            users.len(),
            named.join(", ")
        );
        self.events.normal(class.as_ref(), "InUse", &why).await;
        Err(Error::not_ready(DELETION_REQUEUE, why))
    }
}
