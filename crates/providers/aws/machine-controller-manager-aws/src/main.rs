//! The process: reads flags, waits for the lock, runs the controllers.

use std::process::ExitCode;

use clap::Parser;
use machine_controller_manager_aws::{MANAGER, driver::AwsDriver};
use machine_controllers::process;
use manager::{MACHINE_CONTROLLER_MANAGER, answer_if_asked};

/// Manages the machines of a shoot in Amazon Web Services.
#[derive(Parser)]
#[command(version)]
struct Flags {
    /// Where EC2 is, instead of the place of each region. For tests.
    #[arg(long)]
    ec2_endpoint: Option<String>,
    #[command(flatten)]
    all: process::Flags,
}

fn main() -> ExitCode {
    if let Some(answered) = answer_if_asked(&MACHINE_CONTROLLER_MANAGER) {
        return answered;
    }
    let Flags { ec2_endpoint, all } = Flags::parse();
    manager::run(MANAGER.0, |process| {
        let driver = move |permit: &_| AwsDriver::new(permit, ec2_endpoint.clone());
        process::start(process, all, MANAGER, driver)
    })
}
