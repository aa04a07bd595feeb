//! Node IPAM moves from the first manager of a shoot to the second and back (RK-05, RK-20..25, I5). Meanwhile
//! the responsible gardenlet is dropped at random moments.
//!
//! The managers are pods that do not run. [`Managers`] simulates the work. `Managers` derives the managers
//! with node IPAM from the pods' flags, and gives the shared lock to one of these managers. Each moment with
//! two running managers is recorded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use api::extensions::ControlPlane;
use flow::Undisturbed;
use flow_drill::Scenario;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, PodSpec};
use k8s_openapi::api::rbac::v1::Role;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use parts::ControllerLeaders;
use placement::Operation;
use serde_json::json;
use tokio::task::JoinSet;

use crate::scenario::{Drilled, ShootScenario};
use crate::world::World;

const LOCK: &str = "node-ipam-migration";
const HOME: &str = "kube-controller-manager";
const GUEST: &str = "cloud-controller-manager";
/// Longest time in milliseconds before a gardenlet is dropped. A whole hand-over takes about a second and a
/// half here.
const DROPPED_WITHIN: u64 = 350;
/// Maximum attempts; an undisturbed gardenlet needs a single attempt.
const TRIES: usize = 200;
/// Timeout of a step.
const TOLD_WITHIN: Duration = Duration::from_secs(60);
/// Interval of reads of the pods. Much shorter than a pod lives.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// There and back with interruptions, a reversal half-way, and a Shoot that is created with the new setting.
pub async fn check(world: &World) -> Result<()> {
    let mut scenario = ShootScenario::without_nodes(world, Drilled::Create);
    scenario.reset().await?;
    scenario.run(&Undisturbed).await?;
    let managers = Managers::play(&scenario);
    ends(&scenario, HOME).await?;

    let mut random = fastrand::Rng::with_seed(17);
    wanted(&scenario, GUEST).await?;
    let dropped = Box::pin(interrupted(&scenario, &mut random, TRIES)).await?;
    ensure!(
        dropped > 1,
        "hardly any gardenlet was dropped on the way: {dropped}"
    );
    ends(&scenario, GUEST).await?;
    // Back, and there again before the way back is complete.
    wanted(&scenario, HOME).await?;
    let _ = Box::pin(interrupted(&scenario, &mut random, 2)).await;
    wanted(&scenario, GUEST).await?;
    Box::pin(interrupted(&scenario, &mut random, TRIES)).await?;
    ends(&scenario, GUEST).await?;
    // As in the undisturbed flow.
    wanted(&scenario, HOME).await?;
    scenario.run(&Undisturbed).await?;
    ends(&scenario, HOME).await?;
    // A task of a flow is retried after an error: the task continues where the first attempt stopped.
    wanted(&scenario, GUEST).await?;
    Box::pin(tried_again(&scenario, &mut random)).await?;
    ends(&scenario, GUEST).await?;
    managers.twice()?;
    Box::pin(turned_round(&mut scenario, managers)).await?.twice()?;

    let mut born = ShootScenario::without_nodes(world, Drilled::Create);
    born.reset().await?;
    wanted(&born, GUEST).await?;
    born.run(&Undisturbed).await?;
    ends(&born, GUEST).await
}

