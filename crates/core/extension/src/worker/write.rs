//! Writes the machine objects of a Worker, and waits until the machines match. `reconcile` has the order:
//!
//! 1. classes and deployments are written (`wanted`);
//! 2. the status lists the deployments (`report_deployments`), the machine-controller-manager is deployed;
//! 3. new machines are awaited, then old machines go (`await_machines`; `health` has the reasons of a wait).
//!    With an isolated zone, the budget ends this wait;
//! 4. after a failback, zones shrink to the former sizes (`end_failback`);
//! 5. classes without a deployment are removed (`prune`).

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api::{
    extensions::{Worker, WorkerPool},
    machine::{Machine, MachineClass, MachineDeployment, MachineSet, labels},
};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt, api::ListParams};
use runtime::{
    Error, Result,
    client::{Cluster, apply, wait},
    clock,
    error::Explain as _,
};
use serde_json::json;
use tokio::time::Instant;

use super::{
    close_deadline::CloseDeadline,
    former_sizes::{self, FormerSizes},
    health,
    isolation::{self, Begun},
    machines::{Class, Machines},
    manager, rollout,
    wanted::{self, PoolObjects, Surroundings},
};
use crate::Context;

/// Time in which an operation waits for machines. A machine takes minutes. A waiting operation occupies a
/// worker of the controller, and a sick zone has many shoots. The time is also the longest delay after the
/// deadline of a zone. The object reports the awaited machines meanwhile.
const READY_WITHIN: Duration = Duration::from_secs(5);
/// Requeue interval for an object that a different process is about to write.
const MISSING_OBJECT_REQUEUE: Duration = Duration::from_secs(5);

/// Runs a complete reconcile.
pub async fn reconcile<M: Machines>(machines: &M, context: &Context<Worker>) -> Result<()> {
    let there = MachineObjects::for_worker(context)?;
    let existing: Vec<MachineDeployment> = all(&there.deployments).await?;
    let hibernated = context.is_hibernated();
    let id = context.object.spec.isolated_zone_id.as_deref();
    let isolated = id.map(|id| machines.zone_of(context, id)).transpose()?;
    let former = FormerSizes::reconcile(context, isolated.as_deref(), &existing).await?;
    let around = Surroundings {
        namespace: &there.namespace,
        hibernated,
        existing: &existing,
        user_data: there.user_data(context).await?,
        isolated: isolated.as_deref(),
        former: former.as_ref(),
        shrinks: false,
        now: clock::now(),
    };
    let class_of = |pool: &_, zone: &_| machines.class(context, pool, zone);
    let wanted = wanted::wanted(&context.object, &around, class_of)?;

    let terminating = terminating(&existing);
    let written = there.write(context, &wanted, &terminating).await?;
    report_deployments(context, &wanted, isolated.as_deref()).await?;
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
        // No controller acts on the written objects before the shoot wakes up.
        return there.prune(&wanted).await;
    }
    let gone = gone
        .into_iter()
        .filter(|old| !wanted::is_succeeded(old, &wanted, clock::now()))
        .map(ResourceExt::name_any)
        .collect();
    let deadline = isolated.as_deref().and_then(|zone| {
        let recorded = CloseDeadline::read(context.object.as_ref());
        recorded.or_else(|| CloseDeadline::of_deployments(&existing, zone))
    });
    let pending = PendingChanges {
        terminating,
        written,
        gone,
        hibernated,
        isolated: isolated.as_deref(),
        pods_first: isolation::pods_leave_first(
            context.cluster.as_ref().map(|cluster| &cluster.spec.shoot.0),
        ),
        deadline,
    };
    let arrived = match Box::pin(there.await_machines(context, &wanted, pending)).await {
        Ok(arrived) => arrived,
        Err(error) => return Err(there.explained(error).await),
    };
    let elsewhere = match arrived.elsewhere {
        Some(error) => Some(there.explained(error).await),
        None => None,
    };
    rollout::report(context, elsewhere.as_ref()).await?;
    // Remaining machines in a closed zone still need the machine-controller-manager.
    if hibernated && arrived.is_empty {
        Box::pin(manager::deploy(context, machines.manager(context)?, 0)).await?;
    }
    if former.is_some() && isolated.is_none() {
        Box::pin(there.end_failback(context, around, class_of)).await?;
    }
    there.prune(&wanted).await
}

fn terminating(existing: &[MachineDeployment]) -> BTreeSet<String> {
    let going = existing
        .iter()
        .filter(|old| old.metadata.deletion_timestamp.is_some());
    going.map(ResourceExt::name_any).collect()
}

