//! A fake machine-controller-manager for each shoot of a seed, where no pod runs. The fake creates wanted and
//! missing machines, and removes terminating and unknown machines, as a real manager does. A Machine that is
//! restored too late or not at all shows in the cloud. The cloud is in the memory of the test, shared by both
//! seeds.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use api::machine::{Machine, MachineDeployment, MachineSet, labels};
use futures::StreamExt;
use futures::future::ready;
use futures::stream::{BoxStream, select_all};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use runtime::client::apply::{FieldManager, Object};
use runtime::controller::finalizer;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::timeout;

const MANAGER: &str = "machine-controller-manager";
/// Machines of a shoot with nodes: a machine in each zone.
pub const PER_SHOOT: usize = 2;
const BY: FieldManager = FieldManager("played-machine-controller-manager");
/// Bound of the changes that a single look serves.
const CHANGES_AT_ONCE: usize = 1024;
/// Pause before work in a namespace is repeated that has failed.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// The worker pools of such a shoot.
pub fn pools() -> Value {
    json!([{
        "name": "pool", "machine": {"type": "local", "image": {"name": "local", "version": "1.0.0"}},
        "minimum": PER_SHOOT, "maximum": PER_SHOOT, "maxSurge": 1, "maxUnavailable": 0, "zones": ["a", "b"],
    }])
}

/// The instances of shoots, by namespace: each instance with the name of the machine, under a unique id.
#[derive(Clone, Default)]
pub struct Instances(Arc<Mutex<(u32, Cloud)>>, Arc<Mutex<BTreeMap<String, String>>>);

type Cloud = BTreeMap<String, BTreeMap<u32, String>>;

/// The reason why the cloud does not delete an instance.
const KEPT: &str = "the cloud keeps the instance";

impl Instances {
    /// Those of a shoot.
    pub fn list(&self, namespace: &str) -> BTreeMap<u32, String> {
        self.lock().1.get(namespace).cloned().unwrap_or_default()
    }

    /// From now on the cloud does not delete the instance of the shoot's first machine. Returns the machine's
    /// name and the ID of the instance. No orphan of the shoot is collected: a real machine manager needs two
    /// listings for that, and a forced deletion is over before.
    pub fn hold_first(&self, namespace: &str) -> Option<(String, u32)> {
        let (id, machine) = self.list(namespace).pop_first()?;
        let mut held = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(namespace.to_owned(), machine.clone());
        Some((machine, id))
    }

    fn held(&self, namespace: &str) -> Option<String> {
        let held = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        held.get(namespace).cloned()
    }

    fn make(&self, namespace: &str, machine: &str) -> u32 {
        let mut inner = self.lock();
        inner.0 += 1;
        let (id, cloud) = (inner.0, &mut inner.1);
        let own = cloud.entry(namespace.to_owned()).or_default();
        // An instance whose id was not recorded is found again.
        if let Some((id, _)) = own.iter().find(|(_, of)| *of == machine) {
            return *id;
        }
        own.insert(id, machine.to_owned());
        id
    }

    fn keep(&self, namespace: &str, known: impl Fn(&str) -> bool) {
        if let Some(own) = self.lock().1.get_mut(namespace) {
            own.retain(|_, machine| known(machine));
        }
    }

    fn lock(&self) -> MutexGuard<'_, (u32, Cloud)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Acts on each change, until `tasks` is dropped.
pub fn play(tasks: &mut JoinSet<()>, seed: Client, instances: Instances) {
    let managers = watcher::Config::default().fields(&format!("metadata.name={MANAGER}"));
    // On a busy machine, several changes in a namespace are waiting: a single look serves all of them.
    let mut woken = select_all([
        changes::<Deployment>(&seed, managers),
        changes::<MachineDeployment>(&seed, watcher::Config::default()),
        changes::<Machine>(&seed, watcher::Config::default()),
    ])
    .ready_chunks(CHANGES_AT_ONCE);
    tasks.spawn(async move {
        let mut failed = BTreeSet::new();
        loop {
            let changed = if failed.is_empty() {
                woken.next().await
            } else {
                timeout(RETRY_PAUSE, woken.next())
                    .await
                    .unwrap_or_else(|_| Some(Vec::new()))
            };
            let Some(changed) = changed else { return };
            failed.extend(changed);
            for namespace in mem::take(&mut failed) {
                let of = Of {
                    seed: &seed,
                    namespace: &namespace,
                    instances: &instances,
                };
                // A refused or unanswered request may leave no further change behind.
                if let Err(error) = of.act().await {
                    tracing::debug!(namespace, %error, "the fake machine manager repeats its work");
                    failed.insert(namespace);
                }
            }
        }
    });
}

/// Namespaces with a change.
fn changes<K>(seed: &Client, config: watcher::Config) -> BoxStream<'static, String>
where
    K: Object + Resource<Scope = NamespaceResourceScope>,
{
    watcher(Api::<K>::all(seed.clone()), config)
        .default_backoff()
        .touched_objects()
        .filter_map(|object| ready(object.ok().and_then(|object| object.namespace())))
        .boxed()
}

/// The fake manager of a shoot.
struct Of<'a> {
    seed: &'a Client,
    namespace: &'a str,
    instances: &'a Instances,
}