async fn wanted(scenario: &ShootScenario<'_>, component: &str) -> Result<()> {
    let leaders = json!([{"name": "node-ipam-controller", "component": component}]);
    let patch = Patch::Merge(json!({"spec": {"kubernetes": {"controllerLeaders": leaders}}}));
    let shoots = scenario.shoots();
    shoots
        .patch(&scenario.name, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

/// The hand-over by gardenlets that are dropped at random moments, until a gardenlet completes the hand-over.
/// Returns the number of dropped gardenlets.
async fn interrupted(
    scenario: &ShootScenario<'_>,
    random: &mut fastrand::Rng,
    tries: usize,
) -> Result<usize> {
    let seed = &scenario.world.seeds[0];
    for dropped in 0..tries {
        let facts = Box::pin(scenario.facts(seed, Operation::Reconcile)).await?;
        // Longer and longer, so that on a machine that is slow just now a step is carried out at last.
        let longer = 1 + u32::try_from(dropped / 8)?;
        let within = longer * Duration::from_millis(random.u64(50..DROPPED_WITHIN));
        // An error may follow from a half-done step of the former gardenlet: only the end counts.
        if let Ok(Ok(())) = tokio::time::timeout(within, Box::pin(ControllerLeaders::hand_over(&facts))).await
        {
            return Ok(dropped);
        }
    }
    anyhow::bail!("node IPAM is not handed over after {tries} tries")
}

/// The hand-over by a gardenlet in a single flow; the task is dropped at random moments and retried, also
/// after the completion.
async fn tried_again(scenario: &ShootScenario<'_>, random: &mut fastrand::Rng) -> Result<()> {
    let facts = Box::pin(scenario.facts(&scenario.world.seeds[0], Operation::Reconcile)).await?;
    let mut done = 0;
    for tries in 0..TRIES {
        let longer = 1 + u32::try_from(tries / 8)?;
        let within = longer * Duration::from_millis(random.u64(50..DROPPED_WITHIN));
        if let Ok(Ok(())) = tokio::time::timeout(within, Box::pin(ControllerLeaders::hand_over(&facts))).await
        {
            done += 1;
        }
        if done == 2 {
            return Ok(());
        }
    }
    anyhow::bail!("node IPAM is not handed over after {TRIES} tries")
}

/// The new kube-controller-manager does not start, and the user takes the edit back: so does the gardenlet,
/// in the same flow and without that manager.
async fn turned_round(scenario: &mut ShootScenario<'_>, managers: Managers) -> Result<Managers> {
    wanted(scenario, HOME).await?;
    scenario.run(&Undisturbed).await?;
    let scenario = &*scenario;
    drop(managers);
    wanted(scenario, GUEST).await?;
    let facts = Box::pin(scenario.facts(&scenario.world.seeds[0], Operation::Reconcile)).await?;
    let user = async {
        home_is(scenario, Manager::Shares).await?;
        wanted(scenario, HOME).await?;
        home_is(scenario, Manager::Runs).await?;
        Ok::<_, anyhow::Error>(Managers::play(scenario))
    };
    let gardenlet = async { Ok(Box::pin(ControllerLeaders::hand_over(&facts)).await?) };
    let ((), managers) = tokio::try_join!(gardenlet, user)?;
    ends(scenario, HOME).await?;
    Ok(managers)
}

/// Waits until the kube-controller-manager has this setting.
async fn home_is(scenario: &ShootScenario<'_>, does: Manager) -> Result<()> {
    let deployments: Api<Deployment> =
        Api::namespaced(scenario.world.seeds[0].client(), &scenario.namespace());
    let told = |found: Option<&Deployment>| {
        found.is_some_and(|found| Manager::of_home(&of_deployment(found)) == does)
    };
    let waiting = kube::runtime::wait::await_condition(deployments, HOME, told);
    testkit::timeout(TOLD_WITHIN, waiting).await??;
    Ok(())
}

/// Only one manager knows node IPAM, and no intermediate setting is left.
async fn ends(scenario: &ShootScenario<'_>, component: &str) -> Result<()> {
    let client = scenario.world.seeds[0].client();
    let namespace = scenario.namespace();
    let home: Deployment = Api::namespaced(client.clone(), &namespace).get(HOME).await?;
    let guest: Deployment = Api::namespaced(client.clone(), &namespace).get(GUEST).await?;
    let (home, guest) = (
        Manager::of_home(&of_deployment(&home)),
        Manager::of_guest(&of_deployment(&guest)),
    );
    let expected = if component == HOME {
        (Manager::Runs, Manager::Rests)
    } else {
        (Manager::Rests, Manager::Runs)
    };
    ensure!((home, guest) == expected, "{component}: {home:?} {guest:?}");
    let told: ControlPlane = Api::namespaced(client.clone(), &namespace)
        .get(&scenario.name)
        .await?;
    let told = told.spec.cloud_controller_manager.unwrap_or_default();
    ensure!(told.leader_migration.is_none(), "{told:?}");
    let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
    for manager in [HOME, GUEST] {
        let file = maps.get_opt(&format!("{manager}-leader-migration")).await?;
        ensure!(file.is_none(), "the file of {manager} is left");
    }
    let shoot = scenario.world.shoot_api();
    let lock = Api::<Lease>::namespaced(shoot.clone(), "kube-system")
        .get_opt(LOCK)
        .await?;
    ensure!(lock.is_none(), "the lock is left");
    let role = Api::<Role>::namespaced(shoot, "kube-system")
        .get_opt(LOCK)
        .await?;
    ensure!(role.is_none(), "the right to the lock is left");
    Ok(())
}

/// The setting of node IPAM in a manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manager {
    Rests,
    Shares,
    Runs,
}

impl Manager {
    fn of_home(flags: &[String]) -> Self {
        match shares(flags) {
            true => Self::Shares,
            false if flags.iter().any(|flag| flag.ends_with(",-node-ipam-controller")) => Self::Rests,
            false => Self::Runs,
        }
    }

    fn of_guest(flags: &[String]) -> Self {
        match shares(flags) {
            true => Self::Shares,
            false if flags.iter().any(|flag| flag.starts_with("--allocate-node-cidrs")) => Self::Runs,
            false => Self::Rests,
        }
    }
}

fn shares(flags: &[String]) -> bool {
    flags
        .iter()
        .any(|flag| flag.starts_with("--enable-leader-migration"))
}

fn flags(pod: Option<&PodSpec>) -> Vec<String> {
    let containers = pod.into_iter().flat_map(|pod| &pod.containers);
    containers
        .flat_map(|container| container.args.clone().unwrap_or_default())
        .collect()
}

fn of_deployment(deployment: &Deployment) -> Vec<String> {
    flags(
        deployment
            .spec
            .as_ref()
            .and_then(|spec| spec.template.spec.as_ref()),
    )
}

/// Simulates the managers of a shoot until dropped.
struct Managers {
    _tasks: JoinSet<()>,
    twice: Arc<Mutex<Vec<String>>>,
}

impl Managers {
    fn play(scenario: &ShootScenario<'_>) -> Self {
        let twice = Arc::new(Mutex::new(Vec::new()));
        let (seed, shoot) = (scenario.world.seeds[0].client(), scenario.world.shoot_api());
        let (namespace, written) = (scenario.namespace(), Arc::clone(&twice));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            loop {
                if let Err(error) = check_managers(&seed, &shoot, &namespace, &written).await {
                    eprintln!("managers of {namespace}: {error:#}");
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        });
        Self { _tasks: tasks, twice }
    }

    /// Fails with the moments in which two managers would have run node IPAM.
    fn twice(&self) -> Result<()> {
        let twice = self.twice.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(twice.is_empty(), "run twice: {twice:?}");
        Ok(())
    }
}

async fn check_managers(
    seed: &Client,
    shoot: &Client,
    namespace: &str,
    twice: &Mutex<Vec<String>>,
) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(shoot.clone(), "kube-system");
    // Read before the pods: a manager whose pod is gone by the removal of a lock must not create the lock
    // again.
    let (home, guest) = (leases.get_opt(HOME).await?, leases.get_opt(GUEST).await?);
    let shared = leases.get_opt(LOCK).await?;
    let pods: Api<Pod> = Api::namespaced(seed.clone(), namespace);
    let mut alive = BTreeMap::new();
    for pod in pods.list(&ListParams::default().labels("app=kubernetes")).await? {
        let flags = flags(pod.spec.as_ref());
        match pod.labels().get("role").map(String::as_str) {
            Some(HOME) => alive.insert(pod.name_any(), Manager::of_home(&flags)),
            Some(GUEST) => alive.insert(pod.name_any(), Manager::of_guest(&flags)),
            _ => None,
        };
    }
    let of = |manager: &str, does: Manager| {
        alive
            .iter()
            .any(|(pod, is)| pod.starts_with(manager) && *is == does)
    };
    let apart = of(HOME, Manager::Runs) && (of(GUEST, Manager::Runs) || of(GUEST, Manager::Shares));
    if apart || (of(GUEST, Manager::Runs) && of(HOME, Manager::Shares)) {
        twice
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(format!("{alive:?}"));
    }
    for (manager, found) in [(HOME, home), (GUEST, guest)] {
        let pods = alive.iter().filter(|(pod, _)| pod.starts_with(manager));
        hold(&leases, manager, found.as_ref(), pods).await?;
    }
    let sharers = alive.iter().filter(|(_, does)| **does == Manager::Shares);
    hold(&leases, LOCK, shared.as_ref(), sharers).await
}

