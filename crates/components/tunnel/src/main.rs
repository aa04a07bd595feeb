//! The process: the server in the seed, the agent in the shoot, or the proxy from pods of the shoot to the
//! API.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    process::ExitCode,
};

use clap::{Args, Parser, Subcommand};
use ipnet::IpNet;
use runtime::process::{self, Process};
use tokio::net::TcpListener;
use tunnel::{
    agent::{self, Agent, Reach, Way},
    api_proxy::{self, Proxy, address},
    server::{Peers, Server, metrics::Numbers},
    tls::Files,
};

/// The tunnel between the nodes of a shoot and the shoot's API server.
#[derive(Parser)]
#[command(version)]
struct Flags {
    #[command(subcommand)]
    side: Side,
}

#[derive(Subcommand)]
enum Side {
    /// In the seed: passes requests of kube-apiserver to agents.
    Server(ServerFlags),
    /// In the shoot: opens the connections that the server requests.
    Agent(AgentFlags),
    /// On each machine of the shoot: passes connections of pods to the API.
    ApiProxy(ApiProxyFlags),
    /// On each machine of the shoot: adds the address at which pods find the proxy.
    ApiProxyAddress(ApiProxyAddressFlags),
}

#[derive(Args)]
struct ServerFlags {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    peers: Peers,
    /// Address for requests of kube-apiserver.
    #[arg(long, default_value = "0.0.0.0:8132")]
    client_address: SocketAddr,
    /// Address for connections of agents.
    #[arg(long, default_value = "0.0.0.0:8133")]
    agent_address: SocketAddr,
    /// Where /healthz, /readyz and /metrics are served.
    #[arg(long, default_value = "0.0.0.0:8134")]
    health_address: SocketAddr,
}

#[derive(Args)]
struct AgentFlags {
    #[command(flatten)]
    files: Files,
    /// DNS name of the shoot's API; leads to the edge of the shoot's seed.
    #[arg(long)]
    front: String,
    /// Port of the edge.
    #[arg(long, default_value_t = 443)]
    front_port: u16,
    /// The name that the server's certificate must have.
    #[arg(long)]
    server_name: String,
    /// Address of this agent's node.
    #[arg(long, env = "NODE_ADDRESS")]
    node_address: Option<IpAddr>,
    /// Ranges of addresses that the agent never dials.
    #[arg(long, value_delimiter = ',', default_value = agent::reach::REFUSED)]
    refuse: Vec<IpNet>,
    /// Where /healthz, /readyz and /metrics are served.
    #[arg(long, default_value = "0.0.0.0:8134")]
    health_address: SocketAddr,
}

#[derive(Args)]
struct ApiProxyFlags {
    /// Address for connections of pods. The machine may get the address later.
    #[arg(long)]
    address: SocketAddr,
    /// DNS name of the shoot's API; leads to the edge of the shoot's seed.
    #[arg(long)]
    front: String,
    /// Port of the edge for proxies.
    #[arg(long, default_value_t = 8443)]
    front_port: u16,
    /// Where /healthz, /readyz and /metrics are served. The process uses the machine's network, so the
    /// default is reachable only from the machine.
    #[arg(long, default_value = "127.0.0.1:10291")]
    health_address: SocketAddr,
}

#[derive(Args)]
struct ApiProxyAddressFlags {
    /// The address to add.
    #[arg(long)]
    address: Ipv4Addr,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    process::run(async {
        let process = match flags.side {
            Side::Server(flags) => serve(Process::new("tunnel-server"), flags).await?,
            Side::Agent(flags) => assist(Process::new("tunnel-agent"), flags)?,
            Side::ApiProxy(flags) => pass_on(Process::new("api-proxy"), &flags)?,
            Side::ApiProxyAddress(flags) => hold(Process::new("api-proxy-address"), &flags),
        };
        process.run().await.map_err(|error| error.to_string())
    })
}

async fn serve(mut process: Process, flags: ServerFlags) -> Result<Process, String> {
    let numbers = Numbers::default();
    process.metrics.register(|registry| numbers.register(registry));
    let server = Server {
        identity: flags.files.read()?,
        peers: flags.peers,
        numbers,
    };
    let clients = listen(flags.client_address).await?;
    let agents = listen(flags.agent_address).await?;
    process.serve_health(flags.health_address);
    let shutdown = process.shutdown.clone();
    process.fallible_part("server", server.run(clients, agents, shutdown));
    Ok(process)
}

fn assist(mut process: Process, flags: AgentFlags) -> Result<Process, String> {
    let numbers = agent::Numbers::default();
    process.metrics.register(|registry| numbers.register(registry));
    let connected = numbers.connected.clone();
    // An operator without a connection to the nodes cannot read this log. The readiness of the pod is still
    // visible.
    process.readiness.add(move || {
        let away = connected.get() == 0;
        away.then(|| "it is not connected to the tunnel's server in the seed".to_owned())
    });
    let agent = Agent {
        way: Way::by_dns(&flags.front, flags.front_port),
        connector: flags.files.read()?.connector(&flags.server_name)?,
        reach: Reach {
            refused: flags.refuse,
        },
        node: flags.node_address,
        numbers,
    };
    process.serve_health(flags.health_address);
    let shutdown = process.shutdown.clone();
    process.part("agent", agent.run(shutdown));
    Ok(process)
}

fn pass_on(mut process: Process, flags: &ApiProxyFlags) -> Result<Process, String> {
    let numbers = api_proxy::Numbers::default();
    process.metrics.register(|registry| numbers.register(registry));
    let (addresses, here) = (numbers.addresses.clone(), flags.address);
    process.readiness.add(move || {
        if addresses.get() == 0 {
            return Some("the API's name has not led anywhere yet".to_owned());
        }
        let away = !address::is_here(here.ip());
        away.then(|| format!("this machine does not have the address {}", here.ip()))
    });
    let listener = api_proxy::listen(flags.address);
    let proxy = Proxy {
        listener: listener.map_err(|error| format!("cannot listen on {}: {error}", flags.address))?,
        way: Way::by_dns(&flags.front, flags.front_port),
        numbers,
    };
    process.serve_health(flags.health_address);
    let shutdown = process.shutdown.clone();
    process.part("proxy", proxy.run(shutdown));
    Ok(process)
}

fn hold(mut process: Process, flags: &ApiProxyAddressFlags) -> Process {
    let shutdown = process.shutdown.clone();
    process.fallible_part("address", address::hold(flags.address, shutdown));
    process
}

async fn listen(address: SocketAddr) -> Result<TcpListener, String> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| format!("cannot listen on {address}: {error}"))
}
