//! A shoot on AWS from its first machine to its last: EC2 is moto's, seeds and shoot are real API servers,
//! the controllers of machines are the real ones; Nodes are played. What happens to single calls is for the
//! tests of `cloud-aws`.
#![allow(clippy::unwrap_used, clippy::large_futures)]

mod bench;
mod cloud_controller_manager;
mod managers;
mod sick_ec2;
mod sick_zone;

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context as _, Result, ensure};
use api::{
    constants::{
        OPERATION,
        operation::{MIGRATE, RECONCILE, RESTORE, WAIT_FOR_STATE},
    },
    extensions::{DefaultStatus, ExtensionObject, Infrastructure, SubnetIsolation, Worker},
};
use aws_fixture::region::{Instances, Region, SHOOT, is_complete};
use extension::{
    Actuator, ExtensionReconciler, subnet_isolation::SubnetIsolationActuator, worker::WorkerActuator,
};
use extension_contract::machines::FakeMachines;
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, PostParams},
};
use provider_aws::{infrastructure::InfrastructureActuator, subnet_isolation::AwsZones, worker::AwsMachines};
use provider_aws_fixture::{TEST, build_access, equip, object, reconciler, seed};
use serde_json::{Value, json};
use testkit::{ControlPlane, Moto, PlayedKubelet, eventually, grant_chart};

/// Longer than any of these steps takes on a busy machine.
const SOON: Duration = Duration::from_secs(60);
/// As whom the provider acts.
const USER: &str = "provider-aws";
/// One that the Clusters of these seeds have pools in.
const REGION: &str = "eu-central-1";

/// Who looks after the shoot in a seed, with the rights that the chart gives. The test itself may do all.
struct Provider {
    admin: Client,
    infrastructure: Hand<Infrastructure, InfrastructureActuator>,
    worker: Hand<Worker, WorkerActuator<AwsMachines>>,
    zone: Hand<SubnetIsolation, SubnetIsolationActuator<AwsZones>>,
}

/// Objects of one kind, and who looks after them.
struct Hand<K: ExtensionObject, A: Actuator<K>> {
    by: ExtensionReconciler<K, A>,
    api: Api<K>,
}

impl Provider {
    async fn new(plane: &ControlPlane, region: &Region) -> Result<Self> {
        let admin = plane.admin();
        grant_chart(&admin, "provider-aws", USER).await?;
        let client = plane.client(USER, &[]).await?;
        // What was granted counts once the API server has seen it itself, a moment later.
        let workers: Api<Worker> = Api::namespaced(client.clone(), SHOOT);
        eventually("the provider is let in", SOON, || workers.get_opt("none")).await?;
        let machines = AwsMachines {
            manager_image: "machine-controller-manager-aws:test".into(),
            manager_environment: Vec::new(),
            place: build_access(region),
        };
        Ok(Self {
            infrastructure: Hand::new(&admin, &client, InfrastructureActuator(build_access(region))),
            worker: Hand::new(&admin, &client, WorkerActuator(machines)),
            zone: Hand::new(
                &admin,
                &client,
                SubnetIsolationActuator(AwsZones(build_access(region))),
            ),
            admin,
        })
    }
}

impl<K, A> Hand<K, A>
where
    K: ExtensionObject + Resource<Scope = NamespaceResourceScope>,
    A: Actuator<K>,
{
    fn new(admin: &Client, client: &Client, actuator: A) -> Self {
        Self {
            by: reconciler(client, actuator),
            api: Api::namespaced(admin.clone(), SHOOT),
        }
    }
}

/// A zone is cut off; the shoot is moved meanwhile, which the cloud does not notice; the zone is taken back
/// on the other seed, and no machine elsewhere has noticed either; the shoot goes, and nothing is left
/// (RZ-10..14, RZ-20..22, RZ-30..34, R7-03). Beside this, other shoots have a zone that hangs
/// ([`sick_zone`]).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zone_is_cut_off_moved_and_taken_back() -> Result<()> {
    let moto = Moto::start().await?;
    let region = Region::start(&moto, REGION).await?;
    let [a, b, shoot] = ControlPlane::start_all(["seed-a", "seed-b", "shoot"]).await?;
    let mut clients = Vec::new();
    for plane in [&a, &b] {
        let client = seed(plane).await?;
        equip(&client, REGION, b"for a process; here it is played".to_vec()).await?;
        clients.push(client);
    }
    let _pods: Vec<_> = clients.iter().map(PlayedKubelet::start).collect();
    let sick = sick_zone::is_closed_in_its_budget(&moto, &b);
    let moved = is_cut_off_moved_and_taken_back([&a, &b], &clients, shoot.admin(), &region);
    futures::try_join!(Box::pin(sick), Box::pin(moved)).map(drop)
}

