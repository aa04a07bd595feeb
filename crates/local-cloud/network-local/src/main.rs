//! The process: reads flags, opens the machine's network, follows the Nodes.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::Parser;
use ipnet::Ipv4Net;
use kube::runtime::watcher;
use network_local::{agent::Agent, fleet::Machine, kernel::Kernel};
use runtime::{
    client::{Cluster, Connection, Permit, Shoot, informer::follow},
    process::{self, Process},
};
use tokio::sync::watch;

/// Sets up the network of the pods of a machine.
#[derive(Parser)]
#[command(version)]
struct Flags {
    /// Name of this machine's Node.
    #[arg(long, env = "NODE_NAME")]
    node_name: String,
    /// Addresses of all pods of the shoot. Packets from pods to further addresses get their machine's address
    /// as the source.
    #[arg(long)]
    pods: Ipv4Net,
    /// Folder in which containerd looks for the configuration of the network.
    #[arg(long, default_value = "/etc/cni/net.d")]
    configuration_folder: PathBuf,
    /// Where /healthz, /readyz and /metrics are served. The process uses the machine's network, so the
    /// default is reachable only from the machine.
    #[arg(long, default_value = "127.0.0.1:10290")]
    health_address: SocketAddr,
    /// Kubeconfig of the shoot; the default is the ServiceAccount of the pod.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    process::run(async {
        let process = start(Process::new("network-local"), flags).await?;
        process.run().await.map_err(|error| error.to_string())
    })
}

async fn start(mut process: Process, flags: Flags) -> Result<Process, String> {
    let shoot = Connection::of_flag("--kubeconfig", flags.kubeconfig.as_deref()).await?;
    let permit = Permit::sole("it only reads Nodes, and each machine has its own agent");
    let shoot = Shoot::new(shoot, &permit);
    let kernel = Kernel::open().map_err(|error| format!("the kernel gives no netlink socket: {error}"))?;
    let agent = Agent {
        kernel,
        node: flags.node_name,
        pods: flags.pods.trunc(),
        folder: flags.configuration_folder,
    };
    process.serve_health(flags.health_address);
    let (sender, known) = watch::channel(None);
    process.part("nodes", async move {
        let all = watcher::Config::default();
        follow(
            shoot.cluster_wide(),
            all,
            |node| Some(Machine::from_node(node)),
            sender,
        )
        .await;
    });
    let (metrics, health) = (process.metrics.clone(), process.health.clone());
    process.part("network", agent.run(known, metrics, health));
    Ok(process)
}
