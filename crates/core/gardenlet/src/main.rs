//! Starts the controllers of [`gardenlet`].

use std::{process::ExitCode, sync::Arc};

use api::constants::seed_user;
use clap::Parser;
use gardenlet::{Config, Context, controllers, move_trace::MoveTraces, shoots};
use manager::{GARDENLET, answer_if_asked, assign, start_controllers};
use runtime::{
    client::{Cluster, Connection, Garden, Permit, Seed},
    controller::Events,
    process::Process,
};

fn main() -> ExitCode {
    if let Some(answered) = answer_if_asked(&GARDENLET) {
        return answered;
    }
    let config = Config::parse();
    manager::run("gardenlet", |process| start(process, config))
}

async fn start(mut process: Process, config: Config) -> Result<Process, String> {
    let locks = assign(&config.lease, &GARDENLET).map_err(|error| error.to_string())?;
    let (flag, kubeconfig) = ("--seed-kubeconfig", config.seed_kubeconfig.as_deref());
    let garden = Connection::of_flag("--garden-kubeconfig", Some(&config.garden_kubeconfig)).await?;
    let seed = Connection::of_flag(flag, kubeconfig).await?;
    let elections = Connection::of_flag(flag, kubeconfig).await?;
    process.serve_health(config.health_address);
    let kubeconfig = &config.garden_kubeconfig;
    let certificate_expiry = gardenlet::certificate::register_validity(&process.metrics, kubeconfig);
    let (seed_name, instance) = (&config.seed_name, &config.instance_id);
    let move_traces = MoveTraces::start(&mut process, &config.move_traces, seed_name, instance)?;
    let (metrics, shutdown) = (process.metrics.clone(), process.shutdown.clone());
    let (settings, config) = (Arc::new(config.settings()), Arc::new(config));
    let heartbeat = gardenlet::context::Heartbeat::default();
    let beats = heartbeat.clone();
    process
        .readiness
        .add(move || beats.overdue(gardenlet::seed::LEASE_DURATION));
    let context = move |permit: &Permit| {
        let garden = Garden::new(garden.clone(), permit);
        Context {
            garden_events: Events::of_seed(
                garden.client().clone(),
                "gardenlet",
                seed_user(&config.seed_name),
            ),
            shoots: shoots::watch(&garden, &config.seed_name),
            garden,
            seed: Seed::new(seed.clone(), permit),
            seed_name: config.seed_name.clone(),
            settings: Arc::clone(&settings),
            config: Arc::clone(&config),
            metrics: metrics.clone(),
            shutdown: shutdown.clone(),
            certificate_expiry,
            heartbeat: heartbeat.clone(),
            move_traces: move_traces.clone(),
        }
    };
    start_controllers(locks, &mut process, &elections, move |names, permit| {
        controllers::run(names, context(&permit))
    });
    Ok(process)
}
