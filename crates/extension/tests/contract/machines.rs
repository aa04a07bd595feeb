//! Workers through the contract: a played manager of machines, which makes what is missing and collects what it does not know, as a
//! real one does. A machine object that is restored too late or not at all shows in the cloud.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use anyhow::{Result, ensure};
use api::{
    extensions::Worker,
    machine::{Machine, MachineClass, MachineDeployment, MachineSet, labels, state},
};
use extension::{
    Context, ExtensionReconciler,
    contract::Contract,
    reconciler::namespaced,
    worker::{Class, Machines, Manager, WorkerActuator},
};
use futures::{FutureExt, StreamExt, stream::select_all};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, PostParams},
    runtime::watcher,
};
use runtime::{apply, apply::Object, finalizer, workload::Health};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::world::{Seeds, TEST, object, proven, reconciler, set_secret};

const NAMESPACE: &str = "shoot--toy--machines";
/// Name of the Deployment and of its Secret.
pub const MANAGER: &str = "machine-controller-manager";

/// A provider of machines.
pub struct ToyMachines;

impl Machines for ToyMachines {
    fn class(
        &self,
        _: &Context<Worker>,
        pool: &api::extensions::WorkerPool,
        zone: &str,
    ) -> runtime::Result<Class> {
        Ok(Class {
            provider: "toy".into(),
            provider_spec: json!({"type": pool.machine_type, "zone": zone}).into(),
            rolls_with: Vec::new(),
        })
    }

    fn zone_of(&self, _: &Context<Worker>, id: &str) -> runtime::Result<String> {
        let zone = id.strip_prefix("id-").map(str::to_owned);
        zone.ok_or_else(|| {
            let code = api::meta::ErrorCode::ErrConfigurationProblem;
            runtime::Error::config(code, format!("no zone has the ID {id:?}"))
        })
    }

    fn manager(&self, _: &Context<Worker>) -> runtime::Result<Manager> {
        Ok(Manager {
            image: "toy".into(),
            program: "/toy".into(),
            args: Vec::new(),
            health: Health {
                scheme: "HTTP",
                port: 8080,
                readiness: "/readyz",
                liveness: "/healthz",
            },
            secrets: vec![MANAGER],
            asks_whose_the_shoot_is: false,
        })
    }
}

/// Instances by their ids, with the names of their machines.
type Cloud = Arc<Mutex<BTreeMap<String, String>>>;

pub async fn keep_it(seeds: &Seeds) -> Result<()> {
    seeds.shoot(NAMESPACE, ("cloudprovider", &[])).await?;
    let cloud = Cloud::default();
    let mut players = JoinSet::new();
    for seed in [&seeds.a, &seeds.b] {
        set_secret(seed, NAMESPACE, (MANAGER, &[("kubeconfig", "k")])).await?;
        set_secret(seed, NAMESPACE, ("user-data", &[("cloud_config", "run me")])).await?;
        players.spawn(play(seed.clone(), Arc::clone(&cloud)));
    }
    let wanted: Worker = object(json!({
        "metadata": {"name": "one", "namespace": NAMESPACE},
        "spec": {
            "type": "toy", "region": "r", "secretRef": {"name": "cloudprovider", "namespace": NAMESPACE},
            "pools": [{
                "name": "a", "machineType": "small", "machineImage": {"name": "os", "version": "1"}, "minimum": 3, "maximum": 3,
                "maxSurge": 1, "maxUnavailable": 0, "zones": ["x", "y"],
                "userDataSecretRef": {"name": "user-data", "key": "cloud_config"},
            }],
        },
    }))?;
    let make = |seed: &Client| -> ExtensionReconciler<Worker, _> {
        reconciler(seed, namespaced, WorkerActuator(ToyMachines))
    };
    let contract = Contract::new(|| make(&seeds.a), || make(&seeds.b), [wanted.clone(), wanted])
        .outside(Box::new(|| {
            let instances = json!(*cloud.lock().unwrap());
            async move { Ok(instances) }.boxed()
        }))
        .inside_source(Box::new(|| manager_in(seeds.a.clone()).boxed()))
        .carried_apart(Box::new(|| {
            let source = seeds.a.clone();
            async move { collect_and_forget(&source).await.map_err(|e| format!("{e:#}")) }.boxed()
        }));
    proven(contract.prove().await)
}

async fn manager_in(seed: Client) -> Result<Value, String> {
    let deployments: Api<Deployment> = Api::namespaced(seed, NAMESPACE);
    let found = deployments.get_opt(MANAGER).await.map_err(|e| e.to_string())?;
    Ok(json!(found.map(|found| found.name_any())))
}

/// What a gardenlet does: it collects the state of machines, and after the hand-over it removes their objects.
async fn collect_and_forget(seed: &Client) -> Result<Value> {
    let collected = state::collect(
        &all::<MachineDeployment>(seed).await?,
        &all::<MachineSet>(seed).await?,
        &all::<Machine>(seed).await?,
        &all::<MachineClass>(seed).await?,
    );
    ensure!(collected.machines() == 3, "{collected:?}");
    // What is made before what makes it, or the garbage collector would write to the same objects.
    forget::<Machine>(seed).await?;
    forget::<MachineSet>(seed).await?;
    forget::<MachineDeployment>(seed).await?;
    forget::<MachineClass>(seed).await?;
    Ok(state::encode(&collected)?.0)
}

