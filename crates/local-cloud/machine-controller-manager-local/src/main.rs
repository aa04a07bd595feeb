//! The process: reads flags, waits for the lock, runs the controllers.

use std::process::ExitCode;

use clap::Parser;
use machine_controller_manager_local::{MANAGER, driver::LocalDriver};
use machine_controllers::process;
use manager::{MACHINE_CONTROLLER_MANAGER, answer_if_asked};

/// Manages the machines of a shoot in the local cloud.
#[derive(Parser)]
#[command(version)]
struct Flags {
    #[command(flatten)]
    all: process::Flags,
}

fn main() -> ExitCode {
    if let Some(answered) = answer_if_asked(&MACHINE_CONTROLLER_MANAGER) {
        return answered;
    }
    let flags = Flags::parse();
    manager::run(MANAGER.0, |process| {
        process::start(process, flags.all, MANAGER, LocalDriver::new)
    })
}
