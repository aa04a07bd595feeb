//! A seed's edge does not use a whole processor where the node refuses connections.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use testkit::{Namespace, Server, eventually, find_program};

const CHART: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../charts/seed/files/haproxy.cfg"
);
const LONG: Duration = Duration::from_secs(60);
/// Time of the measurement, and the allowed CPU time of the edge. A busy loop would use the whole time.
const LOOKED_AT: Duration = Duration::from_secs(3);
const BUSY: Duration = Duration::from_millis(600);
/// As kube-proxy does for a Service without endpoints, of the first attempt alone.
const REFUSE: &str = "-I INPUT -p tcp --dport 9000 --syn -m statistic --mode nth --every 1000000 --packet 0 \
                      -j REJECT --reject-with icmp-port-unreachable";

/// The node's answer to the first attempt comes while HAProxy still connects. The kernel keeps the error and
/// retries after a second. If the retry succeeds on the same socket, the error stays on the socket as long as
/// the connection lives.
#[tokio::test]
async fn a_client_who_was_refused_first_and_served_then_costs_the_front_nothing() -> Result<()> {
    let host = Namespace::new("front")?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("haproxy.cfg");
    std::fs::write(&file, config()?)?;
    let arguments = [
        format!("--net={}", host.path().display()),
        find_program("haproxy")?.display().to_string(),
        "-db".to_owned(),
        "-f".to_owned(),
        file.display().to_string(),
    ];
    host.within(|| iptables(REFUSE))??;
    let api = host.within(|| TcpListener::bind("127.0.0.2:9000"))??;
    let mut front = Server::start("haproxy", "nsenter", folder.path(), arguments, &[])?;
    let mut client = eventually("the front listens", LONG, || {
        let alive = front.check_alive();
        let client = host.within(|| TcpStream::connect("127.0.0.1:8443"));
        std::future::ready(alive.and_then(|()| Ok(client??)))
    })
    .await?;
    client.set_read_timeout(Some(LONG))?;
    client.write_all(b"x")?;
    let (mut served, _) = api.accept()?;
    served.write_all(b"y")?;
    client.read_exact(&mut [0])?;
    let told = host.within(|| iptables("-L INPUT -v -n -x"))??;
    let refused = told.lines().find(|line| line.contains("REJECT"));
    let refused = refused.and_then(|line| line.split_whitespace().next());
    ensure!(refused == Some("1"), "not one attempt was refused: {told}");

    let before = front.cpu()?;
    // The absence of load can only be measured over time.
    tokio::time::sleep(LOOKED_AT).await;
    let busy = front.cpu()?.saturating_sub(before);
    ensure!(busy < BUSY, "busy for {busy:?} of {LOOKED_AT:?}");
    Ok(())
}

/// How many users try again and again, and for how long.
const USERS: usize = 20;
const TRYING: Duration = Duration::from_secs(8);
/// The pause of Kubernetes clients after the first failures.
const PAUSE: Duration = Duration::from_secs(1);

