//! Development only: writes what is generated from code, and checks that it was; checks what holds for the
//! repository as a whole. `make check` runs both.

mod alerts;
mod clients;
mod cycles;
mod expressions;
mod flows;
mod generate;
mod imports;
mod interfaces;
mod language;
mod layering;
mod links;
mod modules;
mod mutations;
mod reference;
#[cfg(test)]
mod repeated_numbers;
mod rights;
mod sources;
mod untested;
mod values_page;
mod values_schema;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Development tasks of the workspace")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Writes the files that are generated: crds/, docs/look-up/kinds, docs/understand/flows.md,
    /// docs/look-up/values.md, docs/look-up/rights.md, values.schema.json of each chart. Needs helm in PATH.
    Generate {
        /// Writes no file; fails if a file differs from the file that would be written.
        #[arg(long)]
        check: bool,
    },
    /// Checks the arrows between crates, the files of modules, the length of files, and habits that a
    /// compiler does not check.
    Layering,
    /// Checks the language of comments, names, field descriptions, pages and commits against the baseline of
    /// breaches, crates/dev/xtask/language.yaml.
    Language {
        /// Writes the numbers that fell into the baseline instead.
        #[arg(long)]
        lower: bool,
    },
    /// Checks that tasks of flows change a cloud, DNS or a bucket only while the seed is the owner of the
    /// shoot (I2, I3, R17-20..31).
    Flows,
    /// Checks that processes export the metrics of alerts and dashboards, and that each alert has a test and
    /// a runbook.
    Alerts,
    /// Compares the rights in the garden with the requests in the sources. Needs helm in PATH.
    Rights,
    /// Checks that links in pages lead to files and headings of the repository, and that the repository has
    /// the source files that pages name.
    Links,
}

fn main() -> std::process::ExitCode {
    let done = match Arguments::parse().task {
        Task::Generate { check } => generate::run(check),
        Task::Alerts => alerts::run(),
        Task::Flows => flows::check(),
        Task::Layering => layering::run(),
        Task::Language { lower } => language::run(lower),
        Task::Links => links::run(),
        Task::Rights => rights::run(),
    };
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}
