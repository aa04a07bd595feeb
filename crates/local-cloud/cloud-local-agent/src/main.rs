//! The process: reads flags, opens the host's network, follows the accounts.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::Parser;
use cloud_local::{
    Cloud, Host,
    isolation::{LABEL, MACHINES, Machine, Order},
};
use cloud_local_agent::{agent::Agent, kernel::Kernel};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, runtime::watcher};
use runtime::{
    client::{Connection, Permit, apply::FieldManager, informer::follow},
    process::{self, Process},
};
use tokio::sync::watch;

/// Closes zones on a host of the local cloud.
#[derive(Parser)]
#[command(version)]
struct Flags {
    /// Name of this host's Node.
    #[arg(long, env = "NODE_NAME")]
    node_name: String,
    /// Namespace that is an account. Several are possible.
    #[arg(long = "account", required = true)]
    accounts: Vec<String>,
    /// Where /healthz, /readyz and /metrics are served. The process uses the host's network, so the default
    /// is reachable only from the host.
    #[arg(long, default_value = "127.0.0.1:10291")]
    health_address: SocketAddr,
    /// Kubeconfig of the cluster that simulates the cloud; the default is the ServiceAccount of the pod.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    process::run(async {
        let process = start(Process::new("cloud-local-agent"), flags).await?;
        process.run().await.map_err(|error| error.to_string())
    })
}

async fn start(mut process: Process, flags: Flags) -> Result<Process, String> {
    let cloud = Connection::of_flag("--kubeconfig", flags.kubeconfig.as_deref()).await?;
    let permit = Permit::sole("each host has its own agent, which writes only what its own kernel has");
    let client = cloud.client(&permit);
    process.serve_health(flags.health_address);
    for account in &flags.accounts {
        serve(&mut process, &client, account, &flags.node_name)
            .map_err(|error| format!("the kernel gives no netlink socket: {error}"))?;
    }
    Ok(process)
}

fn serve(process: &mut Process, client: &Client, account: &str, node: &str) -> std::io::Result<()> {
    let cloud = Cloud::inside(client.clone(), account, FieldManager("cloud-local-agent"));
    let agent = Agent {
        kernel: Kernel::open(account)?,
        host: Host::new(cloud.clone(), node),
        name: node.to_owned(),
    };
    let (sender, orders) = watch::channel(None);
    let marked = watcher::Config::default().labels(&format!("{LABEL}=true"));
    let wanted = follow(
        cloud.objects(),
        marked,
        |object| Some(Order::from_config_map(object)),
        sender,
    );
    process.part("orders", wanted);
    let (sender, machines) = watch::channel(None);
    let here = watcher::Config::default()
        .labels(MACHINES)
        .fields(&format!("spec.nodeName={node}"));
    let pods: Api<Pod> = Api::namespaced(client.clone(), account);
    process.part("machines", follow(pods, here, Machine::from_pod, sender));
    let (metrics, health) = (process.metrics.clone(), process.health.clone());
    process.part("isolation", agent.run(orders, machines, metrics, health));
    Ok(())
}
