//! The process: flags, the seed's API, the controller under its lock.

use std::process::ExitCode;

use clap::Parser;
use etcd_druid::{flags::Flags, names::DRUID};
use manager::{ETCD_DRUID, answer_if_asked, assign, start_controllers};
use runtime::{
    client::{Connection, Seed},
    process::Process,
};

fn main() -> ExitCode {
    if let Some(answered) = answer_if_asked(&ETCD_DRUID) {
        return answered;
    }
    let flags = Flags::parse();
    manager::run(DRUID, |process| start(process, flags))
}

async fn start(mut process: Process, flags: Flags) -> Result<Process, String> {
    let locks = assign(&flags.lease, &ETCD_DRUID).map_err(|error| error.to_string())?;
    let (seed, elections) = (Connection::inferred().await?, Connection::inferred().await?);
    process.serve_health(flags.health_address);
    let (metrics, shutdown) = (process.metrics.clone(), process.shutdown.clone());
    start_controllers(locks, &mut process, &elections, move |_, permit| {
        let seed = Seed::new(seed.clone(), &permit);
        let running = etcd_druid::run(seed, flags.clone(), metrics.clone(), shutdown.clone());
        async move {
            running.await;
            Ok(())
        }
    });
    Ok(process)
}
