//! Closed zones with real packets, and with a real API server: a host and its machines are network namespaces. It needs root.
#![allow(clippy::unwrap_used, clippy::panic)]

mod cloud;

use anyhow::{Context, Result, ensure};
use cloud::{ACCOUNT, Flow, Place, SOON, account, agent, both_ways, machine};
use cloud_local::{Isolation, isolation};
use cloud_local_agent::kernel::Kernel;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use testkit::{ControlPlane, Namespace, eventually};

const WEB: &str = "shoot--dev--web";

fn v6() -> impl FnOnce() -> std::io::Result<()> + Send {
    || std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1")
}

/// The zone's machine, a pod on it, and the established flow of each hear and say nothing, by either version; another machine
/// of the cluster, the same zone of another cluster and their flows do not notice. Opened, everything goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_zone_exchanges_no_packet_and_nobody_else_notices() -> Result<()> {
    let host = Namespace::new("host")?;
    host.within(v6())??;
    let outside = Place::new("outside", 2, &host)?;
    let (sick, well) = (Place::new("sick", 11, &host)?, Place::new("well", 12, &host)?);
    let other = Place::new("other", 13, &host)?;
    let pod = sick.pod(1, &host)?;
    let server = ControlPlane::start("cloud").await?;
    let client = server.admin();
    let cloud = account(&client).await?;
    machine(&client, (WEB, "a"), "sick", &sick).await?;
    machine(&client, (WEB, "b"), "well", &well).await?;
    machine(&client, ("shoot--dev--other", "a"), "other", &other).await?;
    let running = agent(&client, &host)?;
    eventually("the host is known", SOON, || async {
        let hosts = cloud.objects().get(isolation::HOSTS).await?;
        ensure!(hosts.data.is_some());
        anyhow::Ok(())
    })
    .await?;

    let own = |place: &Place| (place.address, place.address6);
    let ((out, out6), (ill, ill6)) = (own(&outside), own(&sick));
    let out = (&outside.namespace, out);
    let in_zone = |closed: bool| -> Result<()> {
        for (who, one, with) in [
            ("the machine", (&sick.namespace, ill), out),
            (
                "the machine, version 6",
                (&sick.namespace, ill6),
                (&outside.namespace, out6),
            ),
            ("a pod on it", (&pod.namespace, pod.address), out),
            (
                "the machine and another one",
                (&sick.namespace, ill),
                (&well.namespace, well.address),
            ),
            (
                "the machine and its host",
                (&sick.namespace, ill),
                (&host, "10.50.0.1".parse()?),
            ),
        ] {
            let passed = both_ways(one, with).context(who)?;
            ensure!(passed != closed, "{who}: packets pass: {passed}");
        }
        Ok(())
    };
    let elsewhere = || -> Result<()> {
        for (who, place) in [("another zone", &well), ("another cluster", &other)] {
            let passed = both_ways((&place.namespace, place.address), out).context(who)?;
            ensure!(passed, "{who} is cut off, too");
        }
        Ok(())
    };
    in_zone(false).context("before")?;
    elsewhere()?;
    let mut of_machine = Flow::open(&sick.namespace, out)?;
    let mut to_machine = Flow::open(&outside.namespace, (&sick.namespace, ill))?;
    let mut of_pod = Flow::open(&pod.namespace, out)?;
    let mut of_other = Flow::open(&other.namespace, out)?;

    // It is confirmed when it is so, not before.
    Isolation::new(cloud.clone(), WEB)
        .waiting(SOON)
        .close("a")
        .await?;
    in_zone(true).context("closed")?;
    elsewhere().context("closed")?;
    of_machine.stands().context("from the machine")?;
    to_machine.stands().context("to the machine")?;
    of_pod.stands().context("from a pod")?;
    assert!(of_other.flows(SOON)?, "another cluster's flow");
    let found = Isolation::new(cloud.clone(), WEB).find().await?;
    assert!(found.is_some_and(|closed| closed.confirmed && closed.zone == "a"));

    // Without an agent, and with one that is new, it stays closed.
    drop(running);
    in_zone(true).context("without an agent")?;
    let _running = agent(&client, &host)?;
    in_zone(true).context("with another agent")?;

    // A machine that comes later.
    let late = Place::new("late", 14, &host)?;
    machine(&client, (WEB, "a"), "late", &late).await?;
    eventually("a new machine is cut off", SOON, || async {
        let passed = both_ways((&late.namespace, late.address), out)?;
        ensure!(!passed, "it is not");
        anyhow::Ok(())
    })
    .await?;

    Isolation::new(cloud.clone(), WEB).waiting(SOON).open().await?;
    in_zone(false).context("opened")?;
    elsewhere().context("opened")?;
    for flow in [&mut of_machine, &mut to_machine, &mut of_pod, &mut of_other] {
        assert!(flow.flows(SOON)?, "what was under way goes on");
    }
    assert_eq!(Isolation::new(cloud.clone(), WEB).find().await?, None);
    Ok(())
}

/// What a host has lost when it was started anew is made again; what the kernel cannot have is not confirmed, and keeps nobody
/// else; an object that cannot be read changes nothing, and one that is gone wants nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_kernel_has_what_is_confirmed() -> Result<()> {
    let host = Namespace::new("host")?;
    host.within(v6())??;
    let outside = Place::new("outside", 2, &host)?;
    let sick = Place::new("sick", 11, &host)?;
    let server = ControlPlane::start("cloud").await?;
    let client = server.admin();
    let cloud = account(&client).await?;
    machine(&client, (WEB, "a"), "sick", &sick).await?;
    let running = agent(&client, &host)?;
    eventually("the host is known", SOON, || {
        cloud.objects().get(isolation::HOSTS)
    })
    .await?;
    let closing = || Isolation::new(cloud.clone(), WEB).waiting(SOON);
    let becomes = |closed: bool| {
        let (sick, outside) = (&sick, &outside);
        eventually("the zone is as wanted", SOON, move || async move {
            let one = (&sick.namespace, sick.address);
            let passed = both_ways(one, (&outside.namespace, outside.address))?;
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

    // A machine that cannot be told from others.
    let shop = "shoot--dev--shop";
    let nowhere = Place {
        namespace: Namespace::new("nowhere")?,
        address: "10.50.0.99".parse()?,
        address6: "fd50::99".parse()?,
    };
    machine(&client, (shop, "b"), "nowhere", &nowhere).await?;
    let patience = std::time::Duration::from_secs(5);
    let not_ready = Isolation::new(cloud.clone(), shop)
        .waiting(patience)
        .close("b")
        .await;
    let not_ready = not_ready.unwrap_err().to_string();
    assert!(not_ready.contains("zone b is not closed on host"), "{not_ready}");
    assert!(
        closing().find().await?.is_some_and(|closed| closed.confirmed),
        "another cluster's"
    );
    becomes(true).await?;

    // One that nobody can read.
    let (objects, name) = (cloud.objects(), isolation::name_of(WEB));
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
