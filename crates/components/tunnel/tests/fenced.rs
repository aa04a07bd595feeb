//! A seed's edge, a real HAProxy with the chart's configuration, ends the connections of a shoot whose
//! kube-apiserver has lost etcd.

mod world;

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, Config, api::WatchParams, config::KubeConfigOptions};
use rustls::pki_types::ServerName;
use testkit::{Authority, ControlPlane, NameServer, eventually, free_port};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_rustls::{client::TlsStream, server};

use world::{
    LONG,
    front::{BOUND, Front, HOST, LOOKUP, ZONE, add},
};

/// From the loss of etcd to the end of each connection (docs/understand/decisions/0038).
const ENDED_WITHIN: Duration = Duration::from_secs(30);
/// Failed checks in a row that end connections, as in fence.lua.
const FAILURES: u32 = 4;
/// A name that the certificate of kube-apiserver has.
const API_NAME: &str = "kubernetes.default.svc";

/// On a seed without these checks the watch continues: kube-apiserver answers from caches until the kubelet
/// ends the process.
#[tokio::test]
async fn a_watch_ends_when_kube_apiserver_has_lost_etcd() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let names = NameServer::start(&[ZONE]).await?;
    let mut plane = ControlPlane::start("fenced").await?;
    plane.stop_controllers();
    let port = plane.url().rsplit(':').next().context("no port")?.parse()?;
    let front = Front::start(folder.path(), &names, [port, free_port()?]).await?;
    add(&names, "sni", API_NAME).await?;
    let mut through = plane.kubeconfig("user", &["system:masters"])?;
    let cluster = through
        .clusters
        .first_mut()
        .and_then(|named| named.cluster.as_mut());
    let cluster = cluster.context("no cluster")?;
    cluster.server = Some(format!("https://127.0.0.1:{}", front.users));
    cluster.tls_server_name = Some(API_NAME.to_owned());
    let through = Config::from_custom_kubeconfig(through, &KubeConfigOptions::default()).await?;
    let through = Client::try_from(through)?;

    eventually("the API is reached", LONG, || through.apiserver_version()).await?;
    let (mut watches, mut directly) = (JoinSet::new(), JoinSet::new());
    for (tasks, client) in [(&mut watches, through.clone()), (&mut directly, plane.admin())] {
        let (first, begun) = oneshot::channel();
        tasks.spawn(watch(client, first));
        testkit::timeout(LONG, begun)
            .await
            .context("the watch has no event")??;
    }

    let lost = Instant::now();
    plane.stop_etcd();
    testkit::timeout(ENDED_WITHIN, watches.join_next())
        .await
        .with_context(|| format!("the watch goes on {ENDED_WITHIN:?} after etcd was lost"))?;
    println!(
        "the watch has ended {:.1} s after etcd was lost",
        lost.elapsed().as_secs_f64()
    );
    ensure!(
        directly.try_join_next().is_none(),
        "kube-apiserver has ended the watch itself"
    );
    plane.admin().apiserver_version().await?;
    let refused = through.apiserver_version().await;
    ensure!(refused.is_err(), "the edge takes new connections: {refused:?}");
    Ok(())
}

/// Reports the first event, and returns when the connection ends.
async fn watch(client: Client, first: oneshot::Sender<()>) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(client);
    let events = namespaces
        .watch(&WatchParams::default().timeout(290), "0")
        .await?;
    let mut events = pin!(events);
    events.try_next().await?;
    first.send(()).ok();
    while events.try_next().await?.is_some() {}
    Ok(())
}

/// The node refuses connections as soon as kube-apiserver is not ready, and connections from before go on.
#[tokio::test]
async fn connections_end_where_the_node_refuses_checks_since_kube_apiserver_is_not_ready() -> Result<()> {
    let mut shoot = Shoot::start().await?;
    let mut user = shoot.user().await?;
    shoot.api.wait_for_checks(1).await?;
    // From here on, only open connections reach kube-apiserver.
    shoot.api.listening.abort_all();
    shoot.api.answer(WITHOUT_ETCD);
    testkit::timeout(ENDED_WITHIN, user.read(&mut [0]))
        .await
        .context("the connection goes on")?
        .ok();
    Ok(())
}

