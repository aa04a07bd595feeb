//! The seed's own front, a real HAProxy with the chart's configuration, leads an agent to the tunnel and a user to the API by one
//! name.

mod world;

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use testkit::{NameServer, Server, eventually, free_port};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    process::Command,
    time::timeout,
};
use tunnel::agent::{Agent, Numbers, Reach, Way};

use world::{LONG, SERVER, World, echo};

const HOST: &str = "api.web.dev.internal.example.test";
const ZONE: &str = "garden-exposure.svc.cluster.local";

#[tokio::test]
async fn one_name_leads_users_to_the_api_and_agents_to_the_tunnel() -> Result<()> {
    let world = World::start().await?;
    let names = NameServer::start(&[ZONE]).await?;
    // Instead of kube-apiserver somebody who says what came.
    let api = TcpListener::bind("127.0.0.1:0").await?;
    let (front, _haproxy) = haproxy(&world, &names, api.local_addr()?.port()).await?;
    let connector = world.files("agent").read().map_err(anyhow::Error::msg)?;
    let connector = connector.connector(SERVER).map_err(anyhow::Error::msg)?;
    let numbers = Numbers::default();
    let agent = Agent {
        way: Way {
            host: HOST.to_owned(),
            lookup: std::sync::Arc::new(move || {
                let address = ([127, 0, 0, 1], front).into();
                Box::pin(async move { Ok(vec![address]) })
            }),
        },
        connector: connector.clone(),
        reach: Reach { refused: Vec::new() },
        node: None,
        numbers,
    };
    let stop = tokio_util::sync::CancellationToken::new();
    let _stop = stop.clone().drop_guard();
    let mut running = tokio::task::JoinSet::new();
    running.spawn(agent.run(stop));

    // The shoot is not there yet: the front refuses both. Then its names come.
    world.wait_for_agents(0).await?;
    for what in ["sni", "tunnel"] {
        add(&names, &format!("{what}-{}.{ZONE}", sha1(HOST))).await?;
    }
    world.wait_for_agents(1).await?;
    let (port, _echo) = echo().await?;
    let mut stream = world
        .connect(&format!("127.0.0.1:{port}"))
        .await?
        .map_err(anyhow::Error::msg)?;
    stream.write_all(b"through the front").await?;
    let mut heard = [0; 17];
    timeout(LONG, stream.read_exact(&mut heard)).await??;
    ensure!(&heard == b"through the front");

    // A user of the API offers other protocols, or none, under the same name.
    for protocols in [vec![], vec![b"h2".to_vec(), b"http/1.1".to_vec()]] {
        let mut config = connector.config().as_ref().clone();
        config.alpn_protocols = protocols;
        let user = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", front)).await?;
        let mut came = tokio::task::JoinSet::new();
        came.spawn(async move {
            user.connect(HOST.try_into()?, stream)
                .await
                .map(drop)
                .map_err(anyhow::Error::from)
        });
        let (mut peer, _) = timeout(LONG, api.accept())
            .await
            .context("the API is not reached")??;
        // The first byte of a client's greeting.
        ensure!(timeout(LONG, peer.read_u8()).await?? == 22);
    }
    world.wait_for_agents(1).await
}

/// The chart's configuration with the ports of this test.
async fn haproxy(world: &World, names: &NameServer, api: u16) -> Result<(u16, Server)> {
    let (front, health) = (free_port()?, free_port()?);
    let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/seed/files/haproxy.cfg");
    let mut config = std::fs::read_to_string(chart)?;
    for (from, to) in [
        ("MAX_CONNECTIONS", "100".to_owned()),
        ("EXPOSURE_NAMESPACE", "garden-exposure".to_owned()),
        ("CLUSTER_DOMAIN", "cluster.local".to_owned()),
        ("parse-resolv-conf", format!("nameserver test {}", names.address)),
        ("bind :8443", format!("bind 127.0.0.1:{front}")),
        ("bind :8080", format!("bind 127.0.0.1:{health}")),
        ("0.0.0.0:443", format!("0.0.0.0:{api}")),
        ("0.0.0.0:8133", format!("0.0.0.0:{}", world.agents)),
    ] {
        ensure!(
            config.contains(from),
            "{from} is not in the chart's configuration any more"
        );
        config = config.replace(from, &to);
    }
    let file = world.path("haproxy.cfg");
    std::fs::write(&file, config)?;
    let args = ["-db".to_owned(), "-f".to_owned(), file.display().to_string()];
    let mut haproxy = Server::start("haproxy", "haproxy", world.folder.path(), args, &[])?;
    eventually("the front is ready", LONG, || {
        let alive = haproxy.check_alive();
        async move {
            alive?;
            let answer = world::get(health, "/healthz").await?;
            ensure!(answer.contains(" 200 "), "{answer}");
            Ok::<_, anyhow::Error>(())
        }
    })
    .await?;
    Ok((front, haproxy))
}

/// Makes a name lead to this machine.
async fn add(names: &NameServer, name: &str) -> Result<()> {
    let (host, port) = names.address.split_once(':').context("no port")?;
    let key = format!(
        "{}:{}:{}",
        names.tsig_algorithm, names.tsig_key_name, names.tsig_secret
    );
    let mut update = Command::new(testkit::find_program("knsupdate")?)
        .args(["-y", &key])
        .stdin(Stdio::piped())
        .spawn()?;
    let words = format!("server {host} {port}\nzone {ZONE}.\nadd {name}. 1 A 127.0.0.1\nsend\n");
    let mut input = update.stdin.take().context("no input")?;
    input.write_all(words.as_bytes()).await?;
    drop(input);
    ensure!(
        timeout(LONG, update.wait()).await??.success(),
        "{name} was not added"
    );
    Ok(())
}

fn sha1(text: &str) -> String {
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
    let bytes = digest.as_ref().iter();
    bytes.fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}
