//! A tunnel of real processes on loopback, with a separate certificate authority.

#![allow(dead_code)] // each test file uses its own part of it

pub mod front;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use rustls::pki_types::ServerName;
use tempfile::TempDir;
use testkit::{Authority, Identity, Server, eventually, free_port};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tunnel::tls::Files;

/// Common names of the certificates.
pub const CLIENT: &str = "system:kube-apiserver:tunnel";
pub const AGENT: &str = "gardener.cloud:tunnel-agent";
/// The name in the server's certificate, in addition to the address.
pub const SERVER: &str = "tunnel.shoot--dev--web.svc";
/// Far longer than any step takes on an idle machine.
pub const LONG: Duration = Duration::from_secs(60);

pub struct World {
    pub folder: TempDir,
    pub authority: Authority,
    pub clients: u16,
    pub agents: u16,
    pub health: u16,
    server: Option<Server>,
}

impl World {
    pub async fn start() -> Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut world = Self {
            folder: tempfile::tempdir()?,
            authority: Authority::new("ca-vpn")?,
            clients: free_port()?,
            agents: free_port()?,
            health: free_port()?,
            server: None,
        };
        std::fs::write(world.path("ca.crt"), world.authority.certificate())?;
        let server = world.authority.server(&[SERVER, "127.0.0.1"])?;
        world.identity("server", &server)?;
        world.identity("client", &world.authority.user(CLIENT, &[])?)?;
        world.identity("agent", &world.authority.user(AGENT, &[])?)?;
        world.start_server().await?;
        Ok(world)
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// Writes a certificate and the key.
    pub fn identity(&self, name: &str, identity: &Identity) -> Result<Files> {
        identity.write(self.folder.path(), name)?;
        Ok(self.files(name))
    }

    pub fn files(&self, name: &str) -> Files {
        Files {
            ca: self.path("ca.crt"),
            certificate: self.path(&format!("{name}.crt")),
            key: self.path(&format!("{name}.key")),
        }
    }

    fn flags(&self, name: &str) -> Vec<String> {
        let files = self.files(name);
        vec![
            format!("--ca={}", files.ca.display()),
            format!("--certificate={}", files.certificate.display()),
            format!("--key={}", files.key.display()),
        ]
    }

    pub async fn start_server(&mut self) -> Result<()> {
        let mut args = vec!["server".to_owned()];
        args.extend(self.flags("server"));
        args.extend([
            format!("--client-name={CLIENT}"),
            format!("--agent-name={AGENT}"),
            format!("--client-address=127.0.0.1:{}", self.clients),
            format!("--agent-address=127.0.0.1:{}", self.agents),
            format!("--health-address=127.0.0.1:{}", self.health),
        ]);
        self.server = Some(Server::start(
            "server",
            env!("CARGO_BIN_EXE_tunnel"),
            self.folder.path(),
            args,
            &[("RUST_LOG", "debug,h2=info")],
        )?);
        let health = self.health;
        eventually("the server answers", LONG, || async {
            // An agent from before may be connected already.
            let text = get(health, "/metrics").await?;
            ensure!(text.contains("repot_tunnel_agents "), "{text}");
            Ok(())
        })
        .await
    }

    pub fn stop_server(&mut self) {
        self.server = None;
    }

    pub fn server(&self) -> Result<&Server> {
        self.server.as_ref().context("the server was stopped")
    }

    /// Starts an agent that connects to this port, and returns the port of the agent's health endpoints.
    pub fn start_agent(&self, name: &str, node: &str, port: u16) -> Result<(Server, u16)> {
        let health = free_port()?;
        let mut args = vec!["agent".to_owned()];
        args.extend(self.flags("agent"));
        args.extend([
            "--front=127.0.0.1".to_owned(),
            format!("--front-port={port}"),
            format!("--server-name={SERVER}"),
            format!("--node-address={node}"),
            // All targets are on loopback here.
            "--refuse=192.0.2.0/24".to_owned(),
            format!("--health-address=127.0.0.1:{health}"),
        ]);
        let program = env!("CARGO_BIN_EXE_tunnel");
        let agent = Server::start(name, program, self.folder.path(), args, &[])?;
        Ok((agent, health))
    }

    /// Waits until so many agents are connected.
    pub async fn wait_for_agents(&self, count: usize) -> Result<()> {
        self.wait_for_number("repot_tunnel_agents", &count.to_string())
            .await
    }

    pub async fn wait_for_number(&self, name: &str, value: &str) -> Result<()> {
        let line = format!("{name} {value}");
        let health = self.health;
        eventually(&line, LONG, || async {
            let text = get(health, "/metrics").await?;
            ensure!(text.lines().any(|found| found == line), "{text}");
            Ok(())
        })
        .await
    }

    /// A connection to the listener at `port`, with this certificate.
    pub async fn come(&self, name: &str, port: u16) -> Result<TlsStream<TcpStream>> {
        let identity = self.files(name).read().map_err(anyhow::Error::msg)?;
        come(
            identity.connector(SERVER).map_err(anyhow::Error::msg)?,
            port,
            false,
        )
        .await
    }

    /// A connection through the tunnel, requested like kube-apiserver does; or the status line. On a busy
    /// machine the handshake may exceed the listener's timeout, so the connection is tried again.
    pub async fn connect(&self, target: &str) -> Result<Result<TlsStream<TcpStream>, String>> {
        for _ in 0..2 {
            if let Ok(answer) = self.connect_once(target).await {
                return Ok(answer);
            }
        }
        self.connect_once(target).await
    }

    async fn connect_once(&self, target: &str) -> Result<Result<TlsStream<TcpStream>, String>> {
        let mut stream = self.come("client", self.clients).await?;
        let line = ask(&mut stream, target).await?;
        Ok(if line.starts_with("HTTP/1.1 200 ") {
            Ok(stream)
        } else {
            Err(line)
        })
    }
}

/// Connects to a listener with the certificate of this connector.
pub async fn come(connector: TlsConnector, port: u16, protocol: bool) -> Result<TlsStream<TcpStream>> {
    // kube-apiserver offers no protocol.
    let mut config = connector.config().as_ref().clone();
    if !protocol {
        config.alpn_protocols.clear();
    }
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let connector = TlsConnector::from(Arc::new(config));
    Ok(connector
        .connect(ServerName::try_from("127.0.0.1")?, stream)
        .await?)
}

/// Writes the request of kube-apiserver, and reads the head of the answer.
pub async fn ask(stream: &mut TlsStream<TcpStream>, target: &str) -> Result<String> {
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(head)?;
    Ok(head.lines().next().unwrap_or_default().to_owned())
}

/// The answer of a process over plain HTTP.
pub async fn get(port: u16, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

/// Echoes received bytes on a separate port. Dropping the returned tasks stops the echo.
pub async fn echo() -> Result<(u16, JoinSet<()>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut peers = JoinSet::new();
        while let Ok((mut peer, _)) = listener.accept().await {
            peers.spawn(async move {
                let (mut reader, mut writer) = peer.split();
                let _ = tokio::io::copy(&mut reader, &mut writer).await;
                let _ = writer.shutdown().await;
            });
        }
    });
    Ok((port, tasks))
}
