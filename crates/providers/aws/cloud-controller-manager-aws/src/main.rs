//! The process: reads flags, checks the owner, runs the program.

use std::{future::ready, net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::Parser;
use cloud_controller_manager_aws::{gate::proxies, program::Program};
use owner_checks::{OwnerFlags, while_owned};
use runtime::{client::Permit, process::Process};

const NAME: &str = "cloud-controller-manager-aws";

/// Runs Kubernetes' cloud-controller-manager for AWS while the shoot is this seed's.
#[derive(Parser)]
#[command(version)]
struct Flags {
    /// Path of Kubernetes' cloud-controller-manager for AWS.
    #[arg(long, default_value = "/usr/local/bin/aws-cloud-controller-manager")]
    program: PathBuf,
    /// Folder with the files `accessKeyID` and `secretAccessKey` of the account, and with `sessionToken` for
    /// temporary keys.
    #[arg(long)]
    cloud_credentials: PathBuf,
    /// URL of the HTTP proxy in front of EC2. By default the connections to EC2 are direct.
    #[arg(long, default_value = "")]
    https_proxy: String,
    /// Hosts that are reached without the proxy, as in the variable `NO_PROXY`.
    #[arg(long, default_value = "")]
    no_proxy: String,
    /// Address of /healthz, /readyz and /metrics.
    #[arg(long, default_value = "0.0.0.0:8080")]
    health_address: SocketAddr,
    #[command(flatten)]
    owner: OwnerFlags,
    /// Arguments of the program.
    #[arg(last = true)]
    arguments: Vec<String>,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    manager::run(NAME, |process| ready(start(process, flags)))
}

fn start(mut process: Process, flags: Flags) -> Result<Process, String> {
    let permit = Permit::sole("the program holds the lock in the shoot, and the owner check gives the right");
    let watch = flags
        .owner
        .watch_owner(&permit)
        .map_err(|error| error.to_string())?;
    process.serve_health(flags.health_address);
    let program = Program {
        path: flags.program,
        arguments: flags.arguments,
        credentials: flags.cloud_credentials,
        proxies: proxies(&flags.https_proxy, &flags.no_proxy),
    };
    let shutdown = process.shutdown.clone();
    process.fallible_part("cloud-controller-manager", async move {
        let running = while_owned(watch, permit, |right| program.run(right));
        shutdown.run_until_cancelled(running).await.unwrap_or(Ok(()))
    });
    Ok(process)
}
