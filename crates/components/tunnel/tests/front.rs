//! The seed's edge is a real HAProxy with the chart's configuration. The edge leads an agent to the tunnel
//! and a user to the API by the same name.

mod world;

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use testkit::{NameServer, eventually, free_port};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tunnel::agent::{Agent, Numbers, Reach, Way};

use world::{
    LONG, SERVER, World, echo,
    front::{Front, HOST, ZONE, add},
    get,
};

/// Timeout for the arrival of a greeting; after the timeout, the client connects again.
const GREETED_WITHIN: Duration = Duration::from_secs(5);

#[tokio::test]
async fn one_name_leads_users_to_the_api_and_agents_to_the_tunnel() -> Result<()> {
    let world = World::start().await?;
    let names = NameServer::start(&[ZONE]).await?;
    // In place of kube-apiserver: a listener that reports the received byte.
    let api = TcpListener::bind("127.0.0.1:0").await?;
    let ports = [api.local_addr()?.port(), world.agents];
    let haproxy = Front::start(world.folder.path(), &names, ports).await?;
    let front = haproxy.users;
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

    // The names of the shoot do not exist yet, so the edge refuses both. Then the test adds the names.
    world.wait_for_agents(0).await?;
    for what in ["sni", "tunnel"] {
        add(&names, what, HOST).await?;
    }
    world.wait_for_agents(1).await?;
    let (port, _echo) = echo().await?;
    let mut stream = world
        .connect(&format!("127.0.0.1:{port}"))
        .await?
        .map_err(anyhow::Error::msg)?;
    stream.write_all(b"through the front").await?;
    let mut heard = [0; 17];
    testkit::timeout(LONG, stream.read_exact(&mut heard)).await??;
    ensure!(&heard == b"through the front");

    // A user of the API offers different protocols, or none, under the same name.
    for protocols in [vec![], vec![b"h2".to_vec(), b"http/1.1".to_vec()]] {
        let mut config = connector.config().as_ref().clone();
        config.alpn_protocols = protocols;
        let user = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
        let first = eventually("the API is reached", LONG, || async {
            let stream = tokio::net::TcpStream::connect(("127.0.0.1", front)).await?;
            let came = async {
                let (mut peer, _) = api.accept().await?;
                peer.read_u8().await
            };
            // The listener never answers the user: a handshake that ends means that the edge refused the
            // user.
            tokio::select! {
                first = timeout(GREETED_WITHIN, came) => anyhow::Ok(first??),
                refused = user.connect(HOST.try_into()?, stream) => bail!("{:?}", refused.map(drop)),
            }
        });
        // The first byte of a TLS ClientHello.
        ensure!(first.await? == 22);
    }
    world.wait_for_agents(1).await
}

/// The dashboard and docs/look-up/metrics.md name these series of HAProxy.
#[tokio::test]
async fn a_refused_connection_is_counted() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let names = NameServer::start(&[ZONE]).await?;
    let front = Front::start(folder.path(), &names, [free_port()?, free_port()?]).await?;
    let mut user = TcpStream::connect(("127.0.0.1", front.users)).await?;
    user.write_all(b"no greeting of TLS").await?;
    // The edge ends the connection, in order or not.
    let _ = testkit::timeout(LONG, user.read_to_end(&mut Vec::new())).await?;
    let metrics = get(front.health, "/metrics").await?;
    for series in [
        "haproxy_frontend_requests_denied_total{proxy=\"shoots\"} 1",
        "haproxy_frontend_requests_denied_total{proxy=\"api-proxies\"} 0",
        "haproxy_frontend_connections_total{proxy=\"shoots\"} 1",
        "haproxy_backend_connection_errors_total{proxy=\"shoot\"} 0",
        "haproxy_backend_connection_errors_total{proxy=\"shoot-tried\"} 0",
    ] {
        ensure!(metrics.contains(series), "{series} is not in\n{metrics}");
    }
    Ok(())
}
