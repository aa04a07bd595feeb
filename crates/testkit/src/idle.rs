//! What a process needs that has nothing to do: the same figures for all, as `make bench` reads them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::process::Server;

/// Seconds over which it is seen how busy an idle process is, where the environment says so.
const IDLE_FOR: &str = "REPOT_IDLE_SECONDS";

/// A number that the environment may give, e.g. of shoots.
///
/// # Errors
/// It is no number.
pub fn size(variable: &str, usual: usize) -> Result<usize> {
    let Ok(text) = std::env::var(variable) else {
        return Ok(usual);
    };
    text.parse()
        .with_context(|| format!("{variable} is {text:?}: say a number"))
}

/// What a process needs that has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Memory that it has for itself, in KiB.
    pub own: u64,
    /// The same with what it has of its program's file, in KiB.
    pub all: u64,
    /// Open files and connections.
    pub files: usize,
    /// Time on processors.
    pub cpu: Duration,
    /// In which time.
    pub over: Duration,
}

impl Idle {
    /// Looks at a process that is idle by now; for as long as the environment says, or not at all.
    ///
    /// # Errors
    /// It has ended.
    pub async fn of(server: &Server) -> Result<Self> {
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

    /// Tells it in one line, which begins with `bench:`. `of`: what it looks after.
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

/// The most memory that this process needs from here on, besides what it has already.
#[derive(Debug)]
pub struct Peak {
    before: u64,
}

impl Peak {
    /// Forgets the peaks before.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn begin() -> Result<Self> {
        std::fs::write("/proc/self/clear_refs", "5").context("the peak of memory cannot be forgotten")?;
        Ok(Self {
            before: of_this("VmRSS:")?,
        })
    }

    /// In words.
    ///
    /// # Errors
    /// The kernel does not tell.
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
