//! Makes the machine objects what a Worker says, and waits until the machines are.

use std::{collections::BTreeMap, time::Duration};

use api::{
    extensions::Worker,
    machine::{Machine, MachineClass, MachineDeployment, MachineSet, labels},
};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt, api::ListParams};
use runtime::{Cluster, Error, Result, apply, clock, error::Explain as _, wait};
use serde_json::json;
use tokio::time::Instant;

use super::{
    health,
    machines::Machines,
    manager,
    wanted::{self, Surroundings, Wanted},
};
use crate::Context;

/// How long one operation waits for machines. A machine takes minutes; whoever waits keeps others from working, and the object
/// says meanwhile what is awaited.
const READY_WITHIN: Duration = Duration::from_secs(20);
/// When to look again for what somebody else is about to write.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Everything of a reconcile.
pub async fn reconcile<M: Machines>(machines: &M, context: &Context<Worker>) -> Result<()> {
    let there = There::of(context)?;
    let existing: Vec<MachineDeployment> = all(&there.deployments).await?;
    let hibernated = context.is_hibernated();
    let around = Surroundings {
        namespace: &there.namespace,
        hibernated,
        existing: &existing,
        user_data: there.user_data(context).await?,
    };
    let class_of = |pool: &_, zone: &_| machines.class(context, pool, zone);
    let wanted = wanted::wanted(&context.object, &around, class_of)?;

    let mut written = BTreeMap::new();
    for one in &wanted {
        context.manager.apply(&there.secrets, &one.secret).await?;
        context.manager.apply(&there.classes, &one.class).await?;
    }
    for one in &wanted {
        let object = context.manager.apply(&there.deployments, &one.deployment).await?;
        written.insert(object.name_any(), object.metadata.generation);
    }
    tell(context, &wanted).await?;
    let gone: Vec<_> = existing
        .into_iter()
        .filter(|old| !written.contains_key(&old.name_any()))
        .collect();
    for old in &gone {
        apply::delete(&there.deployments, &old.name_any()).await?;
    }
    let idle = hibernated && all(&there.machines).await?.is_empty();
    Box::pin(manager::deploy(
        context,
        machines.manager(context)?,
        i32::from(!idle),
    ))
    .await?;

    if idle {
        // Nobody acts on what was written before the shoot wakes.
        return there.prune(&wanted).await;
    }
    if let Err(error) = there.wait(&written, &gone, hibernated).await {
        return Err(match all(&there.machines).await {
            Ok(machines) => health::explained(error, &machines),
            Err(_) => error,
        });
    }
    if hibernated {
        Box::pin(manager::deploy(context, machines.manager(context)?, 0)).await?;
    }
    there.prune(&wanted).await
}

/// The machine objects of the shoot.
pub struct There {
    /// The shoot's technical id.
    pub namespace: String,
    /// Secrets.
    pub secrets: Api<Secret>,
    /// Classes.
    pub classes: Api<MachineClass>,
    /// Deployments.
    pub deployments: Api<MachineDeployment>,
    /// Sets.
    pub sets: Api<MachineSet>,
    /// Machines.
    pub machines: Api<Machine>,
}

impl There {
    /// In the namespace of this Worker.
    pub fn of(context: &Context<Worker>) -> Result<Self> {
        let (seed, namespace) = (&context.seed, context.namespace()?);
        Ok(Self {
            secrets: seed.namespaced(&namespace),
            classes: seed.namespaced(&namespace),
            deployments: seed.namespaced(&namespace),
            sets: seed.namespaced(&namespace),
            machines: seed.namespaced(&namespace),
            namespace,
        })
    }