/// The changes that are not finished.
struct PendingChanges<'a> {
    /// Wanted deployments whose predecessor with the same name terminates: recreated when the predecessor is
    /// gone.
    terminating: BTreeSet<String>,
    /// Deployments whose machines must become ready, with the written generation.
    written: BTreeMap<String, Option<i64>>,
    /// Deployments in deletion, with their machines.
    gone: Vec<String>,
    /// Whether no machine may be left.
    hibernated: bool,
    /// The zone that must become empty.
    isolated: Option<&'a str>,
    /// Whether the user lets pods leave that zone before machines elsewhere are awaited.
    pods_first: bool,
    /// The time at which the network of that zone is closed, even with remaining machines. `None` once a
    /// failover has ended.
    deadline: Option<CloseDeadline>,
}

impl PendingChanges<'_> {
    fn is_spent(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| deadline.has_passed(clock::now()))
    }

    /// Whether machines elsewhere are awaited before the zone is left.
    fn allows_growth(&self, begun: &Begun) -> bool {
        let now = clock::now();
        !self.pods_first
            && !begun.has_waited(now)
            && self.deadline.is_none_or(|deadline| deadline.allows_growth(now))
    }
}

/// The result of a wait that a failover may cut short.
struct Arrived {
    /// The reason why machines outside of the isolated zone are not ready.
    elsewhere: Option<Error>,
    /// Whether all objects in deletion are gone. Otherwise the budget is spent.
    is_empty: bool,
}

