//! The process: reads flags, waits for the lock, runs the controllers.

use std::process::ExitCode;

use clap::Parser;
use machine_controller_manager_local::{MANAGER, driver::LocalDriver};
use suite_managers::{MACHINE_CONTROLLER_MANAGER, answer_if_asked};

/// Manages the machines of a shoot in the local cloud.
#[derive(Parser)]
#[command(version)]
struct Flags {
    #[command(flatten)]
    all: machine_controller_manager::Flags,
}

fn main() -> ExitCode {
    if let Some(answered) = answer_if_asked(&MACHINE_CONTROLLER_MANAGER) {
        return answered;
    }
    let flags = Flags::parse();
    suite_managers::run(MANAGER.0, |process| {
        machine_controller_manager::start(process, flags.all, MANAGER, LocalDriver::new)
    })
}
