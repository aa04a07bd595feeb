//! The process: flags, the seed's API, and the controller under the lock.

use std::process::ExitCode;

use clap::Parser;
use manager::{RESOURCE_MANAGER, answer_if_asked, assign, start_controllers};
use resource_manager::{flags::Flags, names::NAME};
use runtime::{
    client::{Connection, Seed},
    process::Process,
};

fn main() -> ExitCode {
    if let Some(answered) = answer_if_asked(&RESOURCE_MANAGER) {
        return answered;
    }
    let flags = Flags::parse();
    manager::run(NAME, |process| start(process, flags))
}

async fn start(mut process: Process, flags: Flags) -> Result<Process, String> {
    let locks = assign(&flags.lease, &RESOURCE_MANAGER).map_err(|error| error.to_string())?;
    let (seed, elections) = (
        Connection::inferred_multiplexed().await?,
        Connection::inferred().await?,
    );
    process.serve_health(flags.health_address);
    let (metrics, shutdown) = (process.metrics.clone(), process.shutdown.clone());
    start_controllers(locks, &mut process, &elections, move |_, permit| {
        let seed = Seed::new(seed.clone(), &permit);
        let running = resource_manager::run(seed, flags.clone(), metrics.clone(), shutdown.clone());
        async move {
            running.await;
            Ok(())
        }
    });
    Ok(process)
}