/// The machine objects of the shoot.
pub struct MachineObjects {
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

impl MachineObjects {
    /// In the namespace of this Worker.
    pub fn for_worker(context: &Context<Worker>) -> Result<Self> {
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

    /// The user data of machines, by pool.
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
                Error::not_ready(MISSING_OBJECT_REQUEUE, why)
            })?;
            of_pools.insert(pool.name.clone(), value.0);
        }
        Ok(of_pools)
    }

    /// Writes classes and deployments with the epoch as an annotation. The annotation is not in the template,
    /// because a changed template would replace all machines. A deployment that is being left first records
    /// the pool's machines; then the remaining deployments grow by that number.
    async fn write(
        &self,
        context: &Context<Worker>,
        wanted: &[PoolObjects],
        terminating: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, Option<i64>>> {
        for one in wanted {
            context.manager.apply(&self.secrets, &one.secret).await?;
            context.manager.apply(&self.classes, &one.class).await?;
        }
        let mut written = BTreeMap::new();
        let (left, staying): (Vec<_>, Vec<_>) = wanted.iter().partition(|one| one.leaving.is_some());
        for one in left {
            self.apply(context, one).await?;
        }
        for one in staying {
            // A write to an object that terminates would be lost with the object.
            if !terminating.contains(&one.deployment.name_any()) {
                let object = self.apply(context, one).await?;
                written.insert(object.name_any(), object.metadata.generation);
            }
        }
        Ok(written)
    }

    async fn apply(&self, context: &Context<Worker>, one: &PoolObjects) -> Result<MachineDeployment> {
        let mut deployment = one.deployment.clone();
        context.tell_epoch(&mut deployment)?;
        context.manager.apply(&self.deployments, &deployment).await
    }

    /// Recreates the deployments whose predecessors terminated at the begin of the operation.
    async fn recreate_terminated(
        &self,
        context: &Context<Worker>,
        wanted: &[PoolObjects],
        pending: &mut PendingChanges<'_>,
        end: Instant,
    ) -> Result<()> {
        for one in wanted {
            let name = one.deployment.name_any();
            if !pending.terminating.contains(&name) {
                continue;
            }
            if let Err(error) = wait::until_gone(&self.deployments, &name, left(end)).await {
                return Err(match error {
                    Error::NotReady { after, .. } => Error::not_ready(
                        after,
                        format!(
                            "MachineDeployment {name} terminates with its machines, and is made anew when it has gone"
                        ),
                    ),
                    other => other,
                });
            }
            let object = self.apply(context, one).await?;
            pending.written.insert(name, object.metadata.generation);
        }
        Ok(())
    }

    /// Waits for new machines, then deletes old machines. Machines of an isolated zone are deleted when their
    /// pods find a place elsewhere, or after the timeout of that wait.
    async fn await_machines(
        &self,
        context: &Context<Worker>,
        wanted: &[PoolObjects],
        mut pending: PendingChanges<'_>,
    ) -> Result<Arrived> {
        let end = Instant::now() + READY_WITHIN;
        let remade = self.recreate_terminated(context, wanted, &mut pending, end).await;
        let left: Vec<_> = wanted
            .iter()
            .filter_map(|one| Some((one, one.leaving?)))
            .collect();
        let pods_first = pending.pods_first && (!left.is_empty() || pending.deadline.is_some());
        let ready = match remade {
            Ok(()) if !pods_first => self.until_ready(&pending.written, end).await,
            other => other,
        };
        let elsewhere = match ready {
            Err(error) if pending.isolated.is_none() => return Err(error),
            Err(error) if left.iter().any(|(_, begun)| pending.allows_growth(begun)) => return Err(error),
            // The failover has ended: this is an ordinary reconciliation.
            Err(error) if left.is_empty() && pending.deadline.is_none() => return Err(error),
            Err(error) => {
                tracing::warn!(
                    error = format_args!("{error:#}"),
                    "a zone is left although machines elsewhere are not ready"
                );
                Some(error)
            }
            Ok(()) => None,
        };
        for (one, _) in left {
            let name = one.deployment.name_any();
            apply::delete(&self.deployments, &name).await?;
            pending.gone.push(name);
        }
        let is_empty = match self.until_gone(&pending, end).await {
            Err(error @ Error::NotReady { .. }) if pending.is_spent() => {
                tracing::warn!(
                    error = format_args!("{error:#}"),
                    "the budget is spent: the network of the zone is closed although this is left"
                );
                false
            }
            gone => gone.map(|()| true)?,
        };
        let elsewhere = match elsewhere {
            None if pods_first => self.until_ready(&pending.written, end).await.err(),
            other => other,
        };
        Ok(Arrived { elsewhere, is_empty })
    }

    /// Adds the reports of the machines to the error.
    async fn explained(&self, error: Error) -> Error {
        match all(&self.machines).await {
            Ok(machines) => health::explained(error, &machines),
            Err(_) => error,
        }
    }

    /// The returned zone has machines again. Without a cluster autoscaler, zones that have grown shrink to
    /// their former sizes. The drains of these machines are not awaited, because a PodDisruptionBudget may
    /// hold a drain up for hours.
    async fn end_failback(
        &self,
        context: &Context<Worker>,
        around: Surroundings<'_>,
        class_of: impl Fn(&WorkerPool, &str) -> Result<Class>,
    ) -> Result<()> {
        if !former_sizes::has_autoscaler(context).await? {
            let existing = all(&self.deployments).await?;
            let around = Surroundings {
                existing: &existing,
                shrinks: true,
                ..around
            };
            for one in wanted::wanted(&context.object, &around, class_of)? {
                let name = one.deployment.name_any();
                let now = existing.iter().find(|there| there.name_any() == name);
                if now.is_some_and(|now| now.spec.replicas > one.deployment.spec.replicas) {
                    self.apply(context, &one).await?;
                }
            }
        }
        FormerSizes::forget(context).await
    }

    async fn until_ready(&self, written: &BTreeMap<String, Option<i64>>, end: Instant) -> Result<()> {
        for (name, generation) in written {
            wait::until(&self.deployments, name, left(end), |found| {
                health::judge_deployment(found, *generation)
            })
            .await?;
        }
        Ok(())
    }

    /// Waits for the end of deployments and machines. A deployment is gone, and a MachineSet has no replicas,
    /// as soon as the deletions are requested. So the machines of deleted deployments, of a hibernated shoot
    /// and of an isolated zone are awaited too, because machines are drained first. An overdue machine of an
    /// isolated zone is only logged.
    async fn until_gone(&self, pending: &PendingChanges<'_>, end: Instant) -> Result<()> {
        for old in &pending.gone {
            wait::until_gone(&self.deployments, old, left(end)).await?;
        }
        let is_of_gone = |machine: &Machine| {
            let of = machine.labels().get(labels::NAME);
            of.is_some_and(|of| pending.gone.contains(of))
        };
        let is_isolated = |machine: &Machine| {
            pending
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
            } else if pending.hibernated || is_of_gone(&machine) || is_isolated(&machine) {
                wait::until_gone(&self.machines, &machine.name_any(), left(end)).await?;
            }
        }
        Ok(())
    }

    /// Deletes classes, with their Secrets, that are not wanted and that no set or machine uses.
    async fn prune(&self, wanted: &[PoolObjects]) -> Result<()> {
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

/// Written before the wait for machines: the gardenlet sets up a cluster autoscaler from the status.
async fn report_deployments(
    context: &Context<Worker>,
    wanted: &[PoolObjects],
    isolated: Option<&str>,
) -> Result<()> {
    let staying = wanted.iter().filter(|one| one.leaving.is_none());
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