    /// What machines run at first, by pool.
    pub async fn user_data(&self, context: &Context<Worker>) -> Result<BTreeMap<String, Vec<u8>>> {
        let mut of_pools = BTreeMap::new();
        for pool in &context.object.spec.pools {
            let (name, key) = (&pool.user_data_secret_ref.name, &pool.user_data_secret_ref.key);
            let found = self.secrets.get_opt(name).await;
            let secret = found.context(format_args!("could not read the Secret {name}"))?;
            let value = secret.and_then(|secret| secret.data?.remove(key));
            let value = value.ok_or_else(|| {
                let pool = &pool.name;
                let why = format!("the user data of pool {pool} is not there: key {key} of the Secret {name}, which the gardenlet writes");
                Error::not_ready(LOOK_AGAIN, why)
            })?;
            of_pools.insert(pool.name.clone(), value.0);
        }
        Ok(of_pools)
    }

    /// A set has done its part when it has asked for an end: of a shoot that sleeps the machines themselves are waited for, which
    /// are drained first.
    async fn wait(
        &self,
        written: &BTreeMap<String, Option<i64>>,
        gone: &[MachineDeployment],
        hibernated: bool,
    ) -> Result<()> {
        let end = Instant::now() + READY_WITHIN;
        let left = || {
            end.saturating_duration_since(Instant::now())
                .max(Duration::from_millis(1))
        };
        for (name, generation) in written {
            wait::until(&self.deployments, name, left(), |found| {
                health::look(found, *generation)
            })
            .await?;
        }
        for old in gone {
            wait::until_gone(&self.deployments, &old.name_any(), left()).await?;
        }
        let is_of_gone = |machine: &Machine| {
            let of = machine.labels().get(labels::NAME);
            of.is_some_and(|of| gone.iter().any(|old| old.name_any() == *of))
        };
        for machine in all(&self.machines).await? {
            if hibernated || is_of_gone(&machine) {
                wait::until_gone(&self.machines, &machine.name_any(), left()).await?;
            }
        }
        Ok(())
    }

    /// Classes that nobody wants and no set or machine needs go, with their Secrets.
    async fn prune(&self, wanted: &[Wanted]) -> Result<()> {
        let sets = all(&self.sets).await?;
        let machines = all(&self.machines).await?;
        let of_sets = sets
            .iter()
            .filter(|set| set.spec.replicas.unwrap_or_default() > 0)
            .filter_map(|set| set.spec.template.as_ref()?.spec.as_ref());
        let specs = of_sets.chain(machines.iter().map(|machine| &machine.spec));
        let mut needed: Vec<String> = specs
            .filter_map(|spec| spec.class.as_ref()?.name.clone())
            .collect();
        needed.extend(wanted.iter().map(|one| one.class.name_any()));
        for class in all(&self.classes).await? {
            if !needed.contains(&class.name_any()) {
                apply::delete(&self.classes, &class.name_any()).await?;
            }
        }
        for secret in self.class_secrets().await? {
            if !needed.contains(&secret.name_any()) {
                apply::delete(&self.secrets, &secret.name_any()).await?;
            }
        }
        Ok(())
    }

    /// Secrets of classes.
    pub async fn class_secrets(&self) -> Result<Vec<Secret>> {
        let (purpose, machine_class) = labels::PURPOSE;
        let of_classes = ListParams::default().labels(&format!("{purpose}={machine_class}"));
        let found = self.secrets.list(&of_classes).await;
        Ok(found.context("could not list the Secrets of classes")?.items)
    }
}

/// All objects of a kind.
pub async fn all<K: apply::Object>(api: &Api<K>) -> Result<Vec<K>> {
    let found = api.list(&ListParams::default()).await;
    Ok(found
        .context(format_args!("could not list objects of kind {}", K::kind(&())))?
        .items)
}

/// Before machines are awaited: a cluster autoscaler is set up from it, and who waits for the Worker goes on to that.
async fn tell(context: &Context<Worker>, wanted: &[Wanted]) -> Result<()> {
    let deployments: Vec<_> = wanted.iter().map(|one| &one.status).collect();
    let status = json!({
        "machineDeployments": deployments, "machineDeploymentsLastUpdateTime": clock::now_k8s(),
    });
    let workers: Api<Worker> = context.seed.namespaced(&context.namespace()?);
    context
        .manager
        .merge_status(&workers, &context.name(), &status)
        .await
        .map(drop)
}
