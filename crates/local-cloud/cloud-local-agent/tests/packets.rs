//! Closed zones with real packets and a real API server: a host and the host's machines are network
//! namespaces. The test needs root.
#![allow(clippy::unwrap_used, clippy::panic)]

mod cloud;

use anyhow::{Context, Result, ensure};
use cloud::{ACCOUNT, Flow, SOON, TestEndpoint, account, agent, both_ways, machine};
use cloud_local::{Cloud, Isolation, isolation};
use cloud_local_agent::kernel::Kernel;
use kube::{
    Client,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;
use testkit::{ControlPlane, Namespace, eventually};

const WEB: &str = "shoot--dev--web";

/// A host with machines of two clusters in two zones, a pod on the machine that is about to be isolated, and
/// an outside client.
struct Scene {
    outside: TestEndpoint,
    sick: TestEndpoint,
    pod: TestEndpoint,
    well: TestEndpoint,
    other: TestEndpoint,
    host: Namespace,
}

impl Scene {
    fn new() -> Result<Self> {
        let host = cloud::host()?;
        let sick = TestEndpoint::new("sick", 11, &host)?;
        Ok(Self {
            outside: TestEndpoint::new("outside", 2, &host)?,
            pod: sick.pod(1, &host)?,
            sick,
            well: TestEndpoint::new("well", 12, &host)?,
            other: TestEndpoint::new("other", 13, &host)?,
            host,
        })
    }

    async fn machines(&self, client: &Client) -> Result<()> {
        machine(client, (WEB, "a"), "sick", &self.sick).await?;
        machine(client, (WEB, "b"), "well", &self.well).await?;
        machine(client, ("shoot--dev--other", "a"), "other", &self.other).await
    }

    /// Checks that all namespaces in the zone are cut off, or that all are connected.
    fn is_closed(&self, closed: bool) -> Result<()> {
        let (sick, outside) = (&self.sick, &self.outside);
        let gateway = "10.50.0.1".parse()?;
        for (who, one, with) in [
            ("the machine", sick.v4(), outside.v4()),
            ("the machine, version 6", sick.v6(), outside.v6()),
            ("a pod on it", self.pod.v4(), outside.v4()),
            ("the machine and another one", sick.v4(), self.well.v4()),
            ("the machine and its host", sick.v4(), (&self.host, gateway)),
        ] {
            let passed = both_ways(one, with).context(who)?;
            ensure!(passed != closed, "{who}: packets pass: {passed}");
        }
        Ok(())
    }

    /// Checks that all namespaces outside of the zone are connected.
    fn is_open_elsewhere(&self) -> Result<()> {
        for (who, place) in [("another zone", &self.well), ("another cluster", &self.other)] {
            let passed = both_ways(place.v4(), self.outside.v4()).context(who)?;
            ensure!(passed, "{who} is cut off, too");
        }
        Ok(())
    }
}

async fn host_is_known(account: &Cloud) -> Result<()> {
    let objects = account.objects();
    eventually("the host is in the list", SOON, || async {
        let hosts = objects.get(isolation::HOSTS).await?.data;
        let there = hosts.is_some_and(|hosts| hosts.contains_key(cloud::NODE));
        ensure!(there, "it is not");
        anyhow::Ok(())
    })
    .await
}

/// The zone's machine, a pod on the machine, and their established flows send and receive no packet, by IPv4
/// and IPv6. A second machine of the cluster, and the same zone of a second cluster, are not affected. After
/// the opening, all flows continue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_zone_exchanges_no_packet_and_nobody_else_notices() -> Result<()> {
    let scene = Scene::new()?;
    let mut server = ControlPlane::start("cloud").await?;
    let client = server.admin();
    let cloud = account(&client).await?;
    // The garbage collector removes pods whose Node does not exist.
    server.stop_controllers();
    scene.machines(&client).await?;
    let running = agent(&client, &scene.host)?;
    host_is_known(&cloud).await?;
    scene.is_closed(false).context("before")?;
    scene.is_open_elsewhere().context("before")?;
    let out = scene.outside.v4();
    let mut of_machine = Flow::open(&scene.sick.namespace, out)?;
    let mut to_machine = Flow::open(&scene.outside.namespace, scene.sick.v4())?;
    let mut of_pod = Flow::open(&scene.pod.namespace, out)?;
    let mut of_other = Flow::open(&scene.other.namespace, out)?;

    // The closing is confirmed only after the packets stop.
    let isolation = Isolation::new(cloud.clone(), WEB).waiting(SOON);
    isolation.close("a").await?;
    scene.is_closed(true).context("closed")?;
    scene.is_open_elsewhere().context("closed")?;
    of_machine.stands().context("from the machine")?;
    to_machine.stands().context("to the machine")?;
    of_pod.stands().context("from a pod")?;
    assert!(of_other.flows(SOON)?, "another cluster's flow");
    let found = isolation.find().await?;
    assert!(found.is_some_and(|closed| closed.confirmed && closed.zone == "a"));

    // Without an agent, and with a new agent, the zone stays closed.
    drop(running);
    scene.is_closed(true).context("without an agent")?;
    let _running = agent(&client, &scene.host)?;
    scene.is_closed(true).context("with another agent")?;

    let late = TestEndpoint::new("late", 14, &scene.host)?;
    machine(&client, (WEB, "a"), "late", &late).await?;
    eventually("a machine that comes later is cut off", SOON, || async {
        ensure!(!both_ways(late.v4(), scene.outside.v4())?, "it is not");
        anyhow::Ok(())
    })
    .await?;

    isolation.open().await?;
    scene.is_closed(false).context("opened")?;
    scene.is_open_elsewhere().context("opened")?;
    for flow in [&mut of_machine, &mut to_machine, &mut of_pod, &mut of_other] {
        assert!(flow.flows(SOON)?, "what was under way goes on");
    }
    assert_eq!(isolation.find().await?, None);
    Ok(())
}

