//! Starts the controllers of [`garden_controller_manager`].

use std::{process::ExitCode, sync::Arc};

use clap::Parser;
use garden_controller_manager::{Config, Context, backup_entries, controllers, shoots};
use manager::{GARDEN_CONTROLLER_MANAGER as SELF, answer_if_asked, assign, start_controllers};
use runtime::{
    client::{Cluster, Connection, Garden, Permit},
    controller::Events,
    process::Process,
};

fn main() -> ExitCode {
    if let Some(answered) = answer_if_asked(&SELF) {
        return answered;
    }
    let config = Config::parse();
    manager::run("garden-controller-manager", |process| start(process, config))
}

async fn start(mut process: Process, config: Config) -> Result<Process, String> {
    let locks = assign(&config.lease, &SELF).map_err(|error| error.to_string())?;
    let (flag, kubeconfig) = ("--garden-kubeconfig", config.garden_kubeconfig.as_deref());
    let garden = Connection::of_flag(flag, kubeconfig).await?;
    let elections = Connection::of_flag(flag, kubeconfig).await?;
    process.serve_health(config.health_address);
    let (metrics, shutdown) = (process.metrics.clone(), process.shutdown.clone());
    let config = Arc::new(config);
    let context = move |permit: &Permit| {
        let garden = Garden::new(garden.clone(), permit);
        Context {
            events: Events::new(garden.client().clone(), "garden-controller-manager"),
            shoots: shoots::watch(&garden),
            backup_entries: backup_entries::watch(&garden),
            garden,
            config: Arc::clone(&config),
            metrics: metrics.clone(),
            shutdown: shutdown.clone(),
        }
    };
    start_controllers(locks, &mut process, &elections, move |names, permit| {
        controllers::run(names, context(&permit))
    });
    Ok(process)
}
