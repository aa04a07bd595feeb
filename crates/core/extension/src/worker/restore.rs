//! Creates the machine objects that were carried from the source seed, before any controller acts on the
//! objects.
//!
//! A controller would replace a missing machine, and the instance of the missing machine would count as an
//! orphan. The same holds for a machine that is created twice. Hence no controller acts meanwhile, and
//! existing objects stay unchanged. Once all objects exist, an annotation of the Worker records the
//! completion before the machine-controller-manager starts. So a later attempt does not recreate a machine
//! that the machine-controller-manager has deleted.

use std::collections::BTreeMap;

use api::{
    extensions::Worker,
    machine::{
        Machine, MachineClass, MachineDeployment, MachineSet, labels,
        state::{self, MachineDeploymentState, MachineState},
    },
    meta::{ErrorCode, SecretReference},
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{Api, ResourceExt, api::PostParams};
use runtime::{
    Error, Result,
    client::{
        Cluster,
        apply::{self, Object},
    },
    clock,
    error::Explain as _,
    workload::rollout::checksum,
};
use serde_json::{Value, json};

use super::{
    machines::Machines,
    manager,
    wanted::USER_DATA,
    write::{MachineObjects, all},
};
use crate::Context;

/// On the Worker: the checksum of the machine state whose objects have all been made here.
pub const RESTORED: &str = "worker.extensions.gardener.cloud/restored-machine-state";
/// Machines that are written at the same time.
const AT_ONCE: usize = 8;

/// Creates the carried objects, unless done before. On return, no machine is missing, and the
/// machine-controller-manager may start.
pub async fn restore<M: Machines>(_: &M, context: &Context<Worker>) -> Result<()> {
    let status = context.object.status.as_ref();
    let carried = status.and_then(|status| status.default.state.as_ref());
    let Some(carried) = carried.filter(|carried| !carried.0.is_null()) else {
        return may_be_empty(context).await;
    };
    let sum = checksum([("state", carried.0.to_string())]);
    if context.object.annotations().get(RESTORED) == Some(&sum) {
        return Ok(());
    }
    let state = state::decode(carried).map_err(|error| {
        let message = format!(
            "status.state of Worker {} holds no machines: {error}; nothing was changed, restore the ShootState's machine-state",
            context.name()
        );
        Error::config(ErrorCode::ErrConfigurationProblem, message)
    })?;
    let there = MachineObjects::for_worker(context)?;
    Box::pin(manager::stop(&context.seed, context.manager, &there.namespace)).await?;
    make(context, &there, &state).await?;
    let workers: Api<Worker> = context.seed.namespaced(&there.namespace);
    if let Some(sizes) = &state.sizes_before_isolation {
        context
            .manager
            .annotate(
                &workers,
                &context.name(),
                labels::SIZES_BEFORE_ISOLATION,
                Some(sizes),
            )
            .await?;
    }
    context
        .manager
        .annotate(&workers, &context.name(), RESTORED, Some(&sum))
        .await
        .map(drop)
}

/// A reconcile without state would create new machines, and the old machines would be lost. A state also
/// exists without machines. So a missing state is valid only if the state was consumed before, or if the
/// machines exist here, as after a cancelled move.
async fn may_be_empty(context: &Context<Worker>) -> Result<()> {
    let was_done = context.object.annotations().contains_key(RESTORED);
    if was_done || context.object.spec.pools.is_empty() {
        return Ok(());
    }
    if !all(&MachineObjects::for_worker(context)?.deployments)
        .await?
        .is_empty()
    {
        return Ok(());
    }
    let message = format!(
        "Worker {} has pools, and no state of machines was carried for it: it would make new ones and lose the old. Nothing was \
         changed, restore the ShootState's machine-state",
        context.name()
    );
    Err(Error::config(ErrorCode::ErrConfigurationProblem, message))
}

async fn make(context: &Context<Worker>, there: &MachineObjects, state: &MachineState) -> Result<()> {
    let user_data = there.user_data(context).await?;
    for class in &state.machine_classes {
        create(&there.secrets, &secret_of(class, &user_data)).await?;
        create(&there.classes, &class_here(class, &there.namespace)).await?;
    }
    let mut existing: BTreeMap<String, Machine> = all(&there.machines)
        .await?
        .into_iter()
        .map(|machine| (machine.name_any(), machine))
        .collect();
    for (name, carried) in &state.machine_deployments {
        let deployment = made_deployment(context, there, name, carried).await?;
        let mut sets = Vec::new();
        for set in &carried.machine_sets {
            let mut set = here(set.clone(), &there.namespace);
            context.tell_epoch(&mut set)?;
            set.owner_references_mut()
                .extend(deployment.as_ref().and_then(owned_by));
            sets.push(create(&there.sets, &set).await?);
        }
        let machines = carried.machines.iter().map(|machine| {
            let mut made = here(machine.clone(), &there.namespace);
            context.tell_epoch(&mut made)?;
            made.metadata.deletion_timestamp = None;
            made.metadata.finalizers = Some(vec![labels::FINALIZER.to_owned()]);
            made.owner_references_mut()
                .extend(set_of(machine, &sets).and_then(owned_by));
            Ok((machine, made, existing.remove(&machine.name_any())))
        });
        let machines: Vec<_> = machines.collect::<Result<_>>()?;
        stream::iter(machines)
            .map(Ok)
            .try_for_each_concurrent(AT_ONCE, |(carried, made, there_already)| {
                make_machine(context, &there.machines, carried, made, there_already)
            })
            .await?;
    }
    Ok(())
}

/// Creates a machine with status; a machine that was terminating is deleted again.
async fn make_machine(
    context: &Context<Worker>,
    api: &Api<Machine>,
    carried: &Machine,
    made: Machine,
    existing: Option<Machine>,
) -> Result<()> {
    let machine = match existing {
        Some(machine) => machine,
        None => create(api, &made).await?,
    };
    let name = machine.name_any();
    if machine.status.is_none()
        && let Some(status) = status_of(carried)
    {
        context.manager.merge_status(api, &name, &status).await?;
    }
    if carried.metadata.deletion_timestamp.is_some() && machine.metadata.deletion_timestamp.is_none() {
        apply::delete(api, &name).await?;
    }
    Ok(())
}

/// The carried status with the present time: the duration of the move must not count as time without contact
/// to the machine.
fn status_of(carried: &Machine) -> Option<Value> {
    let mut status = carried.status.clone()?;
    if let Some(current) = &mut status.current_status {
        current.last_update_time = Some(clock::now_k8s());
    }
    Some(json!(status))
}

/// The deployment as far as the MachineSets define the deployment; the following reconcile writes the wanted
/// state. `None` without a set: the name is not in use.
async fn made_deployment(
    context: &Context<Worker>,
    there: &MachineObjects,
    name: &str,
    carried: &MachineDeploymentState,
) -> Result<Option<MachineDeployment>> {
    let found = there.deployments.get_opt(name).await;
    let found = found.context(format_args!("could not read MachineDeployment {name}"))?;
    match (found, deployment(name, carried)?) {
        (None, Some(mut deployment)) => {
            context.tell_epoch(&mut deployment)?;
            let made = context.manager.apply(&there.deployments, &deployment).await;
            made.map(Some)
        }
        (found, _) => Ok(found),
    }
}

fn deployment(name: &str, carried: &MachineDeploymentState) -> Result<Option<MachineDeployment>> {
    // Each template has the same name, pool and zone, and is replaced soon.
    let Some(template) = carried
        .machine_sets
        .iter()
        .find_map(|set| set.spec.template.clone())
    else {
        return Ok(None);
    };
    let mut metadata = template.metadata.clone().unwrap_or_default();
    let mut of_machines = metadata.labels.take().unwrap_or_default();
    of_machines.remove(labels::TEMPLATE_HASH);
    of_machines.insert(labels::NAME.to_owned(), name.to_owned());
    let of_it: BTreeMap<_, _> = of_machines
        .iter()
        .filter(|(key, _)| [labels::POOL, labels::ZONE].contains(&key.as_str()))
        .collect();
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": of_it},
        "spec": {
            "replicas": carried.replicas,
            "selector": {"matchLabels": {labels::NAME: name}},
            "template": {"metadata": {"labels": of_machines}, "spec": template.spec},
        },
    }))
    .map(Some)
    .map_err(|error| Error::bug(format!("the MachineDeployment {name} cannot be made")).caused_by(error))
}