/// Rules lost in a restart of the host are written again. A rule that the kernel cannot have is not
/// confirmed, and affects no further cluster. An invalid object changes nothing, and a deleted object orders
/// nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_kernel_has_what_is_confirmed() -> Result<()> {
    let host = cloud::host()?;
    let outside = TestEndpoint::new("outside", 2, &host)?;
    let sick = TestEndpoint::new("sick", 11, &host)?;
    let mut server = ControlPlane::start("cloud").await?;
    let client = server.admin();
    let cloud = account(&client).await?;
    // The garbage collector removes pods whose Node does not exist.
    server.stop_controllers();
    machine(&client, (WEB, "a"), "sick", &sick).await?;
    let running = agent(&client, &host)?;
    host_is_known(&cloud).await?;
    let objects = cloud.objects();
    let closing = || Isolation::new(cloud.clone(), WEB).waiting(SOON);
    let becomes = |closed: bool| {
        let (sick, outside) = (&sick, &outside);
        eventually("the zone is as wanted", SOON, move || async move {
            let passed = both_ways(sick.v4(), outside.v4())?;
            ensure!(passed != closed, "packets pass: {passed}");
            anyhow::Ok(())
        })
    };
    closing().close("a").await?;
    becomes(true).await?;

    // A kernel without any rule, as after a start.
    drop(running);
    host.within(|| Kernel::open(ACCOUNT))??.shut(&[].into()).await?;
    becomes(false).await?;
    let running = agent(&client, &host)?;
    becomes(true).await?;

    // A machine without a separate link.
    let shop = "shoot--dev--shop";
    let nowhere = TestEndpoint {
        namespace: Namespace::new("nowhere")?,
        address: "10.50.0.99".parse()?,
        address6: "fd50::99".parse()?,
    };
    machine(&client, (shop, "b"), "nowhere", &nowhere).await?;
    let patience = std::time::Duration::from_secs(5);
    let unclear = Isolation::new(cloud.clone(), shop).waiting(patience);
    let tried = eventually("it is known where it is not closed", SOON, || async {
        match unclear.close("b").await {
            Err(why) if !why.to_string().contains("zone b is not closed on host") => Err(why),
            tried => Ok(tried),
        }
    });
    assert!(tried.await?.is_err(), "it is confirmed");
    assert!(
        closing().find().await?.is_some_and(|closed| closed.confirmed),
        "another cluster's"
    );
    becomes(true).await?;

    // An object with invalid content.
    let name = isolation::name_of(WEB);
    let spoilt = Patch::Merge(json!({"data": {"wanted": "maybe"}}));
    objects.patch(&name, &PatchParams::default(), &spoilt).await?;
    drop(running);
    let _running = agent(&client, &host)?;
    becomes(true).await?;
    let other = isolation::name_of(shop);
    objects.delete(&other, &DeleteParams::default()).await?;
    becomes(true).await?;
    objects.delete(&name, &DeleteParams::default()).await?;
    becomes(false).await
}