async fn is_cut_off_moved_and_taken_back(
    [a, b]: [&ControlPlane; 2],
    clients: &[Client],
    shoot: Client,
    region: &Region,
) -> Result<()> {
    let endpoint = &region.proxy.endpoint;
    let _managers: Vec<_> = clients
        .iter()
        .map(|client| managers::manage(client, &shoot, endpoint, managers::quick()))
        .collect();
    let _nodes: Vec<_> = clients
        .iter()
        .map(|client| managers::play_nodes(client, &shoot))
        .collect();
    let [from, to] = [Provider::new(a, region).await?, Provider::new(b, region).await?];

    let (mut objects, machines) = Box::pin(made(&from, region)).await?;
    let open = region.acls(&objects.vpc).await?;
    let left = Box::pin(cut_off(&from, region, &objects, &machines)).await?;
    let closed = region.acls(&objects.vpc).await?;
    ensure!(closed != open, "the zone is open");

    let calls = region.proxy.calls().len();
    Box::pin(moved(&from, &to, &mut objects)).await?;
    let writes = region.proxy.writes_since(calls);
    ensure!(writes.is_empty(), "a move asks the cloud for {writes:?}");
    ensure!(region.instances().await? == left, "a move changes machines");
    ensure!(
        region.acls(&objects.vpc).await? == closed,
        "a move opens the zone"
    );

    deleted(&to.zone, &objects.zone).await?;
    let opened = region.acls(&objects.vpc).await?;
    ensure!(opened == open, "the zone has not what it had: {opened:#?}");
    isolate(&to.worker, &objects.worker, Value::Null).await?;
    region.first_zone_is_back(&left, &region.instances().await?)?;
    Box::pin(gone(&to, region, &objects)).await
}

#[ignore = "a measurement of some minutes: make bench"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zone_of_many_machines_is_closed() -> Result<()> {
    let machines = testkit::size("REPOT_ZONE_MACHINES", 10)?;
    Box::pin(bench::measure(machines)).await
}

/// The objects of the shoot, and the network that was made for it.
struct Objects {
    infrastructure: Infrastructure,
    worker: Worker,
    zone: SubnetIsolation,
    vpc: String,
}

/// A network, and a machine in each of two zones.
async fn made(by: &Provider, region: &Region) -> Result<(Objects, Instances)> {
    let infrastructure: Infrastructure = object("one", REGION, json!({"providerConfig": region.config()}))?;
    let told = created(&by.infrastructure, &infrastructure).await?;
    let worker = provider_aws_fixture::worker(REGION, &told, &region.zones(), [2, 4])?;
    created(&by.worker, &worker).await?;
    let machines = region.instances().await?;
    let zones: BTreeSet<_> = machines.values().collect();
    ensure!(machines.len() == 2 && zones.len() == 2, "{machines:?}");
    let text = |pointer| told.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let id = text("/zones/0/id").context("no id of a zone")?;
    let vpc = text("/vpc/id").context("no VPC")?;
    let isolation = json!({"isolatedZoneID": id, "infrastructureProviderStatus": told});
    let objects = Objects {
        infrastructure,
        worker,
        zone: object("one", REGION, isolation)?,
        vpc,
    };
    Ok((objects, machines))
}

/// The first zone is left and closed. Returns the machines that are left.
async fn cut_off(by: &Provider, region: &Region, objects: &Objects, before: &Instances) -> Result<Instances> {
    isolate(
        &by.worker,
        &objects.worker,
        json!(objects.zone.spec.isolated_zone_id),
    )
    .await?;
    created(&by.zone, &objects.zone).await?;
    let left = region.instances().await?;
    region.first_zone_is_left(before, &left)?;
    Ok(left)
}

