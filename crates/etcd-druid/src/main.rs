//! The process: flags, the seed's API, the controller.

use std::process::ExitCode;

use clap::Parser;
use etcd_druid::{flags::Flags, names::DRUID};
use kube::Client;
use runtime::Process;

fn main() -> ExitCode {
    runtime::process::run(begin())
}

async fn begin() -> ExitCode {
    let flags = Flags::parse();
    let mut process = Process::new(DRUID);
    let client = match Client::try_default().await {
        Ok(client) => client,
        Err(error) => {
            tracing::error!(%error, "the seed's API is not known: run in a pod with a ServiceAccount, or set KUBECONFIG");
            eprintln!(
                "the seed's API is not known: run in a pod with a ServiceAccount, or set KUBECONFIG: {error}"
            );
            return ExitCode::FAILURE;
        }
    };
    process.serve_health(flags.health_address);
    etcd_druid::start(&mut process, client, &flags);
    match process.run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "ended");
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
