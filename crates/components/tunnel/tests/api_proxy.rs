//! Pods reach the API of their shoot by an IP address, through a proxy and the real edge of a seed. The same
//! holds after the name leads to a second seed.
#![allow(clippy::unwrap_used, clippy::panic)]

mod world;

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use rustls::pki_types::ServerName;
use tempfile::TempDir;
use testkit::{Authority, NameServer, Server, eventually, free_port};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_rustls::client::TlsStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tunnel::{
    agent::Way,
    api_proxy::{Numbers, Proxy, listen},
    limits::{CONNECTIONS_OF_ONE, LOOK_UPS},
};

use world::{
    LONG, echo,
    front::{Front, HOST, ZONE, add},
    get,
};

/// A shoot: the certificate authority and the DNS server.
struct Shoot {
    folder: TempDir,
    authority: Authority,
    names: NameServer,
}

impl Shoot {
    async fn new() -> Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Self {
            folder: tempfile::tempdir()?,
            authority: Authority::new("ca")?,
            names: NameServer::start(&[ZONE]).await?,
        })
    }

    /// A fake kube-apiserver in a seed: sends the number of the seed, then echoes.
    async fn api(&self, seed: u8) -> Result<(u16, JoinSet<()>)> {
        let acceptor = self.authority.server(&["127.0.0.1"])?.acceptor()?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut peers = JoinSet::new();
            while let Ok((peer, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                peers.spawn(async move {
                    let mut stream = acceptor.accept(peer).await?;
                    ensure!(stream.get_ref().1.server_name().is_none(), "a name was said");
                    stream.write_u8(seed).await?;
                    let (mut reader, mut writer) = tokio::io::split(stream);
                    tokio::io::copy(&mut reader, &mut writer).await?;
                    Ok(())
                });
            }
        });
        Ok((port, serving))
    }

    /// A pod's connection to the address of the Service; verifies the API's certificate. Also returns the
    /// first byte from the API.
    async fn connect(&self, proxy: u16) -> Result<(TlsStream<TcpStream>, u8)> {
        let stream = TcpStream::connect(("127.0.0.1", proxy)).await?;
        let connector = self.authority.connector()?;
        let mut stream = connector
            .connect(ServerName::try_from("127.0.0.1")?, stream)
            .await?;
        let seed = stream.read_u8().await?;
        Ok((stream, seed))
    }
}

async fn says_back(stream: &mut TlsStream<TcpStream>, words: &[u8]) -> Result<()> {
    stream.write_all(words).await?;
    let mut heard = vec![0; words.len()];
    testkit::timeout(LONG, stream.read_exact(&mut heard)).await??;
    ensure!(heard == words);
    Ok(())
}

/// A proxy in this process, under a name whose target the test sets.
struct Played {
    port: u16,
    leads_to: Arc<Mutex<u16>>,
    /// How often the name was looked up.
    looks: Arc<AtomicU32>,
    numbers: Numbers,
    _running: JoinSet<()>,
    _stop: DropGuard,
}

impl Played {
    fn start(host: &str, front: u16) -> Result<Self> {
        let (leads_to, looks) = (Arc::new(Mutex::new(front)), Arc::<AtomicU32>::default());
        let (looked, counted) = (Arc::clone(&leads_to), Arc::clone(&looks));
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let port = listener.local_addr()?.port();
        let numbers = Numbers::default();
        let proxy = Proxy {
            listener,
            way: Way {
                host: host.to_owned(),
                lookup: Arc::new(move || {
                    counted.fetch_add(1, Ordering::SeqCst);
                    let address = SocketAddr::from(([127, 0, 0, 1], *looked.lock().unwrap()));
                    Box::pin(async move { Ok(vec![address]) })
                }),
            },
            numbers: numbers.clone(),
        };
        let stop = CancellationToken::new();
        let mut running = JoinSet::new();
        running.spawn(proxy.run(stop.clone()));
        Ok(Self {
            port,
            leads_to,
            looks,
            numbers,
            _running: running,
            _stop: stop.drop_guard(),
        })
    }
}

/// Whether the peer has closed the connection, with or without an error.
async fn is_closed(stream: &mut TcpStream) -> Result<bool> {
    let mut rest = [0; 1];
    Ok(!matches!(
        testkit::timeout(LONG, stream.read(&mut rest)).await?,
        Ok(1..)
    ))
}

