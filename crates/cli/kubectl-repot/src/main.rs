//! The program `kubectl-repot`. kubectl starts this program for `kubectl repot`.

use std::process::ExitCode;

use clap::Parser;
use kubectl_repot::{flags::Flags, run::run};

/// Stack of a thread in bytes, as in the managers: a watch of a kind with a large specification takes most of
/// the default 2 MiB in a build without optimisation.
const STACK: usize = 8 * 1024 * 1024;

fn main() -> ExitCode {
    let flags = Flags::parse();
    // A second provider of the process would be an error of the program, and the first provider counts.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    match threads.enable_all().thread_stack_size(STACK).build() {
        Ok(threads) => ExitCode::from(threads.block_on(run(&flags))),
        Err(error) => {
            eprintln!("threads cannot be started: {error}");
            ExitCode::FAILURE
        }
    }
}