/// Gives a lock in the state `found` to a candidate, unless a candidate holds the lock. A manager without a
/// pod has not released the lock. As with real managers, no write happens when the lock was changed or
/// removed since.
async fn hold<'a>(
    leases: &Api<Lease>,
    lock: &str,
    found: Option<&Lease>,
    candidates: impl Iterator<Item = (&'a String, &'a Manager)>,
) -> Result<()> {
    let holder = found
        .and_then(|lease| lease.spec.as_ref()?.holder_identity.clone())
        .unwrap_or_default();
    let candidates: Vec<_> = candidates.map(|(pod, _)| format!("{pod}_1")).collect();
    let next = candidates.first().filter(|_| !candidates.contains(&holder));
    let Some(next) = next else { return Ok(()) };
    let spec = json!({"holderIdentity": next});
    let written = if let Some(lease) = found {
        let seen = json!({"uid": lease.uid(), "resourceVersion": lease.resource_version()});
        let patch = Patch::Merge(json!({"metadata": seen, "spec": spec}));
        leases.patch(lock, &PatchParams::default(), &patch).await
    } else {
        let lease: Lease = serde_json::from_value(json!({"metadata": {"name": lock}, "spec": spec}))?;
        leases.create(&PostParams::default(), &lease).await
    };
    match written {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        written => Ok(written.map(drop)?),
    }
}
