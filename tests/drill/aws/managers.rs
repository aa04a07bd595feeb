//! The machine-controller-manager of each seed, as its Deployment says whether it runs; and Nodes of machines
//! that have an instance.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use api::machine::{Machine, labels};
use aws_fixture::region::SHOOT;
use futures::{Stream, StreamExt};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Node};
use kube::{
    Api, Client, Resource, ResourceExt,
    runtime::watcher::{self, Event, watcher},
};
use machine_controller_manager_aws::{MANAGER, driver::AwsDriver};
use machine_controllers::{Context, NAMES, Timing};
use runtime::{
    client::{Connection, Permit, Seed, Shoot, apply::FieldManager},
    controller::{Events, runner::Settings},
    process::metrics::Metrics,
};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Who plays kubelets.
const KUBELETS: FieldManager = FieldManager("played-kubelets");
/// By which a Node says in which zone it is.
const ZONE: &str = "topology.kubernetes.io/zone";
/// Name of the Deployment.
const NAME: &str = "machine-controller-manager";

/// As the process has it, but for looks that a test need not wait for.
pub fn quick() -> Timing {
    Timing {
        poll_interval: Duration::from_millis(300),
        orphans_every: Duration::from_millis(500),
        ..Timing::default()
    }
}

/// Runs the controllers while their Deployment wants a pod, until the value is dropped.
pub fn manage(seed: &Client, shoot: &Client, endpoint: &str, timing: Timing) -> JoinSet<()> {
    manage_in(SHOOT, seed, shoot, endpoint, timing)
}

/// The same in the namespace of a shoot.
pub fn manage_in(
    namespace: &str,
    seed: &Client,
    shoot: &Client,
    endpoint: &str,
    timing: Timing,
) -> JoinSet<()> {
    let (seed, shoot) = (seed.clone(), shoot.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(follow(
        namespace.to_owned(),
        seed,
        shoot,
        endpoint.to_owned(),
        timing,
    ));
    tasks
}

async fn follow(namespace: String, seed: Client, shoot: Client, endpoint: String, timing: Timing) {
    let mut runs = None;
    let mut wanted = std::pin::pin!(is_wanted(&namespace, &seed));
    while let Some(is_wanted) = wanted.next().await {
        if is_wanted && runs.is_none() {
            let mut tasks = JoinSet::new();
            tasks.spawn(machine_controllers::run(
                NAMES.to_vec(),
                context(&namespace, &seed, &shoot, &endpoint, timing.clone()),
            ));
            runs = Some(tasks);
        } else if !is_wanted {
            // The pod is gone, with all that it has begun.
            runs = None;
        }
    }
}

fn is_wanted(namespace: &str, seed: &Client) -> impl Stream<Item = bool> + Send + use<> {
    let deployments: Api<Deployment> = Api::namespaced(seed.clone(), namespace);
    let replicas = |deployment: &Deployment| deployment.spec.as_ref().and_then(|spec| spec.replicas);
    watcher(deployments, watcher::Config::default()).filter_map(move |event| async move {
        match event {
            Ok(Event::Apply(found) | Event::InitApply(found)) if found.name_any() == NAME => {
                Some(replicas(&found).unwrap_or_default() > 0 && found.meta().deletion_timestamp.is_none())
            }
            Ok(Event::Delete(found)) if found.name_any() == NAME => Some(false),
            _ => None,
        }
    })
}

fn context(namespace: &str, seed: &Client, shoot: &Client, endpoint: &str, timing: Timing) -> Context {
    let permit = Permit::sole("a test");
    Context {
        control: Seed::new(seed.clone(), &permit),
        namespace: namespace.to_owned(),
        shoot: Shoot::new(shoot.clone(), &permit),
        driver: Arc::new(AwsDriver::new(&permit, Some(endpoint.to_owned()))),
        settings: Settings {
            concurrency: 10,
            shutdown: CancellationToken::new(),
            permit: permit.clone(),
            metrics: Metrics::default(),
            events: Events::new(Connection::from(seed.clone()).client(&permit), MANAGER.0),
        },
        manager: MANAGER,
        timing,
    }
}

/// A Node that is ready for each machine with an instance, until the value is dropped. Their manager takes it
/// away.
pub fn play_nodes(seed: &Client, shoot: &Client) -> JoinSet<()> {
    play_nodes_of(SHOOT, seed, shoot)
}

/// The same for the machines of one namespace.
pub fn play_nodes_of(namespace: &str, seed: &Client, shoot: &Client) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let machines = Api::namespaced(seed.clone(), namespace);
    tasks.spawn(play(machines, Api::all(shoot.clone())));
    tasks
}

async fn play(machines: Api<Machine>, nodes: Api<Node>) {
    let mut events = std::pin::pin!(watcher(machines, watcher::Config::default()));
    while let Some(event) = events.next().await {
        let Ok(Event::Apply(machine) | Event::InitApply(machine)) = event else {
            continue;
        };
        let goes = machine.meta().deletion_timestamp.is_some();
        let Some(id) = machine
            .spec
            .provider_id
            .clone()
            .filter(|id| !goes && !id.is_empty())
        else {
            continue;
        };
        let zone = machine.labels().get(labels::ZONE).cloned();
        if let Err(error) = join(&nodes, &machine.name_any(), &id, zone).await {
            tracing::warn!(%error, "a Node that does not join");
        }
    }
}

async fn join(nodes: &Api<Node>, name: &str, id: &str, zone: Option<String>) -> runtime::Result<()> {
    let labels: BTreeMap<_, _> = zone.into_iter().map(|zone| (ZONE, zone)).collect();
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {"providerID": id},
    });
    let node: Node = serde_json::from_value(node).map_err(|error| runtime::Error::bug(error.to_string()))?;
    KUBELETS.apply(nodes, &node).await?;
    let ready = json!({"type": "Ready", "status": "True", "reason": "Played", "message": ""});
    KUBELETS
        .merge_status(nodes, name, &json!({"conditions": [ready]}))
        .await?;
    Ok(())
}