/// One seed lets go of the shoot, the other one takes it up.
async fn moved(from: &Provider, to: &Provider, objects: &mut Objects) -> Result<()> {
    let played = FakeMachines::new(SHOOT);
    let of_zone = migrated(&from.zone, &objects.zone).await?;
    migrated(&from.worker, &objects.worker).await?;
    let of_infrastructure = migrated(&from.infrastructure, &objects.infrastructure).await?;
    let manager = played.manager_in(&from.admin).await?;
    ensure!(manager == Value::Null, "two managers could act");
    let machines = played.collect_and_forget(&from.admin, 2).await?;

    restored(&to.infrastructure, &objects.infrastructure, of_infrastructure).await?;
    objects.worker.spec.isolated_zone_id = Some(objects.zone.spec.isolated_zone_id.clone());
    restored(&to.worker, &objects.worker, machines).await?;
    restored(&to.zone, &objects.zone, of_zone).await
}

async fn gone(by: &Provider, region: &Region, objects: &Objects) -> Result<()> {
    deleted(&by.worker, &objects.worker).await?;
    ensure!(region.instances().await?.is_empty(), "machines are left");
    is_complete(&region.list_parts().await?)?;
    deleted(&by.infrastructure, &objects.infrastructure).await?;
    let found = region.list_parts().await?;
    ensure!(found.vpcs.is_empty() && found.addresses.is_empty(), "{found:#?}");
    Ok(())
}

async fn isolate<A: Actuator<Worker>>(by: &Hand<Worker, A>, worker: &Worker, id: Value) -> Result<()> {
    TEST.merge(&by.api, "one", &json!({"spec": {"isolatedZoneID": id}}))
        .await?;
    asked(by, worker, RECONCILE).await
}

/// Makes the object, and gives what its provider says of it.
async fn created<K: ExtensionObject, A: Actuator<K>>(by: &Hand<K, A>, object: &K) -> Result<Value> {
    by.api.create(&PostParams::default(), object).await?;
    done(by, object).await?;
    Ok(status(by).await?.provider_status.unwrap_or_default().0)
}

/// Lets go of the object, and gives what is carried of it.
async fn migrated<K: ExtensionObject, A: Actuator<K>>(by: &Hand<K, A>, object: &K) -> Result<Value> {
    asked(by, object, MIGRATE).await?;
    let left = status(by).await?;
    by.api.delete("one", &DeleteParams::default()).await?;
    Ok(left.state.unwrap_or_default().0)
}

async fn status<K: ExtensionObject, A: Actuator<K>>(by: &Hand<K, A>) -> Result<DefaultStatus> {
    let object = by.api.get("one").await?;
    Ok(object.default_status().cloned().unwrap_or_default())
}

async fn restored<K: ExtensionObject, A: Actuator<K>>(
    by: &Hand<K, A>,
    object: &K,
    state: Value,
) -> Result<()> {
    let mut object = object.clone();
    let waits = (OPERATION.to_owned(), WAIT_FOR_STATE.to_owned());
    object.annotations_mut().extend([waits]);
    let api = &by.api;
    api.create(&PostParams::default(), &object).await?;
    TEST.merge_status(api, "one", &json!({"state": state})).await?;
    asked(by, &object, RESTORE).await
}

async fn deleted<K: ExtensionObject, A: Actuator<K>>(by: &Hand<K, A>, object: &K) -> Result<()> {
    let api = &by.api;
    api.delete("one", &DeleteParams::default()).await?;
    done(by, object).await?;
    ensure!(api.get_opt("one").await?.is_none(), "a {} is left", K::kind(&()));
    Ok(())
}

async fn asked<K: ExtensionObject, A: Actuator<K>>(
    by: &Hand<K, A>,
    object: &K,
    operation: &str,
) -> Result<()> {
    TEST.annotate(&by.api, "one", OPERATION, Some(operation)).await?;
    done(by, object).await
}

/// Runs the operation until it has succeeded, as the controller does.
async fn done<K: ExtensionObject, A: Actuator<K>>(by: &Hand<K, A>, object: &K) -> Result<()> {
    let what = format!("the {} is done", K::kind(&()));
    eventually(&what, SOON, || async {
        Box::pin(by.by.run(object)).await.map(drop)
    })
    .await
}
