//! The process: reads flags, waits for the locks, runs the controllers.

use std::{collections::BTreeSet, process::ExitCode, sync::Arc};

use cloud_controller_manager_local::{
    MANAGER,
    controllers::{self, Context},
    flags::Config,
    names::Name,
};
use manager::start_controllers;
use owner_checks::while_owned;
use runtime::{
    client::{Connection, Permit},
    process::Process,
};

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
    let context = Arc::new(context);
    start_controllers(locks, &mut process, &elections, move |names, permit| {
        let (context, owner) = (Arc::clone(&context), flags.owner.clone());
        let names: BTreeSet<_> = names.into_iter().filter_map(Name::parse).collect();
        async move {
            let watch = owner.watch_owner(&permit).map_err(|error| error.to_string())?;
            // The permit for the cloud combines the lock and the ownership of the shoot (I3, R17-60).
            let run = |right: Permit| controllers::run(names.clone(), context(right));
            while_owned(watch, permit, run).await
        }
    });
    Ok(process)
}
