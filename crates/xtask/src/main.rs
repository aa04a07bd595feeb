//! Development only: writes what is generated from code, and checks that it was; checks what holds for the repository
//! as a whole. `make check` runs both.

mod flows;
mod generate;
mod layering;
mod sources;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Development tasks of the workspace")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Writes the files that are generated from code: crds/ and docs/flows.md.
    Generate {
        /// Writes nothing; fails if a file differs from what would be written.
        #[arg(long)]
        check: bool,
    },
    /// Checks the arrows between crates, the length of files, and habits that a compiler does not check.
    Layering,
}

fn main() -> std::process::ExitCode {
    let done = match Arguments::parse().task {
        Task::Generate { check } => generate::run(check),
        Task::Layering => layering::run(),
    };
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}
