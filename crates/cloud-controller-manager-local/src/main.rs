//! The process: reads flags, waits for its locks, runs the controllers.

use std::{process::ExitCode, sync::Arc};

use cloud_controller_manager_local::{
    MANAGER,
    controllers::{self, Context, Name},
    flags::Config,
};
use runtime::{Process, connect};

fn main() -> ExitCode {
    let flags = Config::read();
    if flags.lease.print_leader_migration {
        return match flags.locks() {
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
    runtime::process::run(start(process, flags))
}

async fn start(mut process: Process, flags: Config) -> Result<(), String> {
    let options = flags.options()?;
    let locks = flags.locks()?;
    let shoot = connect("--kubeconfig", Some(&options.kubeconfig)).await?;
    process.serve_health(flags.health_address);
    let context = Context {
        shoot,
        cloud: options.cloud.clone(),
        options: Arc::new(options),
        metrics: process.metrics.clone(),
        shutdown: process.shutdown.clone(),
    };
    let health = process.health.clone();
    process.fallible_part("controllers", async move {
        let shutdown = context.shutdown.clone();
        let register = |locks: &lease::Metrics| {
            let overdue = locks.clone();
            health.add(move || overdue.overdue());
            context.metrics.register(|all| locks.register(all));
        };
        locks
            .run(&context.shoot, register, shutdown, |names, held| {
                let names = names.into_iter().filter_map(Name::parse).collect();
                controllers::run(names, context.clone(), held)
            })
            .await
    });
    process.run().await.map_err(|e| e.to_string())
}
