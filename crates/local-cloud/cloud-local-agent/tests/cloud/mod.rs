//! A host of the cloud as a network namespace: machines behind separate links, as the plugin `ptp` creates
//! links, and an outside client. Beside the host, an account in a real API server.

use std::{
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, ensure};
use cloud_local::{
    Cloud, Host,
    isolation::{LABEL, MACHINES, Machine, Order},
};
use cloud_local_agent::{agent::Agent, kernel::Kernel};
use k8s_openapi::api::core::v1::{Namespace as Account, Pod, ServiceAccount};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
    runtime::watcher,
};
use runtime::{
    client::{apply::FieldManager, informer::follow},
    process::{Health, metrics::Metrics},
};
use serde_json::json;
use testkit::{Namespace, eventually};
use tokio::{sync::watch, task::JoinSet};

/// Far longer than any of this takes.
pub const SOON: Duration = Duration::from_secs(60);
/// Wait for packets that must not come, without a further sign.
const NOT_COMING: Duration = Duration::from_millis(500);
/// The account of the test.
pub const ACCOUNT: &str = "account";
/// The name of the host.
pub const NODE: &str = "host";

/// A host of the cloud.
pub fn host() -> Result<Namespace> {
    let host = Namespace::new("host")?;
    host.within(|| std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1"))??;
    Ok(host)
}

/// A network namespace with addresses.
pub struct TestEndpoint {
    pub namespace: Namespace,
    pub address: IpAddr,
    /// The IPv6 address.
    pub address6: IpAddr,
}

impl TestEndpoint {
    /// A namespace behind a separate link of the host, number `n`.
    pub fn new(name: &str, n: u8, host: &Namespace) -> Result<Self> {
        let namespace = Namespace::new(name)?;
        let (address, address6) = (format!("10.50.0.{n}"), format!("fd50::{n}"));
        host.link(
            (name, "10.50.0.1/32"),
            &namespace,
            ("eth0", &format!("{address}/32")),
        )?;
        host.ip(&format!("address add fd50::ffff/128 dev {name} nodad"))?;
        namespace.ip(&format!("address add {address6}/128 dev eth0 nodad"))?;
        for (version, own, gateway) in [("-4", &address, "10.50.0.1"), ("-6", &address6, "fd50::ffff")] {
            host.ip(&format!("{version} route add {own} dev {name}"))?;
            namespace.ip(&format!("{version} route add {gateway} dev eth0"))?;
            namespace.ip(&format!("{version} route add default via {gateway} dev eth0"))?;
        }
        Ok(Self {
            namespace,
            address: address.parse()?,
            address6: address6.parse()?,
        })
    }

    /// A pod on this machine, number `n`, with a route of the host through the machine.
    pub fn pod(&self, n: u8, host: &Namespace) -> Result<Self> {
        let pod = Namespace::new("pod")?;
        let (address, address6) = (format!("10.60.{n}.5"), format!("fd60:{n}::5"));
        let machine = &self.namespace;
        let gateway = format!("10.60.{n}.1");
        machine.link(
            ("pod", &format!("{gateway}/24")),
            &pod,
            ("eth0", &format!("{address}/24")),
        )?;
        pod.ip(&format!("route add default via {gateway}"))?;
        host.ip(&format!(
            "route add 10.60.{n}.0/24 via {} dev {} onlink",
            self.address,
            self.link(host)?
        ))?;
        Ok(Self {
            namespace: pod,
            address: address.parse()?,
            address6: address6.parse()?,
        })
    }

    /// The namespace with the IPv4 address.
    pub fn v4(&self) -> (&Namespace, IpAddr) {
        (&self.namespace, self.address)
    }

    /// The namespace with the IPv6 address.
    pub fn v6(&self) -> (&Namespace, IpAddr) {
        (&self.namespace, self.address6)
    }

    fn link(&self, host: &Namespace) -> Result<String> {
        let route = host.ip(&format!("-o route get {}", self.address))?;
        let mut words = route.split_whitespace().skip_while(|word| *word != "dev");
        Ok(words.nth(1).context("no way")?.to_owned())
    }
}

/// Whether packets pass from `from` to `to`. Packets of the receiver to itself always arrive, and mark the
/// end of listening.
pub fn passes(from: (&Namespace, IpAddr), to: (&Namespace, IpAddr)) -> Result<bool> {
    let socket = |(namespace, address): (&Namespace, IpAddr)| -> Result<UdpSocket> {
        Ok(namespace.within(|| UdpSocket::bind(SocketAddr::new(address, 0)))??)
    };
    let (sender, receiver, marker) = (socket(from)?, socket(to)?, socket(to)?);
    receiver.set_read_timeout(Some(SOON))?;
    let there = receiver.local_addr()?;
    // A packet that the host drops locally is an error for the sender.
    for _ in 0..20 {
        let _ = sender.send_to(b"probe", there);
    }
    marker.send_to(b"marker", there)?;
    let mut buffer = [0; 16];
    let mut heard = 0;
    loop {
        match receiver.recv(&mut buffer).map(|length| &buffer[..length]) {
            Ok(b"probe") => heard += 1,
            Ok(_) => receiver.set_read_timeout(Some(NOT_COMING))?,
            Err(_) => return Ok(heard > 0),
        }
        if heard == 20 {
            return Ok(true);
        }
    }
}

/// Whether packets pass in both directions. A single direction is an error.
pub fn both_ways(one: (&Namespace, IpAddr), other: (&Namespace, IpAddr)) -> Result<bool> {
    let (there, back) = (passes(one, other)?, passes(other, one)?);
    ensure!(there == back, "one way only: there {there}, back {back}");
    Ok(there)
}

/// A connection that is established.
pub struct Flow {
    client: TcpStream,
    server: TcpStream,
    sent: usize,
}

impl Flow {
    pub fn open(from: &Namespace, (to, address): (&Namespace, IpAddr)) -> Result<Self> {
        let listener = to.within(|| TcpListener::bind(SocketAddr::new(address, 0)))??;
        let there = listener.local_addr()?;
        let client = from.within(|| TcpStream::connect_timeout(&there, SOON))??;
        let (server, _) = listener.accept()?;
        let mut flow = Self {
            client,
            server,
            sent: 0,
        };
        ensure!(flow.flows(SOON)?, "nothing flows in a new connection");
        Ok(flow)
    }

    /// Both sides send, and no byte arrives.
    pub fn stands(&mut self) -> Result<()> {
        for (what, (from, to)) in [
            ("there", (&self.client, &self.server)),
            ("back", (&self.server, &self.client)),
        ] {
            send(from)?;
            ensure!(!comes(to, 1, NOT_COMING)?, "a byte came {what}");
        }
        self.sent = 1;
        Ok(())
    }

    /// Both sides send, and all bytes arrive.
    pub fn flows(&mut self, within: Duration) -> Result<bool> {
        let awaited = self.sent + 1;
        self.sent = 0;
        send(&self.client)?;
        send(&self.server)?;
        Ok(comes(&self.server, awaited, within)? && comes(&self.client, awaited, within)?)
    }
}

fn send(mut from: &TcpStream) -> Result<()> {
    Ok(from.write_all(b"x")?)
}

fn comes(mut to: &TcpStream, bytes: usize, within: Duration) -> Result<bool> {
    to.set_read_timeout(Some(within))?;
    match to.read_exact(&mut vec![0; bytes]) {
        Ok(()) => Ok(true),
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
            ) =>
        {
            Ok(false)
        }
        Err(error) => Err(anyhow!("the connection is broken: {error}")),
    }
}

