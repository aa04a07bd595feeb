//! Measures the time until a zone with many machines is empty and closed, and the requests to the cloud. The
//! controllers and their intervals are those of the real processes. Nodes are simulated, and pods end as soon
//! as they are deleted.

use std::{
    collections::BTreeSet,
    pin::pin,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use api::{
    constants::{OPERATION, operation::RECONCILE},
    extensions::{ExtensionObject, Infrastructure, SubnetIsolation, Worker},
    machine::{Machine, labels},
    meta::LastOperationState,
};
use aws_fixture::region::{Region, SHOOT};
use extension::OwnerChecks;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::{NamespaceResourceScope, api::core::v1::Pod};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, PostParams},
    runtime::{
        wait::await_condition,
        watcher::{Config, Event, watcher},
    },
};
use machine_controllers::Timing;
use manager::PROVIDER_AWS;
use provider_aws::{
    MANAGER,
    controllers::{Context, run},
};
use provider_aws_fixture::{TEST, build_access, equip, object, of_kind, seed, worker};
use runtime::{
    client::{Cluster as _, Permit, Seed, apply::Object},
    controller::{Events, runner::Settings},
    process::metrics::Metrics,
};
use serde_json::{Value, json};
use testkit::{ControlPlane, Moto, PlayedKubelet};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{REGION, managers};

/// On each Node of the zone.
const PODS: usize = 5;
/// Concurrent requests of the test.
const AT_ONCE: usize = 10;
/// Longer than a hundred machines take.
const WITHIN: Duration = Duration::from_secs(900);

/// A shoot with so many machines in two zones; the first zone is isolated. Prints a row for
/// docs/understand/bench.md.
pub async fn measure(machines: usize) -> Result<()> {
    let moto = Moto::start().await?;
    let region = Region::start(&moto, REGION).await?;
    let [plane, mut shoot] = ControlPlane::start_all(["seed", "shoot"]).await?;
    // No node lifecycle controller may judge Nodes without a kubelet.
    shoot.stop_controllers();
    let (client, shoot) = (seed(&plane).await?, shoot.admin());
    equip(&client, REGION, b"for a process; here it is played".to_vec()).await?;
    let _pods = PlayedKubelet::start(&client);
    let _manager = managers::manage(&client, &shoot, &region.proxy.endpoint, Timing::default());
    let _nodes = managers::play_nodes(&client, &shoot);
    let _provider = provide(&client, &region);

    let told = made(&client, &region, machines).await?;
    let [sick, _] = region.zones();
    let inside = in_zone(&client, &sick).await?;
    let pods = fill(&shoot, &inside).await?;
    let id = told.pointer("/zones/0/id").cloned().context("no id of a zone")?;
    let calls = region.proxy.calls().len();

    let begin = Instant::now();
    let zone: SubnetIsolation = object(
        "one",
        REGION,
        json!({"isolatedZoneID": id, "infrastructureProviderStatus": told}),
    )?;
    let (zones, workers) = (of_shoot::<SubnetIsolation>(&client), of_shoot::<Worker>(&client));
    zones.create(&PostParams::default(), &zone).await?;
    let asked = json!({"metadata": {"annotations": {OPERATION: RECONCILE}}, "spec": {"isolatedZoneID": id}});
    TEST.merge(&workers, "one", &asked).await?;
    let of_zone = Config::default().labels(&format!("{}={sick}", labels::ZONE));
    let (out, empty, closed, _) = futures::try_join!(
        gone(Api::<Pod>::default_namespaced(shoot.clone()), Config::default()),
        gone(of_shoot::<Machine>(&client), of_zone),
        succeeded(&zones),
        succeeded(&workers),
    )?;

    let later = region.proxy.calls().split_off(calls);
    let of_network = later
        .iter()
        .filter(|action| action.contains("NetworkAcl"))
        .count();
    ensure!(of_network > 0, "nothing was closed: {later:?}");
    println!(
        "bench: | {machines} machines, {} of them and {pods} pods in the zone | {:.1} s | {:.1} s | {:.1} s | {of_network} | {} |",
        inside.len(),
        (out - begin).as_secs_f64(),
        (empty - begin).as_secs_f64(),
        closed.saturating_duration_since(empty).as_secs_f64(),
        later.len()
    );
    Ok(())
}

