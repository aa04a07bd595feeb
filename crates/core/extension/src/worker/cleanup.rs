//! Removes all machines, and the objects from which the machines were created.

use std::time::Duration;

use api::{
    extensions::Worker,
    machine::{Machine, labels},
};
use kube::{Api, ResourceExt};
use runtime::{
    Error, Result,
    client::{
        apply::{self, Object},
        wait,
    },
    controller::finalizer,
};
use serde_json::json;
use tokio::time::Instant;

use super::{
    health,
    machines::Machines,
    manager,
    write::{MachineObjects, all},
};
use crate::{Context, Released, forced};

/// Time in which an operation waits for the end of machines. Shorter than the patience of a forced deletion,
/// so that the deletion can report the remaining machines.
const GONE_WITHIN: Duration = Duration::from_secs(15);

/// Maximum conflicts with concurrent writers during the release of an object.
const MOST_TRIES: usize = 5;

/// Removes all objects. First the MachineDeployments and MachineSets, then the machines, by the
/// machine-controller-manager; then the remaining objects and the machine-controller-manager.
pub async fn delete<M: Machines>(machines: &M, context: &Context<Worker>) -> Result<()> {
    let there = MachineObjects::for_worker(context)?;
    let left = all(&there.machines).await?;
    if !left.is_empty() {
        // The machine-controller-manager must run to remove the machines, also after an earlier attempt, or
        // if the Deployment was scaled down.
        Box::pin(manager::deploy(context, machines.manager(context)?, 1)).await?;
    }
    delete_all(&there.deployments).await?;
    delete_all(&there.sets).await?;
    for machine in all(&there.machines).await? {
        // The cluster is deleted, so no eviction of pods is awaited.
        let label = json!({"metadata": {"labels": {labels::FORCE_DELETION: "True"}}});
        let name = machine.name_any();
        // A machine that is gone meanwhile needs no label.
        if let Err(error) = context.manager.merge(&there.machines, &name, &label).await
            && there
                .machines
                .get_opt(&name)
                .await
                .map_err(Error::from)?
                .is_some()
        {
            return Err(error);
        }
        apply::delete(&there.machines, &name).await?;
    }
    if let Err(error) = gone(&there.machines).await {
        return Err(health::explained(error, &all(&there.machines).await?));
    }
    forget(&there).await?;
    manager::remove(&context.seed, &there.namespace).await
}

/// As [`delete`]. Machines that do not end are reported with their instance ids, and the Machine objects are
/// released.
pub async fn force_delete<M: Machines>(machines: &M, context: &Context<Worker>) -> Result<Released> {
    let what = format!("machines of Worker {}", context.name());
    let tried = forced::attempt(&what, || Box::pin(delete(machines, context))).await?;
    if tried.left_behind.is_empty() {
        return Ok(tried);
    }
    let there = MachineObjects::for_worker(context)?;
    let namespace = there.namespace.clone();
    // No controller may act on released objects.
    let stopped = forced::attempt("the machine manager's pod", || {
        manager::remove(&context.seed, &namespace)
    })
    .await?;
    let mut released = stopped;
    let why = tried.left_behind.join("; ");
    for machine in all(&there.machines).await? {
        released.left_behind.push(sentence(&machine, &why));
        let_go(&there.machines, &machine).await?;
    }
    forget(&there).await?;
    Ok(released)
}

fn sentence(machine: &Machine, why: &str) -> String {
    let id = machine.spec.provider_id.as_deref().unwrap_or("no id is known");
    format!("machine {} ({id}): {why}", machine.name_any())
}

/// Releases the objects that are useless without machines. No machine is left, so no finalizer protects a
/// resource.
async fn forget(there: &MachineObjects) -> Result<()> {
    let_all_go(&there.deployments).await?;
    let_all_go(&there.sets).await?;
    let_all_go(&there.classes).await?;
    for secret in there.class_secrets().await? {
        let_go(&there.secrets, &secret).await?;
    }
    Ok(())
}

async fn let_all_go<K: Object>(api: &Api<K>) -> Result<()> {
    for object in all(api).await? {
        let_go(api, &object).await?;
    }
    Ok(())
}

/// A concurrent writer may change the object: the garbage collector, when the owner is deleted.
async fn let_go<K: Object>(api: &Api<K>, object: &K) -> Result<()> {
    let name = object.name_any();
    let mut tries = 0;
    while let Some(there) = api.get_opt(&name).await.map_err(Error::from)? {
        match finalizer::remove_all(api, &there).await {
            Err(error) if error.is_retryable() && tries < MOST_TRIES => tries += 1,
            other => {
                other?;
                return apply::delete(api, &name).await;
            }
        }
    }
    Ok(())
}

async fn delete_all<K: Object>(api: &Api<K>) -> Result<()> {
    for object in all(api).await? {
        apply::delete(api, &object.name_any()).await?;
    }
    Ok(())
}

async fn gone(machines: &Api<Machine>) -> Result<()> {
    let end = Instant::now() + GONE_WITHIN;
    for machine in all(machines).await? {
        let left = end.saturating_duration_since(Instant::now());
        wait::until_gone(machines, &machine.name_any(), left.max(Duration::from_millis(1))).await?;
    }
    Ok(())
}
