//! A fake manager of machines with a fake cloud: creates missing instances and collects unknown instances, as
//! a real manager does. A machine object that is restored too late or not at all shows in the cloud.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Result, ensure};
use api::machine::{Machine, MachineClass, MachineDeployment, MachineSet, labels, state};
use futures::{StreamExt, stream::select_all};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, PostParams},
    runtime::watcher,
};
use runtime::{
    client::apply::{self, FieldManager, Object},
    controller::finalizer,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// The field manager of all further writers that the test simulates.
const TEST: FieldManager = FieldManager("test");
/// Name of the manager's Deployment and of the manager's Secret.
pub const MANAGER: &str = "machine-controller-manager";

/// The instances of a shoot by id, with the names of the machines.
#[derive(Clone)]
pub struct FakeMachines {
    namespace: &'static str,
    instances: Arc<Mutex<BTreeMap<String, String>>>,
}

impl FakeMachines {
    /// No instances.
    #[must_use]
    pub fn new(namespace: &'static str) -> Self {
        Self {
            namespace,
            instances: Arc::default(),
        }
    }

    /// The present instances.
    #[must_use]
    pub fn list_instances(&self) -> Value {
        json!(*self.instances.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs the fake manager in this seed while the Deployment wants a pod, until the value is dropped.
    #[must_use]
    pub fn managed_by(&self, seed: &Client) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        tasks.spawn(self.clone().play(seed.clone()));
        tasks
    }

    /// The manager that an actuator has left in the seed.
    pub async fn manager_in(&self, seed: &Client) -> Result<Value> {
        let found = self.api::<Deployment>(seed).get_opt(MANAGER).await?;
        Ok(json!(found.map(|found| found.name_any())))
    }

    /// The steps of a gardenlet: collects the state of machines, and removes the machine objects after the
    /// hand-over.
    pub async fn collect_and_forget(&self, seed: &Client, machines: usize) -> Result<Value> {
        let collected = state::collect(
            &self.all::<MachineDeployment>(seed).await?,
            &self.all::<MachineSet>(seed).await?,
            &self.all::<Machine>(seed).await?,
            &self.all::<MachineClass>(seed).await?,
        );
        ensure!(collected.machines() == machines, "{collected:?}");
        // Dependents before owners, or the garbage collector would write to the same objects.
        self.forget::<Machine>(seed).await?;
        self.forget::<MachineSet>(seed).await?;
        self.forget::<MachineDeployment>(seed).await?;
        self.forget::<MachineClass>(seed).await?;
        Ok(state::encode(&collected)?.0)
    }

    async fn forget<K: Object + Resource<Scope = k8s_openapi::NamespaceResourceScope>>(
        &self,
        seed: &Client,
    ) -> Result<()> {
        for object in self.all::<K>(seed).await? {
            finalizer::remove_all(&self.api(seed), &object).await?;
            apply::delete(&self.api::<K>(seed), &object.name_any()).await?;
        }
        Ok(())
    }

    fn api<K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>>(
        &self,
        seed: &Client,
    ) -> Api<K> {
        Api::namespaced(seed.clone(), self.namespace)
    }

    async fn all<K: Object + Resource<Scope = k8s_openapi::NamespaceResourceScope>>(
        &self,
        seed: &Client,
    ) -> Result<Vec<K>> {
        Ok(self.api::<K>(seed).list(&ListParams::default()).await?.items)
    }

    /// Acts on each change.
    async fn play(self, seed: Client) {
        let mut woken = select_all([
            self.changes::<Deployment>(&seed),
            self.changes::<MachineDeployment>(&seed),
            self.changes::<MachineSet>(&seed),
            self.changes::<Machine>(&seed),
        ]);
        while woken.next().await.is_some() {
            // A conflicting write is repeated at the next change.
            if let Err(error) = self.act(&seed).await {
                tracing::debug!(%error, "the played manager of machines");
            }
        }
    }

    fn changes<K>(&self, seed: &Client) -> futures::stream::BoxStream<'static, ()>
    where
        K: Object + Resource<Scope = k8s_openapi::NamespaceResourceScope>,
    {
        watcher(self.api::<K>(seed), watcher::Config::default())
            .map(drop)
            .boxed()
    }

    async fn act(&self, seed: &Client) -> Result<()> {
        let manager = self.api::<Deployment>(seed).get_opt(MANAGER).await?;
        if manager.and_then(|found| found.spec?.replicas).unwrap_or_default() == 0 {
            return Ok(());
        }
        let machines = self.all::<Machine>(seed).await?;
        for deployment in self.all::<MachineDeployment>(seed).await? {
            let set = self.set_of(seed, &deployment).await?;
            let there = machines.iter().filter(|machine| is_of(machine, &set)).count();
            let wanted = usize::try_from(deployment.spec.replicas.unwrap_or_default())?;
            for number in there..wanted {
                self.make(seed, &set, number).await?;
            }
            let status = json!({
                "observedGeneration": deployment.metadata.generation, "replicas": there, "updatedReplicas": there,
                "readyReplicas": there, "availableReplicas": there,
            });
            if json!(deployment.status) != status {
                let api = self.api::<MachineDeployment>(seed);
                TEST.merge_status(&api, &deployment.name_any(), &status).await?;
            }
        }
        self.serve(seed).await
    }

    async fn make(&self, seed: &Client, set: &MachineSet, number: usize) -> Result<()> {
        let mut machine: Machine = serde_json::from_value(json!({
            "metadata": {
                "name": format!("{}-{number}", set.name_any()),
                "labels": set.spec.selector.clone().unwrap_or_default().match_labels,
            },
            "spec": set.spec.template.clone().unwrap_or_default().spec,
        }))?;
        machine
            .owner_references_mut()
            .extend(set.controller_owner_ref(&()));
        machine.metadata.finalizers = Some(vec![labels::FINALIZER.into()]);
        let machines = self.api::<Machine>(seed);
        machines.create(&PostParams::default(), &machine).await?;
        Ok(())
    }

    /// Creates instances for machines without an instance, deletes instances of terminating machines, and
    /// deletes unknown instances.
    async fn serve(&self, seed: &Client) -> Result<()> {
        let instances = || self.instances.lock().unwrap_or_else(PoisonError::into_inner);
        let machines = self.all::<Machine>(seed).await?;
        for machine in &machines {
            let name = machine.name_any();
            let id = machine.spec.provider_id.clone();
            if machine.metadata.deletion_timestamp.is_some() {
                instances().retain(|_, of| *of != name);
                finalizer::remove_all(&self.api(seed), machine).await?;
            } else if id.is_none() {
                let id = format!("played:///{}", machine.metadata.uid.clone().unwrap_or_default());
                instances().insert(id.clone(), name.clone());
                let known = json!({"spec": {"providerID": id}});
                TEST.merge(&self.api::<Machine>(seed), &name, &known).await?;
            }
        }
        let known: Vec<_> = machines.iter().map(ResourceExt::name_any).collect();
        instances().retain(|_, of| known.contains(of));
        Ok(())
    }

    async fn set_of(&self, seed: &Client, deployment: &MachineDeployment) -> Result<MachineSet> {
        let template = deployment.spec.template.clone();
        let spec = template.spec.as_ref();
        let class = spec.and_then(|spec| spec.class.clone()?.name).unwrap_or_default();
        let all = self.all::<MachineSet>(seed).await?;
        if let Some(found) = all.into_iter().find(|set| set.name_any() == class) {
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
        let sets = self.api::<MachineSet>(seed);
        Ok(sets.create(&PostParams::default(), &set).await?)
    }
}

fn is_of(machine: &Machine, set: &MachineSet) -> bool {
    machine
        .owner_references()
        .iter()
        .any(|by| Some(&by.uid) == set.metadata.uid.as_ref())
}
