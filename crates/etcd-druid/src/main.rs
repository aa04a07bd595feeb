//! The process: flags, the seed's API, the controller.

use std::process::ExitCode;

use clap::Parser;
use etcd_druid::{flags::Flags, names::DRUID};
use kube::Client;
use runtime::Process;

fn main() -> ExitCode {
    let flags = Flags::parse();
    let process = Process::new(DRUID);
    runtime::process::run(start(process, flags))
}

async fn start(mut process: Process, flags: Flags) -> Result<(), String> {
    let client = Client::try_default().await.map_err(|error| {
        format!("the seed's API is not known: run in a pod with a ServiceAccount, or set KUBECONFIG: {error}")
    })?;
    process.serve_health(flags.health_address);
    etcd_druid::start(&mut process, client, &flags);
    process.run().await.map_err(|error| error.to_string())
}
