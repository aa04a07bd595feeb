//! A seed's front does not turn in circles for a connection whose first attempt was refused by the node.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use testkit::{Namespace, Server, eventually, find_program};

const LONG: Duration = Duration::from_secs(60);
/// How long the front is looked at, and how much of it it may be busy. It is all of it if it turns in circles.
const LOOKED_AT: Duration = Duration::from_secs(3);
const BUSY: Duration = Duration::from_millis(600);
/// As kube-proxy does for a Service without endpoints, of the first attempt alone.
const REFUSE: &str = "-I INPUT -p tcp --dport 9000 --syn -m statistic --mode nth --every 1000000 --packet 0 \
                      -j REJECT --reject-with icmp-port-unreachable";

/// The node's answer to the first attempt comes while HAProxy still connects. The kernel keeps it and tries again after a second; if that
/// is taken, on the same socket, the answer lies there as long as the connection lives.
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
    // That nothing happens can only be waited for.
    tokio::time::sleep(LOOKED_AT).await;
    let busy = front.cpu()?.saturating_sub(before);
    ensure!(busy < BUSY, "busy for {busy:?} of {LOOKED_AT:?}");
    Ok(())
}

/// The bounds and options of the chart, and the shortest way from a port to a server.
fn config() -> Result<String> {
    let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/seed/files/haproxy.cfg");
    let chart = std::fs::read_to_string(chart)?;
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