/// The set of a machine: by selector, and by class where several sets match.
fn set_of<'a>(machine: &Machine, sets: &'a [MachineSet]) -> Option<&'a MachineSet> {
    let selects = |set: &&MachineSet| {
        let selector = set.spec.selector.as_ref();
        let labels = selector.and_then(|selector| selector.match_labels.as_ref());
        labels.is_some_and(|wanted| {
            let has = |(key, value): (&String, &String)| machine.labels().get(key) == Some(value);
            !wanted.is_empty() && wanted.iter().all(has)
        })
    };
    let class_of_set = |set: &MachineSet| set.spec.template.clone()?.spec?.class?.name;
    let class = machine.spec.class.as_ref().and_then(|class| class.name.clone());
    let selected = || sets.iter().filter(selects);
    selected()
        .find(|set| class_of_set(set) == class)
        .or_else(|| selected().next())
}

fn owned_by<K: Object>(owner: &K) -> Option<OwnerReference> {
    owner.controller_owner_ref(&())
}

/// Removes the fields that only the former API server could know.
fn here<K: Object>(mut object: K, namespace: &str) -> K {
    let metadata = object.meta_mut();
    metadata.namespace = Some(namespace.to_owned());
    metadata.uid = None;
    metadata.resource_version = None;
    metadata.owner_references = None;
    object
}

fn class_here(class: &MachineClass, namespace: &str) -> MachineClass {
    let mut class = here(class.clone(), namespace);
    class.spec.secret_ref = Some(SecretReference::new(namespace, class.name_any()));
    class
}

/// A class that only old machines use needs a readable Secret, but the content is used for no new machine.
fn secret_of(class: &MachineClass, user_data: &BTreeMap<String, Vec<u8>>) -> Secret {
    let (purpose, machine_class) = labels::PURPOSE;
    let mut secret = Secret::default();
    secret.metadata.name = Some(class.name_any());
    let mut of_it = BTreeMap::from([(purpose.to_owned(), machine_class.to_owned())]);
    let pool = class.labels().get(labels::POOL);
    of_it.extend(pool.map(|pool| (labels::POOL.to_owned(), pool.clone())));
    secret.metadata.labels = Some(of_it);
    let bytes = pool
        .and_then(|pool| user_data.get(pool))
        .cloned()
        .unwrap_or_default();
    secret.data = Some([(USER_DATA.to_owned(), ByteString(bytes))].into());
    secret
}

/// Creates a missing object; an existing object stays unchanged.
async fn create<K: Object>(api: &Api<K>, object: &K) -> Result<K> {
    let name = object.name_any();
    match api.create(&PostParams::default(), object).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => api.get(&name).await,
        other => other,
    }
    .context(format_args!("could not make {} {name}", K::kind(&())))
}

#[cfg(test)]
#[path = "restore_tests.rs"]
mod tests;