async fn forget<K: Object + Resource<Scope = k8s_openapi::NamespaceResourceScope>>(
    seed: &Client,
) -> Result<()> {
    for object in all::<K>(seed).await? {
        finalizer::remove_all(&api(seed), &object).await?;
        apply::delete(&api::<K>(seed), &object.name_any()).await?;
    }
    Ok(())
}

fn api<K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>>(seed: &Client) -> Api<K> {
    Api::namespaced(seed.clone(), NAMESPACE)
}

async fn all<K: Object + Resource<Scope = k8s_openapi::NamespaceResourceScope>>(
    seed: &Client,
) -> Result<Vec<K>> {
    Ok(api::<K>(seed).list(&ListParams::default()).await?.items)
}

/// Acts on each change.
async fn play(seed: Client, cloud: Cloud) {
    fn changes<K>(seed: &Client) -> futures::stream::BoxStream<'static, ()>
    where
        K: Object + Resource<Scope = k8s_openapi::NamespaceResourceScope>,
    {
        watcher(api::<K>(seed), watcher::Config::default())
            .map(drop)
            .boxed()
    }
    let mut woken = select_all([
        changes::<Deployment>(&seed),
        changes::<MachineDeployment>(&seed),
        changes::<MachineSet>(&seed),
        changes::<Machine>(&seed),
    ]);
    while woken.next().await.is_some() {
        // What collides is done at the next change.
        if let Err(error) = act(&seed, &cloud).await {
            tracing::debug!(%error, "the played manager of machines");
        }
    }
}

async fn act(seed: &Client, cloud: &Cloud) -> Result<()> {
    let manager = api::<Deployment>(seed).get_opt(MANAGER).await?;
    if manager.and_then(|found| found.spec?.replicas).unwrap_or_default() == 0 {
        return Ok(());
    }
    let machines = all::<Machine>(seed).await?;
    for deployment in all::<MachineDeployment>(seed).await? {
        let set = set_of(seed, &deployment).await?;
        let owner = set.controller_owner_ref(&());
        let own = machines.iter().filter(|machine| {
            machine
                .owner_references()
                .iter()
                .any(|by| Some(&by.uid) == set.metadata.uid.as_ref())
        });
        let there = own.count();
        let wanted = usize::try_from(deployment.spec.replicas.unwrap_or_default())?;
        for number in there..wanted {
            let name = format!("{}-{number}", set.name_any());
            let mut machine: Machine = object(json!({
                "metadata": {"name": name, "labels": set.spec.selector.clone().unwrap_or_default().match_labels},
                "spec": set.spec.template.clone().unwrap_or_default().spec,
            }))?;
            machine.owner_references_mut().extend(owner.clone());
            machine.metadata.finalizers = Some(vec![labels::FINALIZER.into()]);
            api::<Machine>(seed)
                .create(&PostParams::default(), &machine)
                .await?;
        }
        let generation = deployment.metadata.generation;
        let status = json!({
            "observedGeneration": generation, "replicas": there, "updatedReplicas": there, "readyReplicas": there,
            "availableReplicas": there,
        });
        if json!(deployment.status) != status {
            TEST.merge_status(&api::<MachineDeployment>(seed), &deployment.name_any(), &status)
                .await?;
        }
    }
    serve(seed, cloud).await
}

/// Instances for machines without one, none for machines that go, and none that nobody knows.
async fn serve(seed: &Client, cloud: &Cloud) -> Result<()> {
    let machines = all::<Machine>(seed).await?;
    for machine in &machines {
        let name = machine.name_any();
        let id = machine.spec.provider_id.clone();
        if machine.metadata.deletion_timestamp.is_some() {
            cloud.lock().unwrap().retain(|_, of| *of != name);
            finalizer::remove_all(&api(seed), machine).await?;
        } else if id.is_none() {
            let id = format!("toy:///{}", machine.metadata.uid.clone().unwrap_or_default());
            cloud.lock().unwrap().insert(id.clone(), name.clone());
            TEST.merge(&api::<Machine>(seed), &name, &json!({"spec": {"providerID": id}}))
                .await?;
        }
    }
    let known: Vec<_> = machines.iter().map(ResourceExt::name_any).collect();
    cloud.lock().unwrap().retain(|_, of| known.contains(of));
    Ok(())
}

async fn set_of(seed: &Client, deployment: &MachineDeployment) -> Result<MachineSet> {
    let template = deployment.spec.template.clone();
    let class = template
        .spec
        .as_ref()
        .and_then(|spec| spec.class.clone()?.name)
        .unwrap_or_default();
    let found = all::<MachineSet>(seed)
        .await?
        .into_iter()
        .find(|set| set.name_any() == class);
    if let Some(found) = found {
        return Ok(found);
    }
    let of_it = json!({(labels::NAME): deployment.name_any(), (labels::TEMPLATE_HASH): class});
    let mut of_machines = json!(template.metadata.clone().unwrap_or_default().labels);
    of_machines[labels::TEMPLATE_HASH] = json!(class);
    let mut set: MachineSet = object(json!({
        "metadata": {"name": class, "labels": of_machines},
        "spec": {
            "replicas": deployment.spec.replicas, "selector": {"matchLabels": of_it},
            "template": {"metadata": {"labels": of_machines}, "spec": template.spec},
        },
    }))?;
    set.owner_references_mut()
        .extend(deployment.controller_owner_ref(&()));
    Ok(api::<MachineSet>(seed)
        .create(&PostParams::default(), &set)
        .await?)
}
