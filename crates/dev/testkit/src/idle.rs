//! The resource usage of an idle process: the same figures for all processes, in the format that `make bench`
//! reads.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::process::Server;

/// Seconds of the measurement of an idle process's CPU time, if the environment sets the variable.
const IDLE_FOR: &str = "REPOT_IDLE_SECONDS";

/// A number from the environment, e.g. of shoots; `usual` is the default.
///
/// # Errors
/// The value is not a number.
pub fn size(variable: &str, usual: usize) -> Result<usize> {
    let Ok(text) = std::env::var(variable) else {
        return Ok(usual);
    };
    text.parse()
        .with_context(|| format!("{variable} is {text:?}: say a number"))
}

/// The resource usage of an idle process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Anonymous memory of the process, in KiB.
    pub own: u64,
    /// Resident memory including pages of the program file, in KiB.
    pub all: u64,
    /// Open files and connections.
    pub files: usize,
    /// CPU time during the measurement.
    pub cpu: Duration,
    /// Duration of the measurement.
    pub over: Duration,
}

impl Idle {
    /// Measures a process that is idle by now, for the duration from the environment; the default is zero.
    ///
    /// # Errors
    /// The process has ended.
    pub async fn measure(server: &Server) -> Result<Self> {
        let [own, all] = server.memory()?;
        let (files, before, begun) = (server.open_files()?, server.cpu()?, Instant::now());
        tokio::time::sleep(Duration::from_secs(size(IDLE_FOR, 0)?.try_into()?)).await;
        Ok(Self {
            own,
            all,
            files,
            cpu: server.cpu()?.saturating_sub(before),
            over: begun.elapsed(),
        })
    }

    /// Prints the figures in a single line that begins with `bench:`. `of`: the load of the process.
    pub fn tell(&self, process: &str, of: &str) {
        let mib = |kib: u64| format!("{}.{} MiB", kib / 1024, kib % 1024 * 10 / 1024);
        println!(
            "bench: | {process} | {of} | {} | {} | {} | {} ms in {} s |",
            mib(self.own),
            mib(self.all),
            self.files,
            self.cpu.as_millis(),
            self.over.as_secs()
        );
    }
}

/// The peak memory of this process from here on, in addition to the present memory.
#[derive(Debug)]
pub struct Peak {
    before: u64,
}

impl Peak {
    /// Resets the peak.
    ///
    /// # Errors
    /// The kernel refuses the reset.
    pub fn begin() -> Result<Self> {
        std::fs::write("/proc/self/clear_refs", "5").context("the peak of memory cannot be forgotten")?;
        Ok(Self {
            before: of_this("VmRSS:")?,
        })
    }

    /// The peak as text.
    ///
    /// # Errors
    /// The kernel does not report the peak.
    pub fn mib(&self) -> Result<String> {
        let more = of_this("VmHWM:")?.saturating_sub(self.before);
        Ok(format!("{} MiB", more / 1024))
    }
}

fn of_this(field: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let line = line.with_context(|| format!("no {field}"))?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
