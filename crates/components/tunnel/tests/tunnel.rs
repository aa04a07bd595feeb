//! Real servers and agents on loopback: transferred bytes, admission of peers, and the loss of a process.

mod world;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, future::try_join_all, stream};
use hyper_util::rt::{TokioExecutor, TokioIo};
use testkit::eventually;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tunnel::limits::{HANDSHAKE, WAIT_FOR_AGENT};

use world::{LONG, SERVER, World, ask, come, echo, get};

const MIB: usize = 1024 * 1024;

/// Each connection has separate bytes, a connection without a reader holds up no further connection, and
/// memory stays bounded.
#[tokio::test]
async fn a_hundred_connections_at_once() -> Result<()> {
    let world = World::start().await?;
    let (agent, _) = world.start_agent("agent", "127.0.0.1", world.agents)?;
    world.wait_for_agents(1).await?;
    let idle = [world.server()?.memory()?[1], agent.memory()?[1]];
    let (port, _echo) = echo().await?;
    let target = format!("127.0.0.1:{port}");

    let mut deaf = world.connect(&target).await?.map_err(anyhow::Error::msg)?;
    // Writes until the connection blocks, and never reads.
    let chunk = vec![7; 64 * 1024];
    let mut sent = 0;
    while timeout(Duration::from_secs(2), deaf.write_all(&chunk))
        .await
        .is_ok()
    {
        sent += chunk.len();
        ensure!(sent < 256 * MIB, "what nobody reads is kept somewhere");
    }

    // A few handshakes at a time: on a busy machine, a hundred concurrent handshakes would exceed the
    // timeout.
    let streams: Vec<_> = stream::iter(0..100)
        .map(|_| async { world.connect(&target).await?.map_err(anyhow::Error::msg) })
        .buffered(4)
        .try_collect()
        .await?;
    let through = try_join_all(streams.into_iter().zip(0u8..).map(|(stream, n)| {
        async move {
            let (mut reader, mut writer) = tokio::io::split(stream);
            let bytes = vec![n; 128 * 1024];
            let write = async {
                writer.write_all(&bytes).await?;
                // This direction is closed; the reverse direction continues.
                writer.shutdown().await
            };
            let mut heard = Vec::new();
            let (written, read) = tokio::join!(write, reader.read_to_end(&mut heard));
            written?;
            read?;
            ensure!(heard == bytes, "connection {n} heard {} bytes", heard.len());
            anyhow::Ok(())
        }
    }));
    testkit::timeout(LONG, through)
        .await
        .context("one holds up the others")??;
    // Only the connection without a reader is left.
    world.wait_for_number("repot_tunnel_streams", "1").await?;
    drop(deaf);
    world.wait_for_number("repot_tunnel_streams", "0").await?;

    let rates = [rate(TcpStream::connect(&target).await?).await?, {
        let stream = world.connect(&target).await?.map_err(anyhow::Error::msg)?;
        rate(stream).await?
    }];
    let busy = [world.server()?.memory()?[1], agent.memory()?[1]];
    println!(
        "MiB/s there and back: direct {:.0}, through {:.0}; KiB of server and agent: idle {idle:?}, after {busy:?}",
        rates[0], rates[1]
    );
    for (idle, busy) in idle.into_iter().zip(busy) {
        ensure!(busy < idle + 64 * 1024, "{idle} KiB have become {busy} KiB");
    }
    Ok(())
}

/// 64 MiB there and back, in MiB a second.
async fn rate(stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite) -> Result<f64> {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let begun = Instant::now();
    let write = async {
        let chunk = vec![1; MIB];
        for _ in 0..64 {
            writer.write_all(&chunk).await?;
        }
        writer.shutdown().await
    };
    let read = async {
        let (mut buffer, mut heard) = (vec![0; MIB], 0);
        while heard < 64 * MIB {
            match reader.read(&mut buffer).await? {
                0 => break,
                read => heard += read,
            }
        }
        std::io::Result::Ok(heard)
    };
    let (written, heard) = testkit::timeout(LONG, async { tokio::join!(write, read) }).await?;
    written?;
    ensure!(heard? == 64 * MIB, "bytes were lost");
    Ok(64.0 / begun.elapsed().as_secs_f64())
}

