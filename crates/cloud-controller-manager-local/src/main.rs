//! The process: reads flags, waits for its locks, runs the controllers.

use std::{process::ExitCode, sync::Arc};

use cloud_controller_manager_local::{
    MANAGER,
    controllers::{self, Context},
    flags::Config,
    locks::Locks,
};
use runtime::{Process, connect};

#[tokio::main]
async fn main() -> ExitCode {
    let flags = Config::read();
    if flags.lease.print_leader_migration {
        return match flags
            .controllers()
            .and_then(|names| Locks::assign(&flags.lease, &names))
        {
            Ok(locks) => {
                print!("{locks}");
                ExitCode::SUCCESS
            }
            Err(why) => {
                eprintln!("{why}");
                ExitCode::FAILURE
            }
        };
    }
    let process = Process::new(MANAGER.0);
    match start(process, flags).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            tracing::error!(%why, "the process ends");
            ExitCode::FAILURE
        }
    }
}

async fn start(mut process: Process, flags: Config) -> Result<(), String> {
    let options = flags.options()?;
    let locks = Locks::assign(&flags.lease, &options.controllers)?;
    locks.warn();
    let shoot = connect("--kubeconfig", Some(&options.kubeconfig)).await?;
    process.serve_health(flags.health_address);
    let context = Context {
        shoot,
        cloud: options.cloud.clone(),
        options: Arc::new(options),
        metrics: process.metrics.clone(),
        shutdown: process.shutdown.clone(),
    };
    process.fallible_part("controllers", locks.run(context, controllers::run));
    process.run().await.map_err(|e| e.to_string())
}