impl Of<'_> {
    async fn act(&self) -> Result<()> {
        let manager = self.api::<Deployment>().get_opt(MANAGER).await?;
        if manager.and_then(|found| found.spec?.replicas).unwrap_or_default() == 0 {
            return Ok(());
        }
        for deployment in self.all::<MachineDeployment>().await? {
            if deployment.metadata.deletion_timestamp.is_none() {
                self.scale(&deployment).await?;
            }
        }
        let machines = self.all::<Machine>().await?;
        let held = self.instances.held(self.namespace);
        for machine in &machines {
            let name = machine.name_any();
            if machine.metadata.deletion_timestamp.is_some() && held.as_ref() == Some(&name) {
                let failed =
                    json!({"lastOperation": {"type": "Delete", "state": "Failed", "description": KEPT}});
                if machine
                    .status
                    .as_ref()
                    .is_none_or(|status| status.last_operation.is_none())
                {
                    BY.merge_status(&self.api::<Machine>(), &name, &failed).await?;
                }
            } else if machine.metadata.deletion_timestamp.is_some() {
                self.instances.keep(self.namespace, |known| known != name);
                finalizer::remove_all(&self.api(), machine).await?;
            } else if machine.spec.provider_id.is_none() {
                let id = format!("played:///{}", self.instances.make(self.namespace, &name));
                let body = json!({"spec": {"providerID": id}});
                BY.merge(&self.api::<Machine>(), &name, &body).await?;
            }
        }
        if held.is_some() {
            return Ok(());
        }
        let known: Vec<_> = machines.iter().map(ResourceExt::name_any).collect();
        self.instances
            .keep(self.namespace, |machine| known.iter().any(|name| name == machine));
        Ok(())
    }

    /// Creates missing machines, and reports the number of machines.
    async fn scale(&self, deployment: &MachineDeployment) -> Result<()> {
        let (set, name) = (self.set_of(deployment).await?, deployment.name_any());
        let machines = self.all::<Machine>().await?;
        let own = |machine: &&Machine| {
            let mut owners = machine.owner_references().iter();
            owners.any(|by| Some(&by.uid) == set.metadata.uid.as_ref())
        };
        let own: Vec<_> = machines.iter().filter(own).collect();
        let wanted = usize::try_from(deployment.spec.replicas.unwrap_or_default())?;
        let template = set.spec.template.clone().unwrap_or_default();
        for number in own.len()..wanted {
            let mut machine: Machine = serde_json::from_value(json!({
                "metadata": {
                    "name": format!("{}-{number}", set.name_any()), "finalizers": [labels::FINALIZER],
                    "labels": template.metadata.clone().unwrap_or_default().labels,
                },
                "spec": template.spec,
            }))?;
            machine
                .owner_references_mut()
                .extend(set.controller_owner_ref(&()));
            self.api::<Machine>()
                .create(&PostParams::default(), &machine)
                .await?;
        }
        for surplus in own.iter().skip(wanted) {
            self.api::<Machine>()
                .delete(&surplus.name_any(), &DeleteParams::default())
                .await?;
        }
        let there = own.len();
        let status = json!({
            "observedGeneration": deployment.metadata.generation, "replicas": there, "updatedReplicas": there,
            "readyReplicas": there, "availableReplicas": there,
        });
        if json!(deployment.status) != status {
            BY.merge_status(&self.api::<MachineDeployment>(), &name, &status)
                .await?;
        }
        Ok(())
    }

    /// The set for machines of the deployment's class; the set has the name of the class.
    async fn set_of(&self, deployment: &MachineDeployment) -> Result<MachineSet> {
        let template = deployment.spec.template.clone();
        let class = template.spec.as_ref().and_then(|spec| spec.class.clone()?.name);
        let class = class.context("a MachineDeployment without a class")?;
        if let Some(found) = self.api::<MachineSet>().get_opt(&class).await? {
            return Ok(found);
        }
        let of_it = json!({(labels::NAME): deployment.name_any(), (labels::TEMPLATE_HASH): class});
        let mut of_machines = json!(template.metadata.clone().unwrap_or_default().labels);
        of_machines[labels::TEMPLATE_HASH] = json!(class);
        let mut set: MachineSet = serde_json::from_value(json!({
            "metadata": {"name": class, "labels": of_machines},
            "spec": {
                "replicas": deployment.spec.replicas, "selector": {"matchLabels": of_it},
                "template": {"metadata": {"labels": of_machines}, "spec": template.spec},
            },
        }))?;
        set.owner_references_mut()
            .extend(deployment.controller_owner_ref(&()));
        Ok(self
            .api::<MachineSet>()
            .create(&PostParams::default(), &set)
            .await?)
    }

    fn api<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.seed.clone(), self.namespace)
    }

    async fn all<K: Object + Resource<Scope = NamespaceResourceScope>>(&self) -> Result<Vec<K>> {
        Ok(self.api::<K>().list(&ListParams::default()).await?.items)
    }
}