/// The agent on the target's node is asked first. An agent that ends takes the agent's connections along, and
/// the next agent is asked. Without an agent, the error arrives within the limit. Agents reconnect without
/// help.
#[tokio::test]
async fn agents_and_servers_come_and_go() -> Result<()> {
    let mut world = World::start().await?;
    let (port, _echo) = echo().await?;
    let target = format!("127.0.0.1:{port}");

    let begun = Instant::now();
    let refused = world.connect(&target).await?.err().context("there is no agent")?;
    ensure!(
        refused.contains("503 no agent of the shoot is connected"),
        "{refused}"
    );
    ensure!(
        begun.elapsed() >= WAIT_FOR_AGENT,
        "it waits for an agent to come back"
    );

    let (near, near_health) = world.start_agent("near", "127.0.0.1", world.agents)?;
    let (_far, far_health) = world.start_agent("far", "10.9.9.9", world.agents)?;
    world.wait_for_agents(2).await?;
    eventually("the agent is ready", LONG, || async {
        let answer = get(near_health, "/readyz").await?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        anyhow::Ok(())
    })
    .await?;
    let mut stream = world.connect(&target).await?.map_err(anyhow::Error::msg)?;
    stream.write_all(b"x").await?;
    ensure!(stream.read_u8().await? == b'x');
    ensure!(
        get(near_health, "/metrics")
            .await?
            .contains("repot_tunnel_streams 1"),
        "not the near one"
    );
    ensure!(
        get(far_health, "/metrics")
            .await?
            .contains("repot_tunnel_streams 0")
    );

    // The agent is killed during a connection. The API server notices immediately.
    drop(near);
    let ended = testkit::timeout(LONG, stream.read_u8()).await?;
    ensure!(ended.is_err(), "the connection goes on without its agent");
    world.wait_for_agents(1).await?;
    let mut stream = world.connect(&target).await?.map_err(anyhow::Error::msg)?;
    stream.write_all(b"y").await?;
    ensure!(stream.read_u8().await? == b'y');

    // The error names an unreachable target, and no further agent is asked.
    let nobody = format!("127.0.0.1:{}", testkit::free_port()?);
    let refused = world.connect(&nobody).await?.err().context("nobody is there")?;
    ensure!(
        refused.contains(&format!("502 {nobody} cannot be reached")),
        "{refused}"
    );
    let refused = world
        .connect("192.0.2.7:443")
        .await?
        .err()
        .context("it is refused")?;
    ensure!(
        refused.contains("403 192.0.2.7:443 is not reached through the tunnel"),
        "{refused}"
    );

    // The server stops, as during a move.
    world.stop_server();
    eventually("the agent is not ready", LONG, || async {
        let answer = get(far_health, "/readyz").await?;
        ensure!(answer.starts_with("HTTP/1.1 500"), "{answer}");
        Ok(())
    })
    .await?;
    world.start_server().await?;
    world.wait_for_agents(1).await?;
    world.connect(&target).await?.map_err(anyhow::Error::msg)?;
    Ok(())
}

/// Each listener admits a single name of a single authority.
#[tokio::test]
async fn who_is_let_in() -> Result<()> {
    let world = World::start().await?;
    let other = testkit::Authority::new("ca-vpn")?;
    world.identity("stranger", &other.user(world::CLIENT, &[])?)?;
    world.identity("somebody", &world.authority.user("system:somebody", &[])?)?;
    for name in ["stranger", "somebody", "agent", "server"] {
        let heard = match world.come(name, world.clients).await {
            Ok(mut stream) => testkit::timeout(LONG, ask(&mut stream, "127.0.0.1:1")).await?,
            Err(error) => Err(error),
        };
        ensure!(
            heard.is_err(),
            "{name} is let in at the API server's door: {heard:?}"
        );
    }
    // The key of kube-apiserver is invalid for an agent, and the key of an agent is invalid without the
    // protocol.
    for (name, protocol) in [("stranger", true), ("client", true), ("agent", false)] {
        let identity = world.files(name).read().map_err(anyhow::Error::msg)?;
        let connector = identity.connector(SERVER).map_err(anyhow::Error::msg)?;
        let heard = match come(connector, world.agents, protocol).await {
            Ok(mut stream) => testkit::timeout(LONG, stream.read_u8())
                .await?
                .map_err(Into::into),
            Err(error) => Err(error),
        };
        ensure!(heard.is_err(), "{name} is let in at the agents' door");
    }
    // A silent client is disconnected.
    let begun = Instant::now();
    let mut silent = TcpStream::connect(("127.0.0.1", world.agents)).await?;
    ensure!(
        testkit::timeout(LONG, silent.read(&mut [0]))
            .await?
            .map_or(true, |read| read == 0)
    );
    ensure!(begun.elapsed() >= HANDSHAKE / 2, "sent away at once");
    world.wait_for_agents(0).await
}

/// An agent that sends a request is disconnected: the tunnel has one direction.
#[tokio::test]
async fn an_agent_cannot_ask() -> Result<()> {
    let world = World::start().await?;
    let identity = world.files("agent").read().map_err(anyhow::Error::msg)?;
    let connector = identity.connector(SERVER).map_err(anyhow::Error::msg)?;
    let stream = come(connector, world.agents, true).await?;
    let (mut ask, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .handshake::<_, http_body_util::Empty<bytes::Bytes>>(TokioIo::new(stream))
        .await?;
    let request = http::Request::builder()
        .method("CONNECT")
        .uri("127.0.0.1:443")
        .body(http_body_util::Empty::new())?;
    let asked = async { ask.send_request(request).await };
    let (answer, ended) = testkit::timeout(LONG, async { tokio::join!(asked, connection) }).await?;
    ensure!(answer.is_err(), "an agent opened a connection in the seed");
    ensure!(ended.is_err(), "it is kept");
    world.wait_for_agents(0).await
}