/// The controllers of the provider, until the value is dropped.
fn provide(seed: &Client, region: &Region) -> JoinSet<Result<(), String>> {
    let permit = Permit::sole("a measurement");
    let seed = Seed::new(seed.clone(), &permit);
    let context = Context {
        settings: Settings {
            concurrency: 5,
            shutdown: CancellationToken::new(),
            permit,
            metrics: Metrics::default(),
            events: Events::new(seed.client().clone(), MANAGER.0),
        },
        owners: OwnerChecks::default(),
        place: build_access(region),
        cloud_controller_manager: None,
        machine_controller_manager_image: "machine-controller-manager-aws:test".into(),
        machine_controller_manager_env: Vec::new(),
        seed,
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(run(PROVIDER_AWS.controllers.to_vec(), context));
    tasks
}

/// Creates the network and the machines. Returns the `providerStatus` of the Infrastructure.
async fn made(seed: &Client, region: &Region, machines: usize) -> Result<Value> {
    let infrastructure: Infrastructure = object("one", REGION, json!({"providerConfig": region.config()}))?;
    let api = of_shoot(seed);
    api.create(&PostParams::default(), &infrastructure).await?;
    succeeded(&api).await?;
    let made = api.get("one").await?;
    let status = made.default_status();
    let told = status.and_then(|status| status.provider_status.clone());
    let told = told.context("nothing is told of the network")?.0;
    let count = i32::try_from(machines)?;
    let pool = worker(REGION, &told, &region.zones(), [count, count])?;
    let api = of_shoot(seed);
    api.create(&PostParams::default(), &pool).await?;
    succeeded(&api).await?;
    Ok(told)
}

async fn in_zone(seed: &Client, zone: &str) -> Result<Vec<String>> {
    let of_zone = ListParams::default().labels(&format!("{}={zone}", labels::ZONE));
    let machines = of_shoot::<Machine>(seed).list(&of_zone).await?;
    Ok(machines.iter().map(ResourceExt::name_any).collect())
}

/// Pods on these Nodes. Returns how many.
async fn fill(shoot: &Client, nodes: &[String]) -> Result<usize> {
    let api: Api<Pod> = Api::default_namespaced(shoot.clone());
    let pods = nodes
        .iter()
        .flat_map(|node| (0..PODS).map(move |number| (node, number)));
    let made = pods.map(|(node, number)| {
        let api = api.clone();
        async move {
            let pod: Pod = of_kind(json!({
                "metadata": {"name": format!("{node}-{number}")},
                "spec": {
                    "nodeName": node, "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false,
                    "tolerations": [{"operator": "Exists"}], "containers": [{"name": "c", "image": "none"}],
                },
            }))?;
            api.create(&PostParams::default(), &pod).await?;
            anyhow::Ok(())
        }
    });
    let made: Vec<()> = stream::iter(made).buffer_unordered(AT_ONCE).try_collect().await?;
    Ok(made.len())
}

fn of_shoot<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(seed: &Client) -> Api<K> {
    Api::namespaced(seed.clone(), SHOOT)
}

/// The time at which the requested operation has succeeded.
async fn succeeded<K: ExtensionObject>(api: &Api<K>) -> Result<Instant> {
    let is_done = |object: Option<&K>| {
        object.is_some_and(|object| {
            let status = object.default_status();
            let last = status.and_then(|status| status.last_operation.as_ref());
            !object.annotations().contains_key(OPERATION)
                && status.and_then(|status| status.observed_generation) == object.meta().generation
                && last.is_some_and(|last| last.state == LastOperationState::Succeeded)
        })
    };
    let done = Box::pin(await_condition(api.clone(), "one", is_done));
    let done = testkit::timeout(WITHIN, done).await;
    done.with_context(|| format!("the {} does not succeed", K::kind(&())))??;
    Ok(Instant::now())
}

/// The time at which the last of these objects is gone.
async fn gone<K: Object>(api: Api<K>, of: Config) -> Result<Instant> {
    let all_gone = async {
        let (mut left, mut listed) = (BTreeSet::new(), false);
        let mut events = pin!(watcher(api, of));
        while let Some(event) = events.next().await {
            match event? {
                Event::Init => left.clear(),
                Event::InitDone => listed = true,
                Event::InitApply(object) | Event::Apply(object) => drop(left.insert(object.name_any())),
                Event::Delete(object) => drop(left.remove(&object.name_any())),
            }
            if listed && left.is_empty() {
                break;
            }
        }
        anyhow::Ok(Instant::now())
    };
    let gone = testkit::timeout(WITHIN, all_gone).await;
    gone.with_context(|| format!("objects of kind {} do not go", K::kind(&())))?
}