/// Figures of docs/understand/bench.md: `cargo test -p tunnel --test refused -- --nocapture cost`.
#[tokio::test]
async fn users_who_always_try_where_a_service_has_no_endpoint_cost_the_front_little() -> Result<()> {
    let chart = whole_config()?;
    // The chart without the rules of backend `answers`.
    let without: String = chart
        .lines()
        .filter(|line| !line.contains("if !is_answering") && !line.contains("unless is_answering"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let (tried, before) = cost("without-the-rules", &without).await?;
    let (more, after) = cost("with-the-rules", &chart).await?;
    println!(
        "{USERS} users of a Service without endpoints cost {before:.0} % of a processor with {tried} connections in {TRYING:?} \
         without the rules, and {after:.0} % with {more} connections with them"
    );
    ensure!(
        after * 2.0 < before,
        "{after} % is not less than half of {before} %"
    );
    Ok(())
}

/// Connections that ended, and per cent of a processor, while the node refuses all connections of the edge.
async fn cost(name: &str, config: &str) -> Result<(usize, f64)> {
    let host = Namespace::new(name)?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("haproxy.cfg");
    std::fs::write(&file, config)?;
    let arguments = [
        format!("--net={}", host.path().display()),
        find_program("haproxy")?.display().to_string(),
        "-db".to_owned(),
        "-f".to_owned(),
        file.display().to_string(),
    ];
    host.within(|| {
        iptables("-I INPUT -p tcp --dport 443 --syn -j REJECT --reject-with icmp-port-unreachable")
    })??;
    let mut front = Server::start(name, "nsenter", folder.path(), arguments, &[])?;
    eventually("the front listens", LONG, || {
        let alive = front.check_alive();
        let client = host.within(|| TcpStream::connect("127.0.0.1:8443"));
        std::future::ready(alive.and_then(|()| Ok(client??)))
    })
    .await?;
    let greeting = greeting()?;
    let (begun, before) = (Instant::now(), front.cpu()?);
    let users: Vec<_> = (0..USERS)
        .map(|_| {
            let greeting = greeting.clone();
            host.within(move || std::thread::spawn(move || try_again_and_again(&greeting, begun)))
        })
        .collect::<Result<_>>()?;
    let mut connections = 0;
    for user in users {
        let tried = tokio::task::spawn_blocking(|| user.join()).await?;
        connections += tried.map_err(|_| anyhow::anyhow!("a user has panicked"))??;
    }
    let busy = front.cpu()?.saturating_sub(before);
    Ok((
        connections,
        100.0 * busy.as_secs_f64() / begun.elapsed().as_secs_f64(),
    ))
}

#[allow(clippy::disallowed_methods)] // a user's own thread, outside of any runtime
fn try_again_and_again(greeting: &[u8], begun: Instant) -> Result<usize> {
    let mut tried = 0;
    while begun.elapsed() < TRYING {
        let mut client = TcpStream::connect("127.0.0.1:8443")?;
        client.write_all(greeting)?;
        // The edge ends the connection, in order or not.
        client.read_to_end(&mut Vec::new()).ok();
        tried += 1;
        std::thread::sleep(PAUSE);
    }
    Ok(tried)
}

/// First message of a user of TLS.
fn greeting() -> Result<Vec<u8>> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = rustls::ClientConfig::builder()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let mut user = rustls::ClientConnection::new(std::sync::Arc::new(config), "api.test".try_into()?)?;
    let mut greeting = Vec::new();
    user.write_tls(&mut greeting)?;
    Ok(greeting)
}

/// All of the chart, with an address that needs no lookup.
fn whole_config() -> Result<String> {
    let mut config = std::fs::read_to_string(CHART)?;
    for (from, to) in [
        ("MAX_CONNECTIONS", "1000"),
        ("ALL_CONNECTIONS", "3000"),
        ("EXPOSURE_NAMESPACE", "garden-exposure"),
        ("CLUSTER_DOMAIN", "cluster.local"),
        (
            "/etc/edge/fence.lua",
            concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../../charts/seed/files/fence.lua"
            ),
        ),
        (
            "do-resolve(txn.address,cluster,ipv4) var(txn.name)",
            "set-var(txn.address) ipv4(127.0.0.2)",
        ),
    ] {
        ensure!(
            config.contains(from),
            "{from} is not in the chart's configuration any more"
        );
        config = config.replace(from, to);
    }
    Ok(config)
}

/// The bounds and options of the chart, and the shortest way from a port to a server.
fn config() -> Result<String> {
    let chart = std::fs::read_to_string(CHART)?;
    let defaults = chart.split("\ndefaults\n").nth(1);
    let defaults = defaults.and_then(|text| text.split("\nfrontend ").next());
    let defaults = defaults.context("the chart's configuration has no section `defaults` any more")?;
    Ok(format!(
        "defaults\n{defaults}\nfrontend users\n  bind 127.0.0.1:8443\n  default_backend shoot\n\
         backend shoot\n  server kube-apiserver 127.0.0.2:9000\n"
    ))
}

fn iptables(arguments: &str) -> Result<String> {
    let done = Command::new(find_program("iptables")?)
        .arg("-w")
        .args(arguments.split(' '))
        .output()?;
    let told = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "iptables {arguments}: {told}");
    Ok(String::from_utf8(done.stdout)?)
}
