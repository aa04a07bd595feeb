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
    health, isolation,
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
    let id = context.object.spec.isolated_zone_id.as_deref();
    let isolated = id.map(|id| machines.zone_of(context, id)).transpose()?;
    let around = Surroundings {
        namespace: &there.namespace,
        hibernated,
        existing: &existing,
        user_data: there.user_data(context).await?,
        isolated: isolated.as_deref(),
        now: clock::now(),
    };
    let class_of = |pool: &_, zone: &_| machines.class(context, pool, zone);
    let wanted = wanted::wanted(&context.object, &around, class_of)?;

    let written = there.write(context, &wanted).await?;
    tell(context, &wanted, isolated.as_deref()).await?;
    let gone: Vec<_> = existing
        .iter()
        .filter(|old| {
            !wanted
                .iter()
                .any(|one| one.deployment.name_any() == old.name_any())
        })
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
    let gone = gone.into_iter().map(ResourceExt::name_any).collect();
    let awaited = Awaited {
        written,
        gone,
        hibernated,
        isolated: isolated.as_deref(),
    };
    if let Err(error) = there.arrive(&wanted, awaited).await {
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

/// What is waited for.
struct Awaited<'a> {
    /// Deployments whose machines are to be ready, with the generation that was written.
    written: BTreeMap<String, Option<i64>>,
    /// Deployments that go, with their machines.
    gone: Vec<String>,
    /// Whether no machine is to be left.
    hibernated: bool,
    /// The zone in which none is.
    isolated: Option<&'a str>,
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

    /// Classes and deployments, which say in which epoch they were written: beside their template, or all machines would be replaced.
    /// One that is left says first what its pool had, and then the others grow by it.
    async fn write(
        &self,
        context: &Context<Worker>,
        wanted: &[Wanted],
    ) -> Result<BTreeMap<String, Option<i64>>> {
        for one in wanted {
            context.manager.apply(&self.secrets, &one.secret).await?;
            context.manager.apply(&self.classes, &one.class).await?;
        }
        let apply = async |one: &Wanted| {
            let mut deployment = one.deployment.clone();
            context.tell_epoch(&mut deployment)?;
            context.manager.apply(&self.deployments, &deployment).await
        };
        let mut written = BTreeMap::new();
        let (left, staying): (Vec<_>, Vec<_>) = wanted.iter().partition(|one| one.is_left.is_some());
        for one in left {
            apply(one).await?;
        }
        for one in staying {
            let object = apply(one).await?;
            written.insert(object.name_any(), object.metadata.generation);
        }
        Ok(written)
    }

    /// Machines come, and then others go: those of a zone that is cut off when their pods find a place elsewhere, or when that was waited
    /// for long enough.
    async fn arrive(&self, wanted: &[Wanted], mut awaited: Awaited<'_>) -> Result<()> {
        let end = Instant::now() + READY_WITHIN;
        let ready = self.until_ready(&awaited.written, end).await;
        let left: Vec<_> = wanted
            .iter()
            .filter_map(|one| Some((one, one.is_left?)))
            .collect();
        match ready {
            Err(error) if awaited.isolated.is_none() => return Err(error),
            Err(error) if left.iter().any(|(_, begun)| !begun.has_waited(clock::now())) => return Err(error),
            // A zone that is left already is not held up by the others.
            Err(error) => {
                tracing::warn!(%error, "a zone is left although machines elsewhere are not as wanted");
            }
            Ok(()) => {}
        }
        for (one, _) in left {
            let name = one.deployment.name_any();
            apply::delete(&self.deployments, &name).await?;
            awaited.gone.push(name);
        }
        self.until_gone(&awaited, end).await
    }

    async fn until_ready(&self, written: &BTreeMap<String, Option<i64>>, end: Instant) -> Result<()> {
        for (name, generation) in written {
            wait::until(&self.deployments, name, left(end), |found| {
                health::look(found, *generation)
            })
            .await?;
        }
        Ok(())
    }

    /// A set has done its part when it has asked for an end: of a shoot that sleeps the machines themselves are waited for, which
    /// are drained first. So they are in a zone that is cut off, as long as they may take.
    async fn until_gone(&self, awaited: &Awaited<'_>, end: Instant) -> Result<()> {
        for old in &awaited.gone {
            wait::until_gone(&self.deployments, old, left(end)).await?;
        }
        let is_of_gone = |machine: &Machine| {
            let of = machine.labels().get(labels::NAME);
            of.is_some_and(|of| awaited.gone.contains(of))
        };
        let is_isolated = |machine: &Machine| {
            awaited
                .isolated
                .is_some_and(|zone| isolation::is_in(machine, zone))
        };
        for machine in all(&self.machines).await? {
            if is_isolated(&machine) && isolation::is_overdue(&machine, clock::now()) {
                let name = machine.name_any();
                tracing::warn!(
                    machine = name,
                    "it does not go, and its zone is cut off all the same"
                );
            } else if awaited.hibernated || is_of_gone(&machine) || is_isolated(&machine) {
                wait::until_gone(&self.machines, &machine.name_any(), left(end)).await?;
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
async fn tell(context: &Context<Worker>, wanted: &[Wanted], isolated: Option<&str>) -> Result<()> {
    let staying = wanted.iter().filter(|one| one.is_left.is_none());
    let deployments: Vec<_> = staying.map(|one| &one.status).collect();
    let status = json!({
        "machineDeployments": deployments, "machineDeploymentsLastUpdateTime": clock::now_k8s(),
        "isolatedZoneCode": isolated,
    });
    let workers: Api<Worker> = context.seed.namespaced(&context.namespace()?);
    context
        .manager
        .merge_status(&workers, &context.name(), &status)
        .await
        .map(drop)
}

fn left(end: Instant) -> Duration {
    end.saturating_duration_since(Instant::now())
        .max(Duration::from_millis(1))
}
