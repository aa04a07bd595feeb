//! The process: reads flags, waits for its locks, runs the controllers.

use std::{process::ExitCode, sync::Arc};

use cloud_controller_manager_local::{
    MANAGER,
    controllers::{self, Context},
    flags::Config,
    names::Name,
};
use leader_migration::manager;
use runtime::{Connection, Permit, Process};

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
    manager::run(MANAGER.0, |process| start(process, flags))
}

async fn start(mut process: Process, flags: Config) -> Result<Process, String> {
    let options = flags.options()?;
    let locks = flags.locks()?;
    let connect = || Connection::of_flag("--kubeconfig", Some(&options.kubeconfig));
    let (shoot, elections) = (connect().await?, connect().await?);
    process.serve_health(flags.health_address);
    let options = Arc::new(options);
    let (metrics, shutdown) = (process.metrics.clone(), process.shutdown.clone());
    let context = move |permit: Permit| Context {
        shoot: shoot.clone(),
        cloud: options.cloud.clone(),
        options: Arc::clone(&options),
        permit,
        metrics: metrics.clone(),
        shutdown: shutdown.clone(),
    };
    locks.start(&mut process, &elections, move |names, permit| {
        let names = names.into_iter().filter_map(Name::parse).collect();
        controllers::run(names, context(permit))
    });
    Ok(process)
}