#[tokio::test]
async fn new_connections_pass_as_soon_as_kube_apiserver_has_etcd_again() -> Result<()> {
    let shoot = Shoot::start().await?;
    let mut user = shoot.user().await?;
    shoot.api.answer(WITHOUT_ETCD);
    testkit::timeout(ENDED_WITHIN, user.read(&mut [0]))
        .await
        .context("the connection goes on")?
        .ok();
    ensure!(shoot.user().await.is_err(), "the edge takes new connections");
    shoot.api.answer(HEALTHY);
    shoot.api.wait_for_checks(1).await?;
    eventually("the edge takes new connections", Duration::from_secs(3), || {
        shoot.user()
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_failure_of_etcd_that_is_shorter_than_a_permit_ends_no_connection() -> Result<()> {
    let shoot = Shoot::start().await?;
    let user = shoot.user().await?;
    // A success in between resets the count.
    for failures in [FAILURES - 1, 1] {
        shoot.api.answer(WITHOUT_ETCD);
        shoot.api.wait_for_checks(failures).await?;
        shoot.api.answer(HEALTHY);
        shoot.api.wait_for_checks(1).await?;
    }
    goes_on(user).await
}

/// No answer is no report of a lost etcd.
#[tokio::test]
async fn a_slow_kube_apiserver_keeps_its_connections() -> Result<()> {
    let shoot = Shoot::start().await?;
    let user = shoot.user().await?;
    for (answer, checks) in [(LATE, FAILURES / 2), (CLOSED, FAILURES / 2), (HEALTHY, 1)] {
        shoot.api.answer(answer);
        shoot.api.wait_for_checks(checks).await?;
    }
    goes_on(user).await
}

/// Such a kube-apiserver takes neither the memory nor the checks of further shoots.
#[tokio::test]
async fn an_answer_without_end_is_given_up_and_holds_up_no_other_shoot() -> Result<()> {
    let shoot = Shoot::start_with("set-var(txn.address) src").await?;
    let endless = shoot.user_from(ENDLESS).await?;
    let mut other = shoot.user_from("127.0.4.1").await?;
    shoot.api.wait_for_checks(1).await?;
    let (haproxy, given_up) = (&shoot.front.haproxy, &shoot.api.given_up);
    let (before, checks, begun) = (haproxy.memory()?, shoot.api.checks.load(SeqCst), Instant::now());
    eventually("HAProxy gives up", 2 * LONG, || async {
        let ended = given_up.load(SeqCst);
        ensure!(ended >= 3, "HAProxy has given up {ended} answers");
        Ok(())
    })
    .await?;
    let seconds = begun.elapsed().as_secs_f64();
    let checked = f64::from(shoot.api.checks.load(SeqCst) - checks);
    ensure!(
        checked >= seconds / 8.0 - 1.0,
        "{checked} checks in {seconds:.1} s"
    );
    let after = haproxy.memory()?;
    ensure!(
        after[0] < before[0] + 8 * 1024,
        "{before:?} KiB have become {after:?}"
    );
    shoot.api.answer(WITHOUT_ETCD);
    testkit::timeout(ENDED_WITHIN, other.read(&mut [0]))
        .await
        .context("the connection of the other shoot goes on")?
        .ok();
    goes_on(endless).await
}

#[tokio::test]
async fn connections_end_also_where_users_have_all_connections_of_the_edge() -> Result<()> {
    let shoot = Shoot::start().await?;
    let mut users = Vec::new();
    for number in 0..BOUND {
        users.push(shoot.user().await.with_context(|| format!("user {number}"))?);
    }
    ensure!(
        timeout(Duration::from_secs(2), shoot.user()).await.is_err(),
        "the edge takes one more user than its bound"
    );
    shoot.api.answer(WITHOUT_ETCD);
    let lost = Instant::now();
    for user in &mut users {
        timeout_at(lost + ENDED_WITHIN, user.read(&mut [0]))
            .await
            .context("a connection goes on")?
            .ok();
    }
    Ok(())
}

async fn goes_on(mut user: TlsStream<TcpStream>) -> Result<()> {
    user.write_all(b"still there\r\n").await?;
    let mut echoed = [0; 13];
    testkit::timeout(LONG, user.read_exact(&mut echoed)).await??;
    Ok(())
}

/// Number of shoots in a seed, as in docs/understand/bench.md:
/// `cargo test -p tunnel --test fenced -- --nocapture cost`.
const SHOOTS: u8 = 250;
const MEASURED_FOR: Duration = Duration::from_secs(20);

#[tokio::test]
async fn checks_of_all_shoots_of_a_seed_cost_the_edge_little() -> Result<()> {
    let shoot = Shoot::start_with("set-var(txn.address) src").await?;
    let mut users = Vec::new();
    for last in 1..=SHOOTS {
        let address = format!("127.0.4.{last}");
        users.push(shoot.user_from(&address).await.with_context(|| address)?);
    }
    // Each shoot has been checked at least once, and the connection for the checks is open.
    shoot.api.wait_for_checks(3 * u32::from(SHOOTS)).await?;
    let haproxy = &shoot.front.haproxy;
    let (files, before, checks) = (
        haproxy.open_files()?,
        haproxy.cpu()?,
        shoot.api.checks.load(SeqCst),
    );
    sleep(MEASURED_FOR).await;
    let busy = haproxy.cpu()?.saturating_sub(before).as_secs_f64() / MEASURED_FOR.as_secs_f64();
    let rate = f64::from(shoot.api.checks.load(SeqCst) - checks) / MEASURED_FOR.as_secs_f64();
    println!(
        "{SHOOTS} shoots: {rate:.0} checks a second, {:.1} % of a processor",
        100.0 * busy
    );
    // Every 5 to 6 s, or later on a busy machine.
    ensure!(rate > f64::from(SHOOTS) / 10.0, "{rate} checks a second");
    ensure!(rate <= f64::from(SHOOTS) / 5.0 + 1.0, "{rate} checks a second");
    ensure!(busy < 0.1, "{:.1} % of a processor", 100.0 * busy);
    ensure!(
        haproxy.open_files()? < files + 20,
        "{files} open files have become {}",
        haproxy.open_files()?
    );
    Ok(())
}

/// A shoot with a fake kube-apiserver behind an edge.
struct Shoot {
    authority: Authority,
    front: Front,
    api: FakeApi,
    _names: NameServer,
    _folder: tempfile::TempDir,
}

impl Shoot {
    async fn start() -> Result<Self> {
        Self::start_with(LOOKUP).await
    }

    async fn start_with(lookup: &str) -> Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir()?;
        let names = NameServer::start(&[ZONE]).await?;
        let authority = Authority::new("ca")?;
        let api = FakeApi::start(&authority).await?;
        let ports = [api.port, free_port()?];
        let front = Front::start_with(folder.path(), &names, ports, lookup).await?;
        add(&names, "sni", HOST).await?;
        Ok(Self {
            authority,
            front,
            api,
            _names: names,
            _folder: folder,
        })
    }

    async fn user(&self) -> Result<TlsStream<TcpStream>> {
        self.user_from("127.0.0.1").await
    }

    /// A connection through the edge that kube-apiserver has answered.
    async fn user_from(&self, address: &str) -> Result<TlsStream<TcpStream>> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(format!("{address}:0").parse()?)?;
        let stream = socket
            .connect(format!("127.0.0.1:{}", self.front.users).parse()?)
            .await?;
        let connector = self.authority.connector()?;
        let mut user = connector.connect(ServerName::try_from(HOST)?, stream).await?;
        user.write_all(b"hello\r\n").await?;
        testkit::timeout(LONG, user.read_exact(&mut [0; 7])).await??;
        Ok(user)
    }
}

/// The answers of the fake kube-apiserver to checks: healthy, etcd lost, later than the timeout of the edge,
/// or closed without an answer.
const HEALTHY: u8 = 0;
const WITHOUT_ETCD: u8 = 1;
const LATE: u8 = 2;
const CLOSED: u8 = 3;

/// At this address an answer to a check has no end.
const ENDLESS: &str = "127.0.9.9";

/// Answers checks as set by the test, and repeats each line of a user.
struct FakeApi {
    port: u16,
    answer: Arc<AtomicU8>,
    checks: Arc<AtomicU32>,
    /// Endless answers whose connection HAProxy has ended.
    given_up: Arc<AtomicU32>,
    listening: JoinSet<()>,
    _serving: JoinSet<()>,
}

impl FakeApi {
    async fn start(authority: &Authority) -> Result<Self> {
        let acceptor = authority.server(&[HOST])?.acceptor()?;
        let listener = TcpListener::bind("0.0.0.0:0").await?;
        let port = listener.local_addr()?.port();
        let (answer, checks) = (Arc::<AtomicU8>::default(), Arc::<AtomicU32>::default());
        let given_up = Arc::<AtomicU32>::default();
        let (accepted, mut peers) = mpsc::unbounded_channel();
        let mut listening = JoinSet::new();
        listening.spawn(async move {
            while let Ok((peer, _)) = listener.accept().await {
                accepted.send(peer).ok();
            }
        });
        let mut serving = JoinSet::new();
        let shared = (Arc::clone(&answer), Arc::clone(&checks), Arc::clone(&given_up));
        serving.spawn(async move {
            let mut all = JoinSet::new();
            // Connections continue after the listener has ended.
            loop {
                tokio::select! {
                    Some(peer) = peers.recv() => {
                        let (acceptor, (answer, checks, given_up)) = (acceptor.clone(), shared.clone());
                        all.spawn(async move {
                            let endless = peer.local_addr()?.ip().to_string() == ENDLESS;
                            let stream = acceptor.accept(peer).await?;
                            serve(stream, &answer, &checks, endless.then_some(&*given_up)).await
                        });
                    }
                    Some(_) = all.join_next() => {}
                    else => break,
                }
            }
        });
        Ok(Self {
            port,
            answer,
            checks,
            given_up,
            listening,
            _serving: serving,
        })
    }

    fn answer(&self, answer: u8) {
        self.answer.store(answer, SeqCst);
    }

    /// Waits for so many more checks.
    async fn wait_for_checks(&self, more: u32) -> Result<()> {
        let wanted = self.checks.load(SeqCst) + more;
        eventually("kube-apiserver is checked", LONG, || async {
            let found = self.checks.load(SeqCst);
            ensure!(found >= wanted, "{found} checks of {wanted}");
            Ok(())
        })
        .await
    }
}

async fn serve(
    stream: server::TlsStream<TcpStream>,
    answer: &AtomicU8,
    checks: &AtomicU32,
    endless: Option<&AtomicU32>,
) -> Result<()> {
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    while lines.read_line(&mut line).await? > 0 {
        if line.starts_with("GET /livez?") {
            while !line.ends_with("\r\n\r\n") && lines.read_line(&mut line).await? > 0 {}
            if let Some(given_up) = endless {
                let head = b"HTTP/1.1 500 Internal Server Error\r\nTransfer-Encoding: chunked\r\n\r\n";
                lines.write_all(head).await?;
                let chunk = format!("2000\r\n{}\r\n", "x".repeat(0x2000));
                while lines.write_all(chunk.as_bytes()).await.is_ok() && lines.flush().await.is_ok() {
                    sleep(Duration::from_millis(5)).await;
                }
                given_up.fetch_add(1, SeqCst);
                return Ok(());
            }
            let (answer, text) = (answer.load(SeqCst), "[-]etcd failed: reason withheld\n");
            checks.fetch_add(1, SeqCst);
            line = match answer {
                HEALTHY => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned(),
                WITHOUT_ETCD => format!(
                    "HTTP/1.1 500 Internal Server Error\r\nContent-Length: {}\r\n\r\n{text}",
                    text.len()
                ),
                LATE => std::future::pending().await,
                _ => return Ok(()),
            };
        }
        lines.write_all(line.as_bytes()).await?;
        lines.flush().await?;
        line.clear();
    }
    Ok(())
}
