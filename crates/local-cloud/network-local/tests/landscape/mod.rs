//! Machines and pods as network namespaces: two machines connected by a router, with a pod on each machine.

use std::{
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

use anyhow::{Result, anyhow, ensure};
use testkit::Namespace;

/// Longer than a packet takes here, much shorter than a person waits.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
/// More bytes than fit into a packet.
const MUCH: usize = 200_000;

/// A machine with a pod.
pub struct Machine {
    pub address: String,
    pub range: String,
    pub pod_address: IpAddr,
    pub namespace: Namespace,
    pub pod: Namespace,
}

impl Machine {
    /// Machine number `n`, behind the router: the address and the pods' range contain `n`.
    pub fn new(name: &str, n: u8, router: &Namespace) -> Result<Self> {
        let (namespace, pod) = (Namespace::new(name)?, Namespace::new(&format!("{name}-pod"))?);
        let address = format!("172.31.{n}.2");
        let (here, there) = (format!("{address}/30"), format!("172.31.{n}.1/30"));
        namespace.link(("eth0", &here), router, (name, &there))?;
        namespace.ip(&format!("route add default via 172.31.{n}.1"))?;
        // Like the plugin `ptp`.
        let pod_address = format!("10.99.{n}.5");
        let (gateway, own) = (format!("10.99.{n}.1/32"), format!("{pod_address}/32"));
        namespace.link(("pod", &gateway), &pod, ("eth0", &own))?;
        namespace.ip(&format!("route add {pod_address} dev pod scope link"))?;
        pod.ip("link set eth0 mtu 1350")?;
        pod.ip(&format!("route add 10.99.{n}.1 dev eth0 scope link"))?;
        pod.ip(&format!("route add default via 10.99.{n}.1"))?;
        Ok(Self {
            address,
            range: format!("10.99.{n}.0/24"),
            pod_address: pod_address.parse()?,
            namespace,
            pod,
        })
    }

    /// The entries in the tables of the VXLAN device: routes, neighbours, forwardings. Empty without entries.
    pub fn entries(&self) -> Result<String> {
        let routes = self.namespace.ip("route show dev network-local")?;
        let neighbours = self
            .namespace
            .ip("-4 neighbour show dev network-local nud permanent")?;
        let forwardings = self
            .namespace
            .ip("-d -f bridge neighbour show dev network-local")?;
        Ok(format!("{routes}{neighbours}{forwardings}"))
    }
}

/// Sends many bytes by TCP from a namespace to an address in a second namespace. Returns the source address
/// that the receiver saw.
pub fn talk(from: &Namespace, to: &Namespace, address: IpAddr) -> Result<IpAddr> {
    let listener = to.within(|| TcpListener::bind(SocketAddr::new(address, 0)))??;
    let there = listener.local_addr()?;
    let mut sender = from.within(|| TcpStream::connect_timeout(&there, ANSWERS_WITHIN))??;
    let (mut receiver, source) = listener.accept()?;
    receiver.set_read_timeout(Some(ANSWERS_WITHIN))?;
    let arrived = std::thread::scope(|scope| -> Result<usize> {
        let sending = scope.spawn(move || sender.write_all(&vec![7; MUCH]));
        let mut all = Vec::new();
        receiver.read_to_end(&mut all)?;
        sending.join().map_err(|_| anyhow!("a thread panicked"))??;
        Ok(all.len())
    })?;
    ensure!(arrived == MUCH, "{arrived} of {MUCH} bytes arrived");
    Ok(source.ip())
}
