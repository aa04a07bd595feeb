//! A real kube-apiserver with an EgressSelector for the tunnel, and a fake kubelet: container logs prove the
//! path.

mod world;

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use futures::{AsyncBufReadExt, AsyncReadExt as _};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client,
    api::{LogParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use testkit::ControlPlane;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use world::{LONG, World};

const MIB: usize = 1024 * 1024;
/// Bytes of the log of a container; the log of the second container never ends.
const LONG_LOG: usize = 64 * MIB;

#[tokio::test]
async fn an_api_server_reaches_kubelets_through_the_tunnel() -> Result<()> {
    let world = World::start().await?;
    let (kubelet, _kubelet) = kubelet(&world).await?;
    let plane = ControlPlane::start_with("egress", vec![egress(&world)?]).await?;
    let pods = pod_on_node(&plane.admin(), kubelet).await?;

    let refused = pods.logs("web", &container("endless", false)).await;
    let refused = refused.err().context("there is no agent")?.to_string();
    ensure!(
        refused.contains("no agent of the shoot is connected"),
        "{refused}"
    );

    let (agent, _) = world.start_agent("agent", "127.0.0.1", world.agents)?;
    world.wait_for_agents(1).await?;
    let idle = [world.server()?.memory()?[1], agent.memory()?[1]];
    let begun = Instant::now();
    let mut log = pods.log_stream("web", &container("long", false)).await?;
    let (mut buffer, mut heard) = (vec![0; 64 * 1024], 0);
    loop {
        match testkit::timeout(LONG, log.read(&mut buffer)).await?? {
            0 => break,
            read => {
                ensure!(
                    buffer[..read].iter().all(|byte| *byte == b'x'),
                    "other bytes than were said"
                );
                heard += read;
            }
        }
    }
    ensure!(heard == LONG_LOG, "{heard} bytes of {LONG_LOG}");
    let busy = [world.server()?.memory()?[1], agent.memory()?[1]];
    println!(
        "logs through API server and tunnel: {:.0} MiB/s; KiB of server and agent: idle {idle:?}, after {busy:?}",
        64.0 / begun.elapsed().as_secs_f64()
    );
    for (idle, busy) in idle.into_iter().zip(busy) {
        ensure!(busy < idle + 32 * 1024, "{idle} KiB have become {busy} KiB");
    }

    // The agent is lost during a stream of logs. The stream ends, and the next agent serves the next request.
    let mut lines = pods.log_stream("web", &container("endless", true)).await?.lines();
    let line = testkit::timeout(LONG, futures::StreamExt::next(&mut lines)).await?;
    ensure!(line.context("no line")?? == "line");
    drop(agent);
    testkit::timeout(LONG, async {
        while futures::StreamExt::next(&mut lines)
            .await
            .is_some_and(|line| line.is_ok())
        {}
    })
    .await
    .context("somebody listens to an agent that is gone")?;
    let (_other, _) = world.start_agent("other", "127.0.0.1", world.agents)?;
    world.wait_for_agents(1).await?;
    let mut lines = pods.log_stream("web", &container("endless", true)).await?.lines();
    let line = testkit::timeout(LONG, futures::StreamExt::next(&mut lines)).await?;
    ensure!(line.context("no line")?? == "line");
    Ok(())
}

fn container(name: &str, follow: bool) -> LogParams {
    LogParams {
        container: Some(name.to_owned()),
        follow,
        ..LogParams::default()
    }
}

/// The flag that makes an API server use this tunnel.
fn egress(world: &World) -> Result<String> {
    let files = world.files("client");
    let config = json!({
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": {
            "proxyProtocol": "HTTPConnect",
            "transport": {"tcp": {
                "url": format!("https://127.0.0.1:{}", world.clients),
                "tlsConfig": {"caBundle": files.ca, "clientCert": files.certificate, "clientKey": files.key},
            }},
        }}],
    });
    let file = world.path("egress.yaml");
    std::fs::write(&file, config.to_string())?;
    Ok(format!("--egress-selector-config-file={}", file.display()))
}

/// A pod with two containers on a node whose kubelet listens at this port.
async fn pod_on_node(client: &Client, kubelet: u16) -> Result<Api<Pod>> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node: Node = serde_json::from_value(json!({"metadata": {"name": "node"}}))?;
    nodes.create(&PostParams::default(), &node).await?;
    let status = json!({"status": {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet}},
    }});
    nodes
        .patch_status("node", &PatchParams::default(), &Patch::Merge(status))
        .await?;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let containers = ["long", "endless"].map(|name| json!({"name": name, "image": "none"}));
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "web"}, "spec": {"nodeName": "node", "containers": containers},
    }))?;
    pods.create(&PostParams::default(), &pod).await?;
    Ok(pods)
}

/// A fake kubelet that answers requests for logs. Dropping the returned tasks stops the kubelet.
async fn kubelet(world: &World) -> Result<(u16, JoinSet<()>)> {
    let acceptor = world.authority.server(&["127.0.0.1"])?.acceptor()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut peers = JoinSet::new();
        while let Ok((peer, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            peers.spawn(async move {
                let _ = answer(acceptor, peer).await;
            });
        }
    });
    Ok((port, tasks))
}

async fn answer(acceptor: TlsAcceptor, peer: tokio::net::TcpStream) -> Result<()> {
    let mut stream = acceptor.accept(peer).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(head)?;
    ensure!(head.starts_with("GET /containerLogs/default/web/"), "{head}");
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n")
        .await?;
    if head.starts_with("GET /containerLogs/default/web/long") {
        let chunk = vec![b'x'; MIB];
        for _ in 0..LONG_LOG / MIB {
            stream.write_all(&chunk).await?;
        }
        return Ok(stream.shutdown().await?);
    }
    loop {
        stream.write_all(b"line\n").await?;
        stream.flush().await?;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
