//! A seed's edge: a real HAProxy with the chart's configuration.

use std::{path::Path, process::Stdio};

use anyhow::{Context, Result, ensure};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use testkit::{NameServer, Server, eventually, find_program, free_port};
use tokio::{io::AsyncWriteExt, process::Command};

use super::{LONG, get};

pub const HOST: &str = "api.web.dev.internal.example.test";
/// The DNS zone in which the edge resolves names.
pub const ZONE: &str = "garden-exposure.svc.cluster.local";

/// The most connections of users, and of proxies.
pub const BOUND: u32 = 1000;

/// The directive by which the edge finds the address of a shoot.
pub const LOOKUP: &str = "do-resolve(txn.address,cluster,ipv4) var(txn.name)";

/// A running edge. Dropping the value stops the edge.
pub struct Front {
    /// Port for clients that send a name in TLS.
    pub users: u16,
    /// Port for proxies.
    pub proxies: u16,
    /// Port of the health check and of the metrics.
    pub health: u16,
    pub haproxy: Server,
}

impl Front {
    /// Starts an edge for these ports: of the API, and of the tunnel.
    pub async fn start(folder: &Path, names: &NameServer, ports: [u16; 2]) -> Result<Self> {
        Self::start_with(folder, names, ports, LOOKUP).await
    }

    /// As [`Self::start`], with a different directive in the place of [`LOOKUP`].
    pub async fn start_with(
        folder: &Path,
        names: &NameServer,
        [api, agents]: [u16; 2],
        lookup: &str,
    ) -> Result<Self> {
        let (users, proxies, health) = (free_port()?, free_port()?, free_port()?);
        let [commands, checks] =
            ["abns@edge-commands", "abns@edge-checks"].map(|name| (name, format!("{name}-{users}")));
        // Abstract sockets are shared by the whole machine here.
        let fence = folder.join(format!("fence-{users}.lua"));
        write_changed("fence.lua", &fence, &[commands.clone(), checks.clone()])?;
        let name = format!("haproxy-{users}");
        let file = folder.join(format!("{name}.cfg"));
        let changes = [
            commands,
            checks,
            ("/etc/edge/fence.lua", fence.display().to_string()),
            (LOOKUP, lookup.to_owned()),
            ("MAX_CONNECTIONS", BOUND.to_string()),
            ("ALL_CONNECTIONS", (2 * BOUND + 1000).to_string()),
            ("EXPOSURE_NAMESPACE", "garden-exposure".to_owned()),
            ("CLUSTER_DOMAIN", "cluster.local".to_owned()),
            ("parse-resolv-conf", format!("nameserver test {}", names.address)),
            ("bind :8443", format!("bind 127.0.0.1:{users}")),
            ("bind :8444", format!("bind 127.0.0.1:{proxies}")),
            ("bind :8080", format!("bind 127.0.0.1:{health}")),
            ("0.0.0.0:443", format!("0.0.0.0:{api}")),
            ("0.0.0.0:8133", format!("0.0.0.0:{agents}")),
        ];
        write_changed("haproxy.cfg", &file, &changes)?;
        let args = ["-db".to_owned(), "-f".to_owned(), file.display().to_string()];
        let mut haproxy = Server::start(&name, "haproxy", folder, args, &[])?;
        eventually("the front is ready", LONG, || {
            let alive = haproxy.check_alive();
            async move {
                alive?;
                let answer = get(health, "/healthz").await?;
                ensure!(answer.contains(" 200 "), "{answer}");
                Ok::<_, anyhow::Error>(())
            }
        })
        .await?;
        Ok(Self {
            users,
            proxies,
            health,
            haproxy,
        })
    }
}

/// Writes a file of the chart with these words replaced.
fn write_changed(name: &str, file: &Path, changes: &[(&str, String)]) -> Result<()> {
    let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../charts/seed/files");
    let mut text = std::fs::read_to_string(Path::new(chart).join(name))?;
    for (from, to) in changes {
        ensure!(
            text.contains(from),
            "{from} is not in the chart's {name} any more"
        );
        text = text.replace(from, to);
    }
    Ok(std::fs::write(file, text)?)
}

/// Adds the DNS record by which edges find this machine.
pub async fn add(names: &NameServer, what: &str, of: &str) -> Result<()> {
    let name = format!("{what}-{}.{ZONE}", sha1(of));
    let (host, port) = names.address.split_once(':').context("no port")?;
    let key = format!(
        "{}:{}:{}",
        names.tsig_algorithm, names.tsig_key_name, names.tsig_secret
    );
    let mut update = Command::new(find_program("knsupdate")?)
        .args(["-y", &key])
        .stdin(Stdio::piped())
        .spawn()?;
    let words = format!("server {host} {port}\nzone {ZONE}.\nadd {name}. 1 A 127.0.0.1\nsend\n");
    let mut input = update.stdin.take().context("no input")?;
    input.write_all(words.as_bytes()).await?;
    drop(input);
    ensure!(
        testkit::timeout(LONG, update.wait()).await??.success(),
        "{name} was not added"
    );
    Ok(())
}

fn sha1(text: &str) -> String {
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
    let bytes = digest.as_ref().iter();
    bytes.fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}