#[tokio::test]
async fn a_pod_that_says_no_name_reaches_the_api_of_its_shoot_and_no_other() -> Result<()> {
    let shoot = Shoot::new().await?;
    let (api, _api) = shoot.api(1).await?;
    let front = Front::start(shoot.folder.path(), &shoot.names, [api, free_port()?]).await?;
    let proxy = Played::start(HOST, front.proxies)?;

    // The edge does not know the shoot yet.
    assert!(shoot.connect(proxy.port).await.is_err());
    add(&shoot.names, "sni", HOST).await?;
    let connected = || shoot.connect(proxy.port);
    let (mut stream, seed) = eventually("the front knows the shoot", LONG, connected).await?;
    assert_eq!(seed, 1);
    says_back(&mut stream, &vec![7; 300_000]).await?;

    // A name without a shoot, and a connection without TLS.
    let stranger = Played::start("api.other.dev.internal.example.test", front.proxies)?;
    assert!(shoot.connect(stranger.port).await.is_err());
    let mut plain = TcpStream::connect(("127.0.0.1", proxy.port)).await?;
    plain
        .write_all(b"GET /version HTTP/1.1\r\nHost: kubernetes\r\n\r\n")
        .await?;
    assert!(is_closed(&mut plain).await?);
    // A client without a PROXY header and a silent client are both disconnected.
    let mut silent = TcpStream::connect(("127.0.0.1", proxy.port)).await?;
    let mut headless = TcpStream::connect(("127.0.0.1", front.proxies)).await?;
    assert!(is_closed(&mut silent).await? && is_closed(&mut headless).await?);
    // The timeout before the first bytes does not apply to an open connection: this connection stays silent
    // for longer than the rejected connections.
    sleep(Duration::from_secs(6)).await;
    says_back(&mut stream, b"after a silence").await?;

    // A close of the client closes the server's side.
    stream.shutdown().await?;
    let mut rest = Vec::new();
    // With or without a close message of TLS.
    let ended = testkit::timeout(LONG, stream.read_to_end(&mut rest)).await;
    ended.context("it is still open")?.ok();
    drop((plain, silent));
    let open = proxy.numbers.open.clone();
    eventually("no connection is left", LONG, || async {
        ensure!(open.get() == 0, "{} are open", open.get());
        Ok(())
    })
    .await?;
    eventually("the front has told who came", LONG, || async {
        let log = std::fs::read_to_string(front.haproxy.log())?;
        let line = log.lines().find(|line| line.contains("/kube-apiserver"));
        // The source of the connection stands before the source in the PROXY header.
        ensure!(
            line.context("no line")?.contains("127.0.0.1 for 127.0.0.1:"),
            "{log}"
        );
        anyhow::Ok(())
    })
    .await
}

/// The connections also leave a former seed that would keep the connections because the seed was cut off.
#[tokio::test]
async fn connections_go_where_the_name_leads_and_leave_where_it_led() -> Result<()> {
    let shoot = Shoot::new().await?;
    add(&shoot.names, "sni", HOST).await?;
    let ((a, _a), (b, _b)) = (shoot.api(1).await?, shoot.api(2).await?);
    let [source, destination] = [
        Front::start(shoot.folder.path(), &shoot.names, [a, free_port()?]).await?,
        Front::start(shoot.folder.path(), &shoot.names, [b, free_port()?]).await?,
    ];
    let proxy = Played::start(HOST, source.proxies)?;
    let connected = || shoot.connect(proxy.port);
    let (mut watch, seed) = eventually("the first seed", LONG, connected).await?;
    assert_eq!(seed, 1);

    let (moved, before) = (Instant::now(), proxy.looks.load(Ordering::SeqCst));
    *proxy.leads_to.lock().unwrap() = destination.proxies;
    let connected = || async {
        let (stream, seed) = shoot.connect(proxy.port).await?;
        ensure!(seed == 2, "it is still the former seed");
        Ok(stream)
    };
    let connected = eventually("new connections go to the new seed", LONG, connected);
    let left = async {
        let mut rest = Vec::new();
        let ended = testkit::timeout(LONG, watch.read_to_end(&mut rest)).await;
        ended.context("a watch still hangs on the former seed")?.ok();
        println!("a watch has left the former seed after {:?}", moved.elapsed());
        anyhow::Ok(proxy.looks.load(Ordering::SeqCst) - before)
    };
    let (mut new, looks) = tokio::try_join!(connected, left)?;
    assert!(looks <= LOOK_UPS + 1, "after {looks} looks");
    says_back(&mut new, b"here it goes on").await
}

