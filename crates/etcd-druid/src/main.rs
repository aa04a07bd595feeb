//! The process: flags, the seed's API, the controller under its lock.

use std::process::ExitCode;

use clap::Parser;
use etcd_druid::{flags::Flags, names::DRUID};
use leader_migration::{ETCD_DRUID, Locks, answer_if_asked, manager};
use runtime::{Connection, Process, Seed};

fn main() -> ExitCode {
    if let Some(answered) = answer_if_asked(&ETCD_DRUID) {
        return answered;
    }
    let flags = Flags::parse();
    manager::run(DRUID, |process| start(process, flags))
}

async fn start(mut process: Process, flags: Flags) -> Result<Process, String> {
    let locks = Locks::assign(&flags.lease, &ETCD_DRUID).map_err(|error| error.to_string())?;
    let (seed, elections) = (Connection::inferred().await?, Connection::inferred().await?);
    process.serve_health(flags.health_address);
    let (metrics, shutdown) = (process.metrics.clone(), process.shutdown.clone());
    locks.start(&mut process, &elections, move |_, permit| {
        let seed = Seed::new(seed.clone(), &permit);
        let running = etcd_druid::run(seed, flags.clone(), metrics.clone(), shutdown.clone());
        async move {
            running.await;
            Ok(())
        }
    });
    Ok(process)
}
