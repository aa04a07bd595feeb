//! Memory and open files of the process as metrics, under the usual names of Prometheus. A scrape reads
//! `/proc`.

use std::fs;

use crate::process::metrics::{Metrics, ScrapedSeries};

/// Registers the metrics of this process.
pub(crate) fn register(metrics: &Metrics) {
    let memory = "Resident memory of the process in bytes";
    metrics.register_scraped("process_resident_memory_bytes", memory, || {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        single(resident_bytes(&status))
    });
    let files = "Number of open file descriptors of the process";
    metrics.register_scraped("process_open_fds", files, || single(open_files()));
}

/// The series without labels; nothing where `/proc` has no value.
fn single(value: Option<f64>) -> Vec<ScrapedSeries> {
    value
        .map(|value| ScrapedSeries::new([], value))
        .into_iter()
        .collect()
}

fn resident_bytes(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u32 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(f64::from(kibibytes) * 1024.0)
}

fn open_files() -> Option<f64> {
    let entries = fs::read_dir("/proc/self/fd").ok()?;
    u32::try_from(entries.count()).ok().map(f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_read_in_bytes() {
        assert_eq!(
            resident_bytes("Name:\ta\nVmRSS:\t    1760 kB\nThreads:\t1\n"),
            Some(1_802_240.0)
        );
        assert_eq!(resident_bytes("Name:\ta\n"), None);
    }

    #[test]
    fn a_scrape_shows_memory_and_open_files() {
        let metrics = Metrics::default();
        register(&metrics);
        let text = metrics.encode();
        for name in ["process_resident_memory_bytes", "process_open_fds"] {
            let series = text.lines().find(|line| line.starts_with(name));
            assert!(series.is_some(), "{name} is not in\n{text}");
        }
    }
}