#[tokio::test]
async fn one_pod_does_not_take_all_connections() -> Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    // An edge that accepts all connections.
    let (front, _front) = echo().await?;
    let proxy = Played::start(HOST, front)?;
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS_OF_ONE {
        held.push(TcpStream::connect(("127.0.0.1", proxy.port)).await?);
    }
    let mut one_more = TcpStream::connect(("127.0.0.1", proxy.port)).await?;
    assert!(is_closed(&mut one_more).await?);
    assert_eq!(proxy.numbers.refused.get(), 1);
    held.pop();
    let open = proxy.numbers.open.clone();
    let fewer = i64::try_from(CONNECTIONS_OF_ONE)? - 1;
    eventually("one is closed", LONG, || async {
        ensure!(open.get() == fewer, "{} are open", open.get());
        Ok(())
    })
    .await?;
    assert_eq!(proxy.numbers.failed.get(), 0);
    Ok(())
}

/// The processes as on a machine: in a network namespace. The test needs root.
#[tokio::test]
async fn a_machine_has_the_address_for_as_long_as_somebody_holds_it() -> Result<()> {
    const ADDRESS: &str = "240.0.0.1";
    ensure!(
        nix::unistd::geteuid().is_root(),
        "this test makes a network namespace: run it as root"
    );
    let folder = tempfile::tempdir()?;
    let machine = Machine::new()?;
    machine.ip("link set lo up")?;
    let health = free_port()?;
    let start = |name: &str, args: &[String]| {
        let inside = ["netns", "exec", &machine.0, env!("CARGO_BIN_EXE_tunnel")];
        let args = inside.into_iter().map(str::to_owned).chain(args.iter().cloned());
        Server::start(name, "ip", folder.path(), args, &[])
    };
    // The proxy listens before the address exists, and reports the missing address.
    let _proxy = start(
        "proxy",
        &[
            "api-proxy".to_owned(),
            format!("--address={ADDRESS}:10292"),
            "--front=localhost".to_owned(),
            format!("--health-address=127.0.0.1:{health}"),
        ],
    )?;
    let says = |words: &'static str| {
        let machine = &machine;
        async move {
            eventually(words, LONG, || async {
                let found = machine.get(health, "/readyz").await?;
                ensure!(found.contains(words), "{found}");
                Ok(())
            })
            .await
        }
    };
    says("this machine does not have the address 240.0.0.1").await?;
    let _holder = start(
        "holder",
        &["api-proxy-address".to_owned(), format!("--address={ADDRESS}")],
    )?;
    says("200 OK").await?;
    let shown = machine.ip("-4 addr show dev lo")?;
    assert!(shown.contains("inet 240.0.0.1/32 scope host lo"), "{shown}");
    machine.ip("addr del 240.0.0.1/32 dev lo")?;
    // The listener has survived the removal: a new connection is accepted.
    says("200 OK").await?;
    machine.knock(ADDRESS, 10292).await
}

/// A network namespace. Dropping the value deletes the namespace.
struct Machine(String);

impl Machine {
    fn new() -> Result<Self> {
        let made = Self(format!("api-proxy-{}", std::process::id()));
        ip(&["netns", "add", &made.0])?;
        Ok(made)
    }

    fn ip(&self, arguments: &str) -> Result<String> {
        let own = ["-n", &self.0];
        ip(&own.into_iter().chain(arguments.split(' ')).collect::<Vec<_>>())
    }

    /// Runs `work` in the namespace; its sockets stay in the namespace.
    async fn within<T, F>(&self, work: impl FnOnce() -> F + Send + 'static) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>>,
    {
        let file = std::fs::File::open(format!("/run/netns/{}", self.0))?;
        let thread = tokio::task::spawn_blocking(move || {
            // A separate thread, because the thread of the pool is used again outside the namespace.
            let thread = std::thread::spawn(move || {
                nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET)?;
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                runtime.block_on(work())
            });
            thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?
        });
        thread.await?
    }

    async fn get(&self, port: u16, path: &'static str) -> Result<String> {
        self.within(move || get(port, path)).await
    }

    async fn knock(&self, address: &'static str, port: u16) -> Result<()> {
        self.within(move || async move {
            testkit::timeout(LONG, TcpStream::connect((address, port))).await??;
            Ok(())
        })
        .await
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = ip(&["netns", "del", &self.0]);
    }
}

fn ip(arguments: &[&str]) -> Result<String> {
    let ran = std::process::Command::new(testkit::find_program("ip")?)
        .args(arguments)
        .output()?;
    ensure!(
        ran.status.success(),
        "ip {arguments:?}: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
    Ok(String::from_utf8(ran.stdout)?)
}