/// Creates the account, and returns the account's objects.
pub async fn account(client: &Client) -> Result<Cloud> {
    let namespace = serde_json::from_value(json!({"metadata": {"name": ACCOUNT}}))?;
    Api::<Account>::all(client.clone())
        .create(&PostParams::default(), &namespace)
        .await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), ACCOUNT);
    eventually("pods may be made in the account", SOON, || {
        accounts.get("default")
    })
    .await?;
    Ok(Cloud::inside(client.clone(), ACCOUNT, FieldManager("test")))
}

/// The pod of a machine, as the cloud and the host write the pod.
pub async fn machine(
    client: &Client,
    (cluster, zone): (&str, &str),
    name: &str,
    place: &TestEndpoint,
) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), ACCOUNT);
    let pod = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {MACHINES: cluster},
            "annotations": {"local.provider.extensions.gardener.cloud/zone": zone}},
        "spec": {"nodeName": NODE, "containers": [{"name": "machine", "image": "machine"}]},
    }))?;
    pods.create(&PostParams::default(), &pod).await?;
    let ips = [place.address, place.address6].map(|ip| json!({"ip": ip}));
    let status = json!({"status": {"phase": "Running", "podIP": place.address, "podIPs": ips}});
    pods.patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await?;
    Ok(())
}

/// The agent of the host, as in the real process. Dropping the value stops the agent.
pub fn agent(client: &Client, host: &Namespace) -> Result<JoinSet<()>> {
    let cloud = Cloud::inside(client.clone(), ACCOUNT, FieldManager("cloud-local-agent"));
    let agent = Agent {
        kernel: host.within(|| Kernel::open(ACCOUNT))??,
        host: Host::new(cloud.clone(), NODE),
        name: NODE.to_owned(),
    };
    let mut parts = JoinSet::new();
    let (sender, orders) = watch::channel(None);
    let marked = watcher::Config::default().labels(&format!("{LABEL}=true"));
    parts.spawn(follow(
        cloud.objects(),
        marked,
        |object| Some(Order::from_config_map(object)),
        sender,
    ));
    let (sender, machines) = watch::channel(None);
    let here = watcher::Config::default()
        .labels(MACHINES)
        .fields(&format!("spec.nodeName={NODE}"));
    let pods: Api<Pod> = Api::namespaced(client.clone(), ACCOUNT);
    parts.spawn(follow(pods, here, Machine::from_pod, sender));
    parts.spawn(agent.run(orders, machines, Metrics::default(), Health::default()));
    Ok(parts)
}
